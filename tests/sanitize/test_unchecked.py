"""Accesses that the tools need not see: which they are, and that nothing is missed for them."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import warploom as wl
from warploom.analysis.linear.affine import LinearAnalysis, global_accesses
from warploom.analysis.linear.independent import independent_accesses
from warploom.analysis.linear.register_values import LaunchInputs
from warploom.isa.instruction import Space
from warploom.program.accesses import accesses
from warploom.program.program import Program

PRODUCT = """
__global__ void product(const float *a, const float *b, float *c, int n) {
  __shared__ float tile[16][16], other[16][16];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    tile[y][x] = a[row * n + k + x];
    other[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += tile[y][i] * other[i][x];
    BEHIND;
  }
  c[row * n + column] = sum;
}
"""

OWN_HALVES = """
__global__ void apart(int *out) {
  __shared__ int tile[64];
  int i = threadIdx.x;
  tile[i] = i;
  if (i < 32) {
    __syncthreads();
    out[i] = tile[i + 32];
  } else {
    __syncthreads();
    tile[i] = 0;
  }
}
"""

STRAYS = """
__global__ void strays(const int *x, int *y, long long distance) {
  int i = threadIdx.x;
  int v = x[i];
  y[distance + 63 - i] = v;
}
"""


def independent_in_shared(program: Program) -> frozenset[int]:
    """Returns the accesses to shared memory that need not be seen, in blocks of 16 x 16 threads
    with three pointers and the number 32 as parameters."""
    parameters = struct.pack("<QQQI", 0, 0, 0, 32)
    given = LaunchInputs((1, 1, 1), (16, 16, 1), parameters, (), lambda address: None)
    return independent_accesses(LinearAnalysis(program, given), set(range(program.size))).in_shared


def accesses_of(text: str, name: str, op: str) -> tuple[int, int]:
    """Returns how many loads or stores of shared memory a kernel has, and how many of them need not
    be seen."""
    program = wl.Device().compile(text)[name].program
    made = enumerate(program.instructions)
    there = {index for index, one in made if accesses(one) == ((Space.SHARED, op),)}
    return len(there), len(there & independent_in_shared(program))


def test_loads_of_a_tile_lie_between_barriers() -> None:
    for op in ("load", "store"):
        there, found = accesses_of(PRODUCT.replace("BEHIND", "__syncthreads()"), "product", op)
        assert there == found > 0


def test_without_the_second_barrier_stores_of_the_next_lap_may_meet_them() -> None:
    for op in ("load", "store"):
        assert accesses_of(PRODUCT.replace("BEHIND", ""), "product", op)[1] == 0


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_missing_barrier_in_a_product_is_found(engine: str) -> None:
    gpu = wl.Device(engine=engine, sanitize=("race",))
    a = np.ones((32, 32), np.float32)
    for behind, races in (("__syncthreads()", False), ("", True)):
        kernel = gpu.compile(PRODUCT.replace("BEHIND", behind))["product"]
        run = kernel[(1, 1), (16, 16)](a, a, np.zeros_like(a), np.int32(32))
        assert bool(run.findings) == races


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_threads_that_meet_at_different_barriers_are_checked(engine: str) -> None:
    gpu = wl.Device(engine=engine, sanitize=("race", "sync"))
    kernel = gpu.compile(OWN_HALVES)["apart"]
    assert independent_in_shared(kernel.program)
    kinds = {one.kind for one in kernel[1, 64](np.zeros(64, np.int32)).findings}
    assert kinds == {"race", "divergent barrier"}


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_store_that_leaves_its_buffer_for_one_that_is_read_is_found(engine: str) -> None:
    gpu = wl.Device(engine=engine, sanitize=("race",))
    kernel = gpu.compile(STRAYS)["strays"]
    x, y = gpu.zeros(64, np.int32, "x"), gpu.zeros(64, np.int32, "y")
    assert kernel[1, 64](x, y, np.int64(0)).findings == ()
    (found,) = kernel[1, 64](x, y, np.int64((x.address - y.address) // 4)).findings
    assert (found.tool, found.kind, found.buffer) == ("mem", "out of bounds", "x")


@pytest.mark.parametrize("tools", [("race",), ("init",), ("race", "init")])
def test_a_read_of_a_buffer_that_nobody_wrote_is_found(tools: tuple[str, ...]) -> None:
    gpu = wl.Device(sanitize=tools)
    kernel = gpu.compile(
        "__global__ void add(const int *x, const int *y, int *z) {"
        "  int i = threadIdx.x; z[i] = x[i] + y[i]; }"
    )["add"]
    x, z = np.ones(32, np.int32), gpu.zeros(32, np.int32)
    found = kernel[1, 32](x, gpu.empty(32, np.int32, "y"), z).findings
    assert [(one.kind, one.buffer) for one in found] == [("uninitialized read", "y")] * (
        "init" in tools
    )


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_shared_memory_that_a_part_of_the_threads_wrote(engine: str) -> None:
    gpu = wl.Device(engine=engine, sanitize=("init",))
    kernel = gpu.compile(
        "__global__ void part(int *out, int written) {"
        "  __shared__ int tile[64]; int i = threadIdx.x;"
        "  if (i < written) tile[i] = i;"
        "  __syncthreads();"
        "  out[i] = tile[63 - i] + 1; }"
    )["part"]
    assert kernel[3, 64](np.zeros(64, np.int32), np.int32(64)).findings == ()
    (found,) = kernel[3, 64](np.zeros(64, np.int32), np.int32(63)).findings
    assert (found.kind, found.threads[0].thread, found.count) == (
        "uninitialized read",
        (0, 0, 0),
        3,
    )


def test_kernels_with_textures_and_surfaces_are_checked() -> None:
    gpu = wl.Device(sanitize=("race", "init"))
    kernel = gpu.compile(
        "__global__ void fetch(cudaTextureObject_t t, float *out) {"
        "  out[threadIdx.x / 2] = tex1Dfetch<float>(t, threadIdx.x); }"
        "__global__ void put(cudaSurfaceObject_t s, float *out) {"
        "  float v; surf2Dread(&v, s, 4 * threadIdx.x, 0);"
        "  surf2Dwrite(v + 1, s, 4 * threadIdx.x, 0);"
        "  out[threadIdx.x / 2] = v + threadIdx.x; }"
    )
    for name in ("fetch", "put"):
        given = LaunchInputs((1, 1, 1), (32, 1, 1), bytes(64), (), lambda address: None)
        found_accesses = global_accesses(kernel[name].program, given)
        assert [access.op for access in found_accesses] == ["store"]
