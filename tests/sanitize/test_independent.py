"""Accesses that no other thread's can meet: which are found, and that others are still seen."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl
from warploom.analysis.linear.affine import LinearAnalysis
from warploom.analysis.linear.independent import independent_accesses
from warploom.analysis.linear.register_values import LaunchInputs
from warploom.isa.instruction import Space
from warploom.program.accesses import accesses

INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"


def left_out(gpu: wl.Device, body: str, n: int = 1000) -> tuple[list[str], list[str]]:
    """Returns the loads and stores of global memory of a kernel of 4 blocks of 256 threads on an
    array `x` of `n` integers: those that need not be seen, and the others."""
    text = f"__global__ void kernel(int *x, int n, int k) {{ {INDEX} {body} }}"
    program = gpu.compile(text)["kernel"].program
    x = gpu.zeros(n, np.int32)
    values = x.address.to_bytes(8, "little") + n.to_bytes(4, "little") + (7).to_bytes(4, "little")
    there = range(x.address, x.address + 4 * n)
    given = LaunchInputs(
        (4, 1, 1), (256, 1, 1), values, (), lambda at: there if at in there else None
    )
    found = independent_accesses(LinearAnalysis(program, given), set(range(program.size))).in_global
    made = [
        (op, index in found)
        for index, one in enumerate(program.instructions)
        for space, op in accesses(one)
        if space is Space.GLOBAL
    ]
    return [op for op, alone in made if alone], [op for op, alone in made if not alone]


@pytest.mark.parametrize(
    "body",
    [
        "if (i < n) x[i] += 1;",
        "if (i >= n) return; x[i] = k;",
        "if (!(i >= n || i == k)) x[i] = k;",
        "for (; i < n; i += gridDim.x * blockDim.x) x[i] = k;",
        "if (threadIdx.x == 0) x[blockIdx.x] = k;",
        "if (i < n / 2) x[2 * i + 1] = x[2 * i] + 1;",
        "if (i < 100) x[i] = x[i + 100];",
        "if (i < 30) x[31 * i + 1] = x[31 * i];",
    ],
)
def test_accesses_of_one_thread_or_to_other_places(body: str) -> None:
    """Each thread keeps to its own elements, or reads what nobody writes."""
    alone, others = left_out(wl.Device(), body)
    assert "store" in alone
    assert not others


@pytest.mark.parametrize(
    "body",
    [
        "x[i] = k;",  # 24 threads leave the array
        "if (i < n) x[i / 2] = k;",
        "if (i < n) x[i % 500] = k;",
        "if (i < n - 1) x[i] = x[i + 1];",
        "if (i < 101) x[i] = x[i + 100];",  # element 100 is read and written
        "if (i < 30) x[31 * i + i] = x[31 * i];",
        "if (threadIdx.x < 2) x[blockIdx.x] = k;",
        "if (i < n) x[x[i]] = k;",
    ],
)
def test_accesses_that_may_meet(body: str) -> None:
    _, others = left_out(wl.Device(), body)
    assert "store" in others


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_what_is_left_out_hides_no_race(engine: str) -> None:
    """The same kernel with a parameter that keeps threads disjoint, and with one that does not."""
    gpu = wl.Device(engine=engine, sanitize=("race",))
    kernel = gpu.compile(
        f"__global__ void shifted(int *x, int by) {{ {INDEX} x[i] = x[i + by] + 1; }}"
    )["shifted"]
    for by, races in ((0, False), (64, False), (1, True), (63, True)):
        run = kernel[2, 32](gpu.zeros(128, np.int32), np.int32(by))
        assert bool(run.findings) == races


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_store_by_an_index_out_of_memory_is_still_reported(engine: str) -> None:
    """`y` need not be seen; the store through `x` that gets there by its index has to be."""
    gpu = wl.Device(engine=engine, sanitize=("race",))
    kernel = gpu.compile(
        "__global__ void strays(int *x, int *y, const int *where) {"
        "  int i = threadIdx.x; y[i] = i; x[where[i]] = 1; }"
    )["strays"]
    x, y = gpu.zeros(64, np.int32, "x"), gpu.zeros(64, np.int32, "y")
    where = np.arange(64, dtype=np.int32)
    assert kernel[1, 64](x, y, where).findings == ()
    where[5] = (y.address - x.address) // 4 + 7
    (found,) = kernel[1, 64](x, y, where).findings
    assert (found.tool, found.kind, found.buffer) == ("mem", "out of bounds", "y")
