"""OpenCL C through clang: twelve kernels, with results from NumPy, costs worked out by hand, and
the same costs as the same code has as CUDA C++. Skipped, with what is missing, where clang is not
installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warploom as wl
from warploom.frontends.opencl_compilers import opencl_is_missing
from warploom.report.terms import translator

HERE = Path(__file__).parent
KERNELS = HERE / "opencl_kernels.cl"

Array = np.ndarray[Any, np.dtype[Any]]
ALIKE = (
    *("global_load_requests", "global_load_sectors", "global_store_requests"),
    *("global_store_sectors", "shared_load_bank_conflicts", "shared_store_bank_conflicts"),
    *("barriers", "atomic_requests", "shared_store_requests"),
)
"""Counters of memory and of waiting, which the compilers do not choose."""

pytestmark = pytest.mark.skipif(bool(opencl_is_missing()), reason=opencl_is_missing())


@dataclass(frozen=True)
class Case:
    """A launch: its shape, its arguments (the last array is the result), what it must give, and
    counters that follow from the code."""

    grid: int | tuple[int, int]
    block: int | tuple[int, int]
    arguments: list[Any]
    expected: Array
    counters: dict[str, int]
    tolerance: float = 0.0


def random(*shape: int) -> Array:
    return np.random.default_rng(7).random(shape, np.float32) + np.float32(0.5)


def box_filtered(image: Array) -> Array:
    padded = np.pad(image, 1, mode="edge")
    height, width = image.shape
    shifted = [padded[y : y + height, x : x + width] for y in range(3) for x in range(3)]
    return np.sum(shifted, axis=0) / 9


def escape_counts(width: int, most: int) -> Array:
    y, x = np.mgrid[:width, :width].astype(np.float64)
    c = 3 * x / width - 2 + 1j * (2 * y / width - 1)
    z, counts = np.zeros_like(c), np.zeros(c.shape, np.int32)
    for _ in range(most):
        inside = np.abs(z) < 2
        counts += inside
        z = np.where(inside, z * z + c, z)
    return counts


A, B, SQUARE, TALL = random(1000), random(1000), random(64, 64), random(64, 64)[::-1].copy()
VALUES = np.random.default_rng(1).integers(0, 64, 1000).astype(np.int32)
ORDER = (np.arange(1024) * 8 % 1024).astype(np.int32)
GRID = {"n": 1000}

CASES: dict[str, Callable[[], Case]] = {
    # 1000 elements of 4 bytes are 125 sectors; 32 warps, the last of which has 8 of them.
    "vector_add": lambda: Case(
        *(4, 256, [A, B, np.zeros(1000, np.float32), 1000], A + B),
        {"global_load_sectors": 250, "global_store_sectors": 125, "global_load_requests": 64},
    ),
    # 500 work-items, each 8 bytes further: 1000 elements' sectors again, of which half are used.
    "strided_scale": lambda: Case(
        *(2, 256, [A, np.zeros(1000, np.float32), np.float32(3), 1000]),
        np.where(np.arange(1000) % 2 == 0, 3 * A, 0),
        {"global_load_sectors": 125, "global_load_requests": 16},
    ),
    # A half-warp reads 64 bytes, 2 sectors. Rows have 17 words: a warp reads two columns of 16,
    # at words 17 x and 17 x + 1, of which 0 and 256 share a bank; 8 warps in each of 16 groups.
    "transpose": lambda: Case(
        *((4, 4), (16, 16), [SQUARE, np.zeros((64, 64), np.float32), 64], SQUARE.T),
        {
            "global_load_sectors": 512,
            "global_store_sectors": 512,
            "shared_load_bank_conflicts": 128,
        },
    ),
    # 16 groups, 4 steps, 2 tiles, 256 elements of 4 bytes: 4,096 sectors; 2 barriers a step.
    "tiled_product": lambda: Case(
        *((4, 4), (16, 16), [SQUARE, TALL, np.zeros((64, 64), np.float32), 64], SQUARE @ TALL),
        {"global_load_sectors": 16 * 4 * 2 * 32, "barriers": 16 * 4 * 2 * 8},
        tolerance=1e-5,
    ),
    "histogram": lambda: Case(
        *(4, 256, [VALUES, np.zeros(64, np.int32), 1000], np.bincount(VALUES, minlength=64)),
        {"global_load_sectors": 125, "barriers": 4 * 2 * 8},
    ),
    "box_filter": lambda: Case(
        *((2, 8), (32, 8), [SQUARE, np.zeros((64, 64), np.float32), 64, 64], box_filtered(SQUARE)),
        {"global_load_requests": 9 * 128, "global_store_sectors": 512},
        tolerance=1e-6,
    ),
    # 1 + 2 * 7 barriers of 4 warps in each of 8 groups.
    "scan": lambda: Case(
        *(8, 128, [ORDER, np.zeros(1024, np.int32)]),
        np.cumsum(ORDER.reshape(8, 128), axis=1).ravel(),
        {"barriers": 8 * 4 * 15, "global_load_sectors": 128},
    ),
    "stencil": lambda: Case(
        *(4, 256, [A, np.zeros(1000, np.float32), 1000]),
        np.concatenate([[0], 0.25 * A[:-2] + 0.5 * A[1:-1] + 0.25 * A[2:], [0]]),
        {"global_store_sectors": 125},
        tolerance=1e-6,
    ),
    # Neighbors read 32 bytes apart: a sector for each of 1024 work-items, and 128 of the indices.
    "gather": lambda: Case(
        *(4, 256, [ORDER, random(1024), np.zeros(1024, np.float32), 1024]),
        random(1024)[ORDER],
        {"global_load_sectors": 1024 + 128, "global_store_sectors": 128},
    ),
    "mandelbrot": lambda: Case(
        *((2, 8), (32, 8), [np.zeros((64, 64), np.int32), 64, 50], escape_counts(64, 50)),
        {"global_store_sectors": 512},
        tolerance=0.01,  # of the pixels, in float instead of double
    ),
    "waves": lambda: Case(
        *(4, 256, [random(1024), np.zeros(1024, np.float32)]),
        (lambda x: np.sin(x) * np.exp(-x) + x**1.5 + x**-0.5 + np.log(x))(random(1024)),
        {"global_load_sectors": 128, "global_store_sectors": 128},
        tolerance=2e-6,
    ),
    # 1 + 7 barriers of 4 warps in each of 8 groups, and one sector for each group's sum.
    "reduction": lambda: Case(
        *(8, 128, [random(1024), np.zeros(8, np.float32), wl.LocalMemory(4 * 128)]),
        random(1024).reshape(8, 128).sum(axis=1),
        {"barriers": 8 * 4 * 8, "global_store_requests": 8, "shared_store_bank_conflicts": 0},
        tolerance=1e-5,
    ),
}


@cache
def device() -> wl.Device:
    return wl.Device("a100")


@cache
def as_opencl() -> wl.Module:
    return device().load(KERNELS)


@cache
def as_cuda() -> wl.Module:
    text = KERNELS.read_text("utf-8")
    last = text.index("/* The local memory is the caller's")
    return device().compile((HERE / "opencl_as_cuda.h").read_text("utf-8") + text[:last])


def launched(module: wl.Module, name: str, case: Case) -> tuple[wl.Run, Array]:
    """The run of a case, and the array that it wrote."""
    arguments = [a.copy() if isinstance(a, np.ndarray) else a for a in case.arguments]
    run = module[name][case.grid, case.block](*arguments)
    return run, [a for a in arguments if isinstance(a, np.ndarray)][-1]


@pytest.mark.parametrize("name", CASES)
def test_a_kernel(name: str) -> None:
    case = CASES[name]()
    run, found = launched(as_opencl(), name, case)
    if name == "mandelbrot":
        assert np.mean(found != case.expected) < case.tolerance
    else:
        assert np.allclose(found, case.expected, rtol=case.tolerance, atol=case.tolerance)
    assert {counter: run.counters[counter] for counter in case.counters} == case.counters


@pytest.mark.parametrize("name", [name for name in CASES if name != "reduction"])
def test_the_same_code_as_cuda_costs_the_same(name: str) -> None:
    case = CASES[name]()
    run, found = launched(as_opencl(), name, case)
    twin, expected = launched(as_cuda(), name, case)
    assert np.array_equal(found, expected)
    assert {c: run.counters[c] for c in ALIKE} == {c: twin.counters[c] for c in ALIKE}


def test_the_report_is_in_opencls_terms() -> None:
    run, _ = launched(as_opencl(), "vector_add", CASES["vector_add"]())
    reported = run.report()
    assert "Work-group Size" in reported
    assert "Work-group Size" not in run.report("cuda")
    assert translator("opencl")("Block Size") in reported


def test_faults_name_the_line_and_the_argument() -> None:
    module = device().compile(
        "__kernel void past(__global int *x)\n{\n    x[get_global_id(0)] = 1;\n}\n",
        "opencl",
        name="past.cl",
    )
    with pytest.raises(wl.MemoryFault) as fault:
        module["past"][2, 32](device().zeros(40, np.int32))
    assert fault.value.line == "past.cl:3"


def test_sizes_of_work_groups_are_kept() -> None:
    module = device().compile(
        "__kernel __attribute__((reqd_work_group_size(8, 4, 1))) void sized(__global int *x)\n"
        "{ x[get_local_id(1) * 8 + get_local_id(0)] = get_local_size(1); }",
        "opencl",
    )
    x = np.zeros(32, np.int32)
    module["sized"][1, (8, 4)](x)
    assert (x == 4).all()
    with pytest.raises(wl.LaunchError, match="exactly"):
        module["sized"][1, 32](x)


def test_printf() -> None:
    said: list[str] = []
    gpu = wl.Device("a100", output=said.append)
    text = '__kernel void say(int n) { printf("%d of %s %.2f\\n", n, "it", 0.5 * n); }'
    gpu.compile(text, "opencl")["say"][1, 1](7)
    assert "".join(said) == "7 of it 3.50\n"


def test_local_memory_is_for_pointers_to_it() -> None:
    kernel = as_opencl()["reduction"]
    x, sums = np.zeros(128, np.float32), np.zeros(1, np.float32)
    with pytest.raises(wl.LaunchError, match=r"LocalMemory\(bytes\)"):
        kernel[1, 128](x, sums, 512)
    with pytest.raises(wl.LaunchError, match="not a pointer to local memory"):
        as_opencl()["scan"][1, 128](x.astype(np.int32), wl.LocalMemory(512))
    with pytest.raises(wl.LaunchError, match="pass all local memory as LocalMemory"):
        kernel[1, 128, 0, 64](x, sums, wl.LocalMemory(512))


def test_what_does_not_compile_is_reported_with_its_line() -> None:
    with pytest.raises(wl.CompileError, match=r"wrong\.cl:2:.*undeclared"):
        device().compile("__kernel void k()\n{ nothing = 1; }", "opencl", name="wrong.cl")


def test_options_go_to_clang() -> None:
    text = "__kernel void k(__global int *x) { x[0] = N; }"
    x = np.zeros(1, np.int32)
    device().compile(text, "opencl", ["-DN=5"])["k"][1, 1](x)
    assert x[0] == 5


@pytest.mark.parametrize("standard", ["CL1.0", "CL1.1", "CL1.2", "CL2.0", "CL3.0"])
def test_every_standard_compiles(standard: str) -> None:
    text = "__kernel void k(__global float *x) { x[0] = sin(x[0]) + __OPENCL_C_VERSION__; }"
    x = np.zeros(1, np.float32)
    device().compile(text, "opencl", [f"-cl-std={standard}"])["k"][1, 1](x)
    assert x[0] == int(standard[2:].replace(".", "") + "0")


def test_functions_of_work_items_and_integers() -> None:
    """mad_hi(2**30, 8, 5): 2**33 has 2 in its high word (OpenCL C 3.0, 6.15.3, "Integer
    Functions"); the device's driver reports OpenCL 3.0."""
    text = """__kernel void k(__global uint *x, __global int4 *y) {
        x[0] = get_work_dim(); x[1] = get_global_offset(1); x[2] = __OPENCL_VERSION__;
        x[3] = mad_hi(1u << 30, 8u, 5u);
        y[0] = mad_hi((int4)(-(1 << 30)), (int4)(8), (int4)(5));
    }"""
    kernel = device().compile(text, "opencl")["k"]
    for grid, dimensions in ((1, 1), ((1, 2), 2), ((1, 1, 2), 3)):
        x, y = np.zeros(4, np.uint32), np.zeros(4, np.int32)
        kernel[grid, 1](x, y)
        assert x.tolist() == [dimensions, 0, 300, 7]
        assert y.tolist() == [3] * 4


def test_nvidias_options() -> None:
    """`cl_nv_compiler_options`: a limit on registers, and hints."""
    text = "__kernel void k(__global int *x) { x[0] = 1; }"
    options = ["-cl-nv-maxrregcount=24", "-cl-nv-verbose", "-cl-nv-opt-level=2"]
    assert ".maxnreg 24" in device().compile(text, "opencl", options).ptx


def test_a_device_without_fused_multiply_add_runs_saxpy() -> None:
    text = """__kernel void saxpy(float a, __global const float *x, __global float *y) {
        int i = get_global_id(0); y[i] = a * x[i] + y[i]; }"""
    x, y = np.arange(32, dtype=np.float32), np.ones(32, np.float32)
    wl.Device("8800-gtx").compile(text, "opencl")["saxpy"][1, 32](np.float32(2), x, y)
    assert (y == 2 * x + 1).all()


def test_printf_of_vectors() -> None:
    said: list[str] = []
    gpu = wl.Device("a100", output=said.append)
    text = """__kernel void k(void) {
        printf("%v4f %5.1v3hlf|%v2d|%#v4hhx\\n", (float4)(0, 1, 2, 3), (float3)(1, 2, 3),
               (int2)(1, -2), (uchar4)(1, 2, 254, 255)); }"""
    gpu.compile(text, "opencl")["k"][1, 1]()
    floats = "0.000000,1.000000,2.000000,3.000000"
    assert "".join(said) == f"{floats}   1.0,  2.0,  3.0|1,-2|0x1,0x2,0xfe,0xff\n"
