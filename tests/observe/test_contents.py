"""Checks memory and source information in a trace: contents before and after every write, names of
shared arrays, branch targets, and registers that hold a parameter or a variable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warploom as wl
from warploom.observe.trace import Trace

KERNEL = """__global__ void k(const int *in, float *out, int n)
{
    __shared__ float kept[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        kept[threadIdx.x] = in[i] * 0.5f;
    __syncthreads();
    out[i] = kept[63 - threadIdx.x];
    atomicAdd(out, 1.0f);
}
"""


def launched(engine: str = "reference", size: int = 64) -> tuple[Trace, np.ndarray[Any, Any]]:
    gpu = wl.Device("v100")
    data = gpu.to_device(np.arange(64, dtype=np.int32) + 7, "in")
    out = gpu.zeros((8, 8), np.float32, "out")
    trace = gpu.compile(KERNEL)["k"][1, 64].trace(data, out, size, engine=engine)
    return trace, out.copy_to_host()


def replayed(trace: Trace, address: int, size: int, first: bytes, space: str) -> bytes:
    """Returns the content of an allocation after all recorded changes."""
    content = bytearray(first)
    columns = [
        np.frombuffer(c, "<u4").tolist() for c in (trace.changes.access, trace.changes.value)
    ]
    base = np.frombuffer(trace.accesses.base, "<u8")
    site, shape = (np.frombuffer(c, "<u4") for c in (trace.accesses.site, trace.accesses.shape))
    for access, value in zip(*columns, strict=True):
        made = trace.sites[site[access]]
        if made.space != space:
            continue
        for nth, offset in enumerate(trace.shapes[shape[access]].offsets):
            at = int(base[access]) + offset - address
            data = trace.changes.values[value][nth * made.size : (nth + 1) * made.size]
            if 0 <= at <= size - made.size:
                content[at : at + made.size] = data
    return bytes(content)


def test_changes_lead_from_the_first_content_to_the_last() -> None:
    trace, left = launched()
    out = trace.allocations[1]
    assert (out.name, out.type, out.shape) == ("out", "float32", (8, 8))
    assert out.first == bytes(256)
    assert np.frombuffer(trace.allocations[0].first, np.int32).tolist() == list(range(7, 71))
    assert replayed(trace, out.address, 256, out.first, "global") == left.tobytes()
    # out[0] is what thread 63 kept, (70 - 7 + 7) / 2, and 1 for each of 64 threads.
    assert left[0, 0] == 70 / 2 + 64


def test_shared_arrays_have_their_names() -> None:
    trace, _ = launched()
    assert [(one.name, one.size) for one in trace.shared] == [("kept", 256)]
    kept = replayed(trace, trace.shared[0].address, 256, bytes(256), "shared")
    assert np.frombuffer(kept, np.float32).tolist() == [(i + 7) / 2 for i in range(64)]


def test_compiled_code_records_the_first_content_alone() -> None:
    trace, _ = launched("compiled")
    assert trace.allocations[1].first == bytes(256)
    assert trace.changes.count == 0


def test_registers_have_the_names_of_parameters_and_variables() -> None:
    trace, _ = launched()
    named = {one.variable: one.name for one in trace.registers if one.variable}
    assert {"in", "out", "n", "i"} <= set(named)
    end = trace.steps.count
    assert trace.register(named["i"], end, 0, 1) == tuple(range(32, 64))
    assert set(trace.register(named["n"], end)) == {64}
    assert set(trace.register(named["out"], end)) == {trace.allocations[1].address}


def test_branches_record_their_targets() -> None:
    """Expects the target of each branch to begin at its label in the PTX."""
    trace, _ = launched()
    branches = [code for code in trace.code if code.is_branch]
    assert branches
    lines = trace.ptx.split("\n")
    for branch in branches:
        label = branch.text.split()[-1].rstrip(";")
        place = next(n for n, line in enumerate(lines, 1) if line.strip() == f"{label}:")
        [target] = branch.targets
        first = trace.code[trace.basic_blocks[target].start]
        assert first.ptx_line > place
        assert not any(place < code.ptx_line < first.ptx_line for code in trace.code)


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_a_fault_records_its_address(engine: str) -> None:
    gpu = wl.Device("v100")
    out = gpu.zeros(40, np.int32, "out")
    kernel = gpu.compile("__global__ void k(int *out) { out[threadIdx.x] = 1; }")["k"]
    trace = kernel[1, 64].trace(out, engine=engine)
    assert trace.fault is not None
    end = trace.allocations[0].address + 160
    assert (trace.fault.address, trace.fault.size) == (end, 4)
    assert (trace.fault.block, trace.fault.thread) == (0, 40)


def test_a_trace_is_short_to_print() -> None:
    trace, _ = launched()
    assert len(repr(trace)) < 200
    assert "k[(1, 1, 1), (64, 1, 1)]" in repr(trace)
