"""Tests which launches have blocks that are independent in global memory."""

from __future__ import annotations

import struct
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warploom as wl
from warploom.analysis.linear.affine import MemoryAccess, global_accesses
from warploom.analysis.linear.footprints import BlockConflicts, are_disjoint, block_conflicts
from warploom.analysis.linear.forms import IndexVariable, form
from warploom.analysis.linear.joins import LinearValue
from warploom.analysis.linear.register_values import LaunchInputs, block_indices

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
N = 4096


@pytest.fixture(scope="module")
def gpu() -> wl.Device:
    return wl.Device("a100")


def dims(given: int | tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*(given if isinstance(given, tuple) else (given,)), 1, 1)[:3]
    return x, y, z


def reason(gpu: wl.Device, module: wl.Module, name: str, grid, block, *args) -> str:
    """Returns why the blocks of a launch conflict (`conflicts`)."""
    return conflicts(gpu, module, name, grid, block, *args).reason


def conflicts(gpu: wl.Device, module: wl.Module, name: str, grid, block, *args) -> BlockConflicts:
    """Returns how the blocks of a launch conflict; arrays are passed as the addresses of new
    buffers."""
    kernel = module[name]
    program = kernel.program
    data = bytearray(program.parameter_bytes)
    buffers: list[wl.Buffer] = []
    for parameter, value in zip(kernel.function.parameters, args, strict=True):
        place = program.slots[parameter.name]
        if isinstance(value, np.ndarray):
            buffers.append(gpu.to_device(value))
            value = buffers[-1].address
        data[place.offset : place.offset + place.size] = int(value).to_bytes(place.size, "little")

    def allocation_of(address: int) -> range | None:
        found = gpu.memory.find(address)
        return range(found.address, found.address + found.size) if found else None

    blocks, threads = dims(grid), dims(block)
    variables = kernel.image.addresses(program.globals)
    launch = LaunchInputs(blocks, threads, bytes(data), variables, allocation_of)
    return block_conflicts(program, launch)


def floats(n: int = N) -> np.ndarray:
    return np.zeros(n, np.float32)


def test_examples_with_independent_blocks(gpu: wl.Device) -> None:
    for file, name, grid, block, args in (
        ("saxpy.cu", "saxpy", 16, 256, (N, 0, floats(), floats())),
        ("transpose.cu", "transpose_naive", (2, 2), (32, 8), (floats(), floats(), 64)),
        ("transpose.cu", "transpose_padded", (2, 2), (32, 8), (floats(), floats(), 64)),
        ("matmul.cu", "matmul_naive", (4, 4), (16, 16), (floats(), floats(), floats(), 64)),
        ("matmul.cu", "matmul_tiled", (4, 4), (16, 16), (floats(), floats(), floats(), 64)),
        ("mandelbrot.cu", "mandelbrot", (2, 8), (32, 8), (floats(), 64, 64, 10)),
        ("reduction.cu", "reduce", 16, 256, (floats(), floats(16), N)),
    ):
        assert reason(gpu, gpu.load(EXAMPLES / file), name, grid, block, *args) == "", name


KERNELS = """
#define I (blockIdx.x * blockDim.x + threadIdx.x)
extern "C" {
__global__ void strided(float *y, int n) {
    for (int i = I; i < n; i += gridDim.x * blockDim.x) y[i] = 2 * y[i];
}
__global__ void by_block(int *y) { if (threadIdx.x == 0) y[blockIdx.x] = 1; }
__device__ int slots[64];
__global__ void own_variable() { slots[I] = I; }
__global__ void lanes(int *y) { y[blockIdx.x * 32 + (threadIdx.x & 31)] = 1; }
__global__ void columns(int *y, int pitch) {
    for (int row = 0; row < 4; row++) y[(blockIdx.y * 4 + row) * pitch + I] = 1;
}
__global__ void guarded_tile(float *y, const float *x, int w, int h) {
    int c = I, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (c >= w || r >= h) return;
    y[r * w + c] = x[r * w + c];
}
__global__ void unguarded_tile(float *y, int w) {
    y[(blockIdx.y * blockDim.y + threadIdx.y) * w + I] = 1;
}
__global__ void first_block(float *y) { if (blockIdx.x == 0) y[threadIdx.x] = y[threadIdx.x + 1]; }
__global__ void one_place(int *y) { y[0] = I; }
__global__ void pairs(int *y) { y[I / 2] = I; }
__global__ void quarters(int *y) { y[I / 64] = I; }
__global__ void warps(int *y) { if (threadIdx.x % 32 == 0) y[I / 32] = I; }
__global__ void remainders(int *y) { y[I % 48] = I; }
__global__ void results(int *y, int *x) { x[I] = atomicAdd(y, 1); }
__global__ void sums(int *y) { atomicAdd(y + threadIdx.x, 1); }
__global__ void greatest(int *y) { atomicMax(y, I); atomicMax(y + 1, -I); }
__global__ void mixed(int *y) { atomicMax(y, I); atomicAdd(y, 1); }
__global__ void apart(int *y) { atomicMax(y + 2 * I, 1); atomicAdd(y + 2 * I + 1, 1); }
__global__ void looked_at(int *y, int *x) { atomicAdd(y, 1); x[I] = y[0]; }
__global__ void rounded(float *y) { atomicAdd(y, 1.0f); }
__global__ void one_thread(int *y) { if (threadIdx.x == 0 && blockIdx.x == 0) *y = 1; }
__global__ void one_column(int *y) { if (threadIdx.x == 0 || blockIdx.x == 0) *y = 1; }
__global__ void indexed(float *y, const float *x, const long long *i) { y[I] = x[i[I]]; }
__global__ void indexed_bytes(char *y, const char *x, const long long *i) { y[I] = x[i[I]]; }
__device__ __noinline__ float scaled(float x, float by) { return x * by; }
__device__ __noinline__ void put(int *y, int i) { y[i] = i; }
__global__ void calling(float *y, const float *x) { y[I] = scaled(x[I], 2) + scaled(x[I], 3); }
__global__ void putting(int *y) { put(y, threadIdx.x); }
__global__ void last(int *y) { atomicExch(y, I); }
__global__ void rounded_apart(float *y) { atomicAdd(y, y[1 + I]); }
__global__ void rounded_beside(float *y) { atomicAdd(y, y[I]); }
__global__ void rounded_own(float *y) { atomicAdd(y + I, 1.0f); y[I] += 1.0f; }
__global__ void rounded_results(float *y, float *x) { x[I] = atomicAdd(y, 1.0f); }
__global__ void shifted(float *y) { y[I] = y[I + 1]; }
__global__ void indirect(int *y, const int *x) { y[x[I]] = 1; }
__global__ void counts(int *y) { atomicAdd(y + I, 1); }
__global__ void pointed(int **y) { y[I][0] = 1; }
__global__ void rows_of_blocks(float *y, int columns, int end) {
    y += (size_t)blockIdx.x * columns;
    for (int c = threadIdx.x; c < end; c += blockDim.x) y[c] = 2 * y[c];
}
__global__ void rows_of_warps(float *y, int columns, int end) {
    int lane = threadIdx.x % 32;
    y += (size_t)(I / 32) * columns;
#pragma unroll 1
    for (int c = lane; c < end; c += 32) y[c] = 2 * y[c];
}
__global__ void rows_by_pointer(float *y, int columns, int end) {
    float *at = y + (size_t)blockIdx.x * columns, *last = at + end;
#pragma unroll 1
    for (at += threadIdx.x; at < last; at += blockDim.x) *at = 1;
}
__global__ void rows_counted_down(float *y, int columns, int end) {
    float *at = y + (size_t)blockIdx.x * columns + threadIdx.x;
#pragma unroll 1
    for (int left = end - (int)threadIdx.x; left > 0; left -= blockDim.x, at += blockDim.x)
        *at = 1;
}
__global__ void rows_of_threads(float *y, int columns, int end) {
#pragma unroll 1
    for (int c = 0; c < end; c++) y[(int)I * columns + c] = c;
}
__global__ void from_the_end(float *y, int n) { if ((int)I < n) y[n - 1 - (int)I] = 1; }
__global__ void in_strips(float *y, int rows, int columns) {
    int t = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
    for (int i = t; i < 1024; i += threads) {
        int r = blockIdx.y * 32 + i / 32, c = blockIdx.x * 32 + i % 32;
        if (r < rows && c < columns) y[r * columns + c] = 1;
    }
}
__global__ void in_longer_strips(float *y, int rows, int columns) {
    int t = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
    for (int i = t; i < 1056; i += threads) {
        int r = blockIdx.y * 32 + i / 32, c = blockIdx.x * 32 + i % 32;
        if (r < rows && c < columns) y[r * columns + c] = 1;
    }
}
}
"""


def test_launches_with_independent_blocks(gpu: wl.Device) -> None:
    module = gpu.compile(KERNELS)
    assert reason(gpu, module, "strided", 4, 256, floats(), N) == ""
    assert reason(gpu, module, "by_block", 16, 64, floats()) == ""
    assert reason(gpu, module, "own_variable", 2, 32) == ""
    assert reason(gpu, module, "lanes", 8, 64, floats()) == ""
    assert reason(gpu, module, "columns", (2, 4), 32, floats(), 64) == ""
    # Both threads of a pair, and all of a warp, are in one block of 32.
    assert reason(gpu, module, "pairs", 2, 32, floats()) == ""
    assert reason(gpu, module, "warps", 2, 256, floats()) == ""


def test_atomics_that_leave_the_same_in_any_order(gpu: wl.Device) -> None:
    """Integers are added, and compared, with one result in any order, if no thread sees a value
    between; one that is first compared and then added to has not."""
    module = gpu.compile(KERNELS)
    for name in ("counts", "sums", "greatest", "apart"):
        assert reason(gpu, module, name, 2, 32, floats()) == "", name


def test_updates_that_nothing_else_sees_can_be_late(gpu: wl.Device) -> None:
    """Sums of rounded numbers, and the last of several exchanges, depend on the order. Blocks are
    independent if these are performed in that order, later, which nothing can see that accesses
    other bytes: not the sum itself, in whatever block."""
    module = gpu.compile(KERNELS)
    for name, *args in (("rounded", floats()), ("last", floats()), ("rounded_apart", floats())):
        found = conflicts(gpu, module, name, 2, 32, *args)
        assert (found.reason, len(found.late_updates)) == ("", 1), name
    assert not conflicts(gpu, module, "counts", 2, 32, floats()).late_updates


def test_guards_hold_for_the_addresses_that_they_guard(gpu: wl.Device) -> None:
    """Rows of 50 elements under blocks 16 wide: the last block of a row would write 14 elements
    of the next one, but for the guard."""
    module = gpu.compile(KERNELS)
    arguments = (floats(), floats(), 50, 40)
    assert reason(gpu, module, "guarded_tile", (4, 10), (16, 4), *arguments) == ""
    conflict = reason(gpu, module, "unguarded_tile", (4, 10), (16, 4), floats(), 50)
    assert "the same addresses" in conflict
    # Only one block stores.
    assert reason(gpu, module, "first_block", 4, 32, floats()) == ""


def test_one_thread_of_all_conflicts_with_none(gpu: wl.Device) -> None:
    """Compilers make `a == 0 && b == 0` into `(a | b) == 0`."""
    module = gpu.compile(KERNELS)
    assert reason(gpu, module, "one_thread", 4, 32, floats()) == ""
    assert "the same addresses" in reason(gpu, module, "one_column", 4, 32, floats())


def test_functions_that_kernels_call_are_followed(gpu: wl.Device) -> None:
    """But addresses that are passed to them are unknown."""
    module = gpu.compile(KERNELS)
    assert reason(gpu, module, "calling", 4, 32, floats(), floats()) == ""
    assert "cannot be analyzed" in reason(gpu, module, "putting", 4, 32, floats())


def test_a_multiple_of_a_number_from_memory_is_no_pointer(gpu: wl.Device) -> None:
    """So `x + 4 * i` is in x. Of `x + i` it is not known which one is the pointer."""
    module, arrays = gpu.compile(KERNELS), (floats(), floats(), floats())
    assert reason(gpu, module, "indexed", 4, 32, *arrays) == ""
    assert "cannot be analyzed" in reason(gpu, module, "indexed_bytes", 4, 32, *arrays)


ENTERED_IN_THE_MIDDLE = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u32 rows)
{
  .reg .b32 %i, %r<4>; .reg .b64 %p, %q; .reg .pred %b;
  ld.param.u64 %p, [x];
  ld.param.u32 %r0, [rows];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r1, %r1, %r2, %r3;
  mul.wide.s32 %q, %r1, 4;
  add.s64 %p, %p, %q;
  mov.u32 %i, 0;
  bra.uni middle;
again:
  st.global.u32 [%p], %i;
  add.s64 %p, %p, 512;
  add.s32 %i, %i, 1;
middle:
  and.b32 %r2, %i, 1;
  setp.eq.s32 %b, %r2, 0;
  @%b bra even;
  add.s32 %r3, %r3, 1;
even:
  setp.lt.s32 %b, %i, %r0;
  @%b bra again;
  ret;
}
"""


def test_loops_may_be_entered_in_the_middle_of_their_text(gpu: wl.Device) -> None:
    """128 threads write rows of 512 bytes, each a column; 129 threads would meet."""
    module = gpu.compile(ENTERED_IN_THE_MIDDLE, "ptx")
    assert reason(gpu, module, "k", 4, 32, floats(), 20) == ""
    assert "the same addresses" in reason(gpu, module, "k", 5, 32, floats(), 20)


ROWS = ("rows_of_blocks", "rows_of_warps", "rows_by_pointer", "rows_counted_down",
        "rows_of_threads")  # fmt: skip


@pytest.mark.parametrize("columns", [768, 1000])
@pytest.mark.parametrize("name", ROWS)
def test_rows_that_loops_write_are_disjoint(gpu: wl.Device, name: str, columns: int) -> None:
    """A loop that ends with its row writes no element of the next one, one that ends an element
    later does. NVRTC unrolls the loop of `rows_of_blocks`: with 1,000 columns, threads run three or
    four iterations, of which a loop of `n % 4` comes first."""
    module, y = gpu.compile(KERNELS), floats(64 * 1000 + 1)
    assert reason(gpu, module, name, 4, 256 if name != ROWS[-1] else 8, y, columns, columns) == ""
    after = reason(gpu, module, name, 4, 256 if name != ROWS[-1] else 8, y, columns, columns + 1)
    assert "the same addresses" in after


def test_elements_from_the_end_are_disjoint(gpu: wl.Device) -> None:
    assert reason(gpu, gpu.compile(KERNELS), "from_the_end", 4, 256, floats(1000), 1000) == ""


def test_tiles_that_blocks_walk_over_are_disjoint(gpu: wl.Device) -> None:
    """A block writes 32 rows of 32 elements in four strips; with one row more, rows of two."""
    module, y = gpu.compile(KERNELS), floats(1000 * 1000)
    launch = (32, 32), (32, 8), y, 1000, 1000
    assert reason(gpu, module, "in_strips", *launch) == ""
    assert "the same addresses" in reason(gpu, module, "in_longer_strips", *launch)


@pytest.mark.parametrize(
    ("name", "grid", "args", "expected"),
    [
        ("one_place", 2, (floats(),), "the same addresses"),
        ("quarters", 2, (floats(),), "the same addresses"),
        ("shifted", 2, (floats(),), "the same addresses"),
        ("indirect", 2, (floats(), floats()), "the same addresses"),
        ("remainders", 2, (floats(),), "the same addresses"),
        ("results", 2, (floats(), floats()), "the order of atomics"),
        ("rounded_beside", 2, (floats(),), "the order of atomics"),
        ("rounded_own", 2, (floats(),), "the order of atomics"),
        ("rounded_results", 2, (floats(), floats()), "the order of atomics"),
        ("mixed", 2, (floats(),), "the same addresses as the atomic"),
        ("looked_at", 2, (floats(), floats()), "the same addresses as the atomic"),
        ("pointed", 2, (floats(),), "cannot be analyzed"),
        # Rows of 48 are shorter than the 64 elements that two blocks of a row reach.
        ("columns", (2, 4), (floats(), 48), "the same addresses"),
    ],
)
def test_launches_with_conflicting_blocks(gpu: wl.Device, name, grid, args, expected) -> None:
    assert expected in reason(gpu, gpu.compile(KERNELS), name, grid, 32, *args)


def test_a_clock_depends_on_block_order(gpu: wl.Device) -> None:
    source = 'extern "C" __global__ void k(long long *y) { y[blockIdx.x] = clock64(); }'
    assert "a value that depends on block order" in reason(
        gpu, gpu.compile(source), "k", 4, 32, floats()
    )


def test_aliasing_parameters_conflict(gpu: wl.Device) -> None:
    """Two parameters that point into one buffer refer to the same allocation."""
    source = 'extern "C" __global__ void k(float *y, const float *x) { y[blockIdx.x] = x[1]; }'
    module = gpu.compile(source)
    both = gpu.zeros(8, np.float32)
    alone = reason(gpu, module, "k", 4, 32, floats(8), floats(8))
    shared = reason(gpu, module, "k", 4, 32, both.address, both.address)
    assert (alone, "the same addresses" in shared) == ("", True)


@settings(max_examples=300)
@given(st.data())
def test_disjoint_blocks_share_no_byte(data: st.DataObject) -> None:
    """Enumerates every byte that each block touches: the test must be right whenever it returns
    True."""
    size = data.draw(st.sampled_from([1, 2, 4]))
    places = data.draw(st.lists(st.integers(0, 12), min_size=1, max_size=3))
    grid = (data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3)), 1)
    threads = [IndexVariable(f"v{i}", data.draw(st.integers(2, 3))) for i in range(2)]
    digits = {
        variable: data.draw(st.integers(-20, 20)) for variable in (*threads, *block_indices(grid))
    }
    memory_accesses = [
        MemoryAccess(0, "store", size, LinearValue(form(1000 + place, digits), frozenset((0,))))
        for place in places
    ]
    of_block = block_indices(grid)
    owners: dict[int, tuple[int, ...]] = {}
    disjoint = True
    for chosen in product(*(range(v.extent or 1) for v in digits)):
        values = dict(zip(digits, chosen, strict=True))
        block = tuple(values[v] for v in of_block)
        for place in places:
            start = 1000 + place + sum(s * values[v] for v, s in digits.items())
            for byte in range(start, start + size):
                disjoint &= owners.setdefault(byte, block) == block
    if are_disjoint(memory_accesses, block_indices(grid)):
        assert disjoint


LOOP = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u32 n)
{{
  .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .b16 %h<2>; .reg .pred %p<2>;
  ld.param.u64 %d0, [x];
  ld.param.u32 %r1, [n];
  mov.u32 %r0, 0;
  mov.u32 %r2, 0;
again:
  STEP
  mul.wide.s32 %d1, %r0, 4;
  add.s64 %d1, %d0, %d1;
  st.global.u32 [%d1], %r2;
  add.s32 %r2, %r2, 1;
  setp.lt.s32 %p0, %r2, %r1;
  @%p0 bra again;
  ret;
}}
"""


@pytest.mark.parametrize(
    ("step", "is_known"),
    [
        ("add.s32 %r0, %r0, 4;", True),
        ("add.s32 %r0, %r0, 4; neg.s32 %r0, %r0;", False),  # 0, -4, 0, -4, ...
        ("add.s32 %r0, %r0, 4; cvt.u16.u32 %h0, %r0; cvt.u32.u16 %r0, %h0;", False),  # wraps
    ],
)
def test_steps_of_loop_registers(gpu: wl.Device, step: str, is_known: bool) -> None:
    """Steps of one sign have a form; registers that change by different amounts do not."""
    program = gpu.compile(LOOP.format().replace("STEP", step), "ptx")["k"].program
    parameters = struct.pack("<QI", 0, 100_000)
    given = LaunchInputs((1, 1, 1), (1, 1, 1), parameters, (), lambda at: None)
    (access,) = global_accesses(program, given)
    assert (access.address.form is not None) == is_known
