"""Patterns that the rules of advice distinguish: of each kind two that need a remedy, with figures
worked out by hand, and one that needs none. A warp has 32 lanes, a sector 32 bytes."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import warploom as wl
from warploom.report.advice import Advice

SOURCE = """
struct Vec3 { float x, y, z; };
#define I (blockIdx.x * blockDim.x + threadIdx.x)

KERNEL row_by_x(float *out, const float *in, int w) {  // threadIdx.x is the row
    int row = blockIdx.x * blockDim.x + threadIdx.x, col = blockIdx.y * blockDim.y + threadIdx.y;
    out[row * w + col] = in[row * w + col] * 2;
}
KERNEL plane_by_x(float *out, const float *in, int w) {  // of 3 indices the first is the largest
    int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
    out[(x * w + y) * 4 + z] = in[(x * w + y) * 4 + z];
}
KERNEL col_by_x(float *out, const float *in, int w) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    out[row * w + col] = in[row * w + col] * 2;
}
KERNEL bytes_by_8(unsigned char *out, const unsigned char *in, int w) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    out[row * w + col] = 255 - in[row * w + col];
}
KERNEL row_sum(float *out, const float *in, int w) {  // each thread sums a row
    float s = 0;
#pragma unroll 1
    for (int k = 0; k < w; k++) s += in[I * w + k];
    out[I] = s;
}
KERNEL row_of_4(float *out, const float *in) {  // unrolled: no structure
    float s = 0;
    for (int k = 0; k < 8; k++) s += in[I * 8 + k];
    out[I] = s;
}
KERNEL column_sum(float *out, const float *in, int w) {  // lanes are neighbors in each row
    float s = 0;
    for (int k = 0; k < w; k++) s += in[k * w + I];
    out[I] = s;
}
KERNEL transpose(float *out, const float *in, int w) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    out[x * w + y] = in[y * w + x];
}
KERNEL column_by_block(float *out, const float *in, int w) {
    out[threadIdx.x * w + blockIdx.x] = in[threadIdx.x * w + blockIdx.x];
}
KERNEL every_second(float *out, const float *in) { out[I] = in[2 * I]; }
KERNEL reals(float2 *out, const float *in) {
    out[I].x = in[I];
}
KERNEL vec3(float *out, const Vec3 *in) { out[I] = in[I].x + in[I].y + in[I].z; }
KERNEL shifted(float *out, const float *in) { out[I] = in[I + 1]; }
KERNEL shifted_out(float *out, const float *in) { out[I + 3] = in[I]; }
KERNEL by_index(float *out, const float *in, const int *index) { out[I] = in[index[I]]; }
KERNEL by_hash(float *out, const float *in, int n) { out[I] = in[(I * 2654435761u >> 7) % n]; }

KERNEL odd_lanes(float *x) {
    float v = x[I];
    if (threadIdx.x % 2)
#pragma unroll 1
        for (int k = 0; k < 40; k++) v = v * v + 1;
    x[I] = v;
}
KERNEL ragged(float *x, const int *n) {
    float v = x[I];
#pragma unroll 1
    for (int k = 0; k < n[I]; k++) v = v * v + 1;
    x[I] = v;
}
KERNEL leader(float *x) {
    float v = x[I];
#pragma unroll 1
    for (int k = 0; k < 40; k++) v = v * v + 1;
    x[I] = v;
    if (threadIdx.x == 0) x[I] = v + 1;
}

KERNEL total(int *out, const int *in) { atomicAdd(out, in[I]); }
KERNEL total_by_warp(int *out, const int *in) {
    int v = in[I];
    for (int d = 16; d; d /= 2) v += __shfl_down_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0) atomicAdd(out, v);
}
KERNEL total_by_block(int *out, const int *in) {
    __shared__ int s[256];
    s[threadIdx.x] = in[I];
    for (int d = 128; d; d /= 2) {
        __syncthreads();
        if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    }
    if (threadIdx.x == 0) atomicAdd(out, s[0]);
}
KERNEL few_bins(int *bins, const int *in) { atomicAdd(&bins[in[I]], 1); }

KERNEL chosen(float *out, const float *in, const int *at) {
    float own[32];
    for (int k = 0; k < 32; k++) own[k] = in[32 * I + k];
    out[I] = own[at[I]];
}
KERNEL sorted(int *out, const int *in) {
    int own[16];
    for (int k = 0; k < 16; k++) own[k] = in[k * 1024 + I];
#pragma unroll 1
    for (int i = 1; i < 16; i++)
#pragma unroll 1
        for (int j = i; j > 0 && own[j - 1] > own[j]; j--) {
            int t = own[j]; own[j] = own[j - 1]; own[j - 1] = t;
        }
    for (int k = 0; k < 16; k++) out[k * 1024 + I] = own[k];
}
KERNEL unrolled(float *out, const float *in) {
    float own[8], s = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) own[k] = in[k * 1024 + I];
#pragma unroll
    for (int k = 0; k < 8; k++) s += own[7 - k] * k;
    out[I] = s;
}

__device__ float sum_of_block(float *part, float v) {
    part[threadIdx.x] = v;
    __syncthreads();
    for (int s = 128; s > 0; s /= 2) {
        if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    float sum = part[0];
    __syncthreads();
    return sum;
}
__device__ float sum_of_warp(float v) {
    for (int s = 16; s > 0; s /= 2) v += __shfl_xor_sync(~0u, v, s);
    return v;
}
KERNEL tree_by_piece(float *out, const float *in, int n) {
    __shared__ float part[256];
    float total = 0;
    for (int k = 0; k < n; k++) total += sum_of_block(part, in[k * 256 + threadIdx.x]);
    out[I] = total;
}
KERNEL shuffles_by_piece(float *out, const float *in, int n) {
    float total = 0;
    for (int k = 0; k < n; k++) total += sum_of_warp(in[k * 256 + threadIdx.x]);
    out[I] = total;
}
KERNEL shuffles_after(float *out, const float *in, int n) {
    float total = 0;
    for (int k = 0; k < n; k++) total += in[k * 256 + threadIdx.x];
    out[I] = sum_of_warp(total);
}
KERNEL sums_so_far(float *out, const float *in, int n) {  // each iteration needs the total
    __shared__ float part[256];
    float total = 0;
    for (int k = 0; k < n; k++) {
        total += sum_of_block(part, in[k * 256 + threadIdx.x]);
        out[(blockIdx.x * n + k) * 256 + threadIdx.x] = total;
    }
}
KERNEL largest_by_piece(float *out, const float *in, int n) {  // sums maxima
    float total = 0;
    for (int k = 0; k < n; k++) {
        float v = in[k * 256 + threadIdx.x];
        for (int s = 16; s > 0; s /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, s));
        total += v;
    }
    out[I] = total;
}
KERNEL filter_in_tiles(float *out, const float *in, int n) {  // no thread sends on what it received
    __shared__ float part[256];
    float total = 0;
    for (int k = 0; k < n; k++) {
        part[threadIdx.x] = in[k * 256 + threadIdx.x];
        __syncthreads();
        total += part[threadIdx.x ^ 1];
        __syncthreads();
        part[threadIdx.x] = in[k * 256 + threadIdx.x + 1];
        __syncthreads();
        total += part[threadIdx.x ^ 1];
        __syncthreads();
    }
    out[I] = total;
}
KERNEL tone(float *out, const float *in) {  // doubles from a constant in one line to another
    float y = in[I];
    y *= 0.15;
    float s;
    if (y < 0.003) s = 12.92 * y;
    else s = 1.055 * pow((double)y, 1.0 / 2.4) - 0.055;
    out[I] = s;
}
KERNEL in_doubles(double *out, const double *in) { out[I] = pow(in[I], 0.4) * (float)I; }
KERNEL row_products(unsigned *out, const unsigned char *rows, const unsigned char *x) {
    unsigned s = 0;  // a warp has a row of 512 bytes
    for (int k = threadIdx.x & 31; k < 512; k += 32)
        s += (unsigned)rows[(I / 32) * 512 + k] * x[k];
    s = __reduce_add_sync(~0u, s);
    if ((threadIdx.x & 31) == 0) out[I / 32] = s;
}
KERNEL byte_by_warp(unsigned *out, const unsigned char *in) {  // all lanes load the same byte
    out[I] = in[I / 32];
}
KERNEL invert(unsigned char *out, const unsigned char *in) { out[I] = 255 - in[I]; }
KERNEL halves(short *out, const short *in) { out[I] = in[I] + 1; }
KERNEL words(int *out, const int *in) { out[I] = in[I] + 1; }

KERNEL sum_in_memory(float *out, const float *in, int w) {
#pragma unroll 1
    for (int k = 0; k < w; k++) out[I] += in[k * 1024 + I];
}
KERNEL best_in_memory(int *out, const int *in, int w) {
    out[I] = 0;
#pragma unroll 1
    for (int k = 0; k < w; k++) out[I] = out[I] * 3 + in[k * 1024 + I];
}
KERNEL sum_in_register(float *out, const float *in, int w) {
    float s = 0;
#pragma unroll 1
    for (int k = 0; k < w; k++) s += in[k * 1024 + I];
    out[I] = s;
}

KERNEL barrier_at_end(float *out, const float *in) { out[I] = in[I] * 2; __syncthreads(); }
KERNEL barrier_twice(float *out, const float *in) {
    __shared__ float s[256];
    s[threadIdx.x] = in[I];
    __syncthreads();
    __syncthreads();
    out[I] = s[255 - threadIdx.x];
}
KERNEL barrier_once(float *out, const float *in) {
    __shared__ float s[256];
    s[threadIdx.x] = in[I];
    __syncthreads();
    out[I] = s[255 - threadIdx.x];
}

KERNEL barrier_for_own(float *out, const float *in) {  // each thread uses its own element
    __shared__ float s[256];
    s[threadIdx.x] = in[I];
    for (int k = 0; k < 64; k++) {
        s[threadIdx.x] = s[threadIdx.x] * 2;
        __syncthreads();
    }
    out[I] = s[threadIdx.x];
}
KERNEL barrier_for_rows(float *out, const float *in) {  // all threads of a row share an element
    __shared__ float s[8];
    s[threadIdx.y] = in[I];
    for (int k = 0; k < 64; k++) {
        s[threadIdx.y] = s[threadIdx.y] * 2;
        __syncthreads();
    }
    out[I] = s[threadIdx.y];
}

KERNEL scaled(float *out, volatile float *scale) {
#pragma unroll 1
    for (int k = 0; k < 64; k++) out[k * 1024 + I] *= *scale;
}
KERNEL scaled_by_alias(float *out, float *scale) {
#pragma unroll 1
    for (int k = 0; k < 64; k++) out[k * 1024 + I] *= *scale;
}
KERNEL scaled_by_value(float *out, float *scale) {
    float by = *scale;
#pragma unroll 1
    for (int k = 0; k < 64; k++) out[k * 1024 + I] *= by;
}
KERNEL waits(float *out, volatile float *flag) {
    while (*flag == 0) out[I] += 1;
}
KERNEL scaled_in_steps(float *out, float *scale) {  // thread 0 changes it in each step
#pragma unroll 1
    for (int k = 0; k < 64; k++) {
        out[k * 1024 + I] *= *scale;
        __syncthreads();
        if (threadIdx.x == 0) *scale += 1;
        __syncthreads();
    }
}

KERNEL tree_in_a_loop(float *out, const float *in) {
    __shared__ float s[256];
    s[threadIdx.x] = in[I];
    __syncthreads();
    for (int by = blockDim.x / 2; by > 0; by /= 2) {
        if (threadIdx.x < by) s[threadIdx.x] += s[threadIdx.x + by];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}

KERNEL uses_1k(float *out, const float *in) {
    extern __shared__ float d[];
    d[threadIdx.x] = in[I];
    __syncthreads();
    out[I] = d[255 - threadIdx.x];
}
KERNEL half_used(float *out, const float *in) {
    __shared__ float s[20000 / 4];
    s[threadIdx.x] = in[I];
    __syncthreads();
    out[I] = s[255 - threadIdx.x];
}
""".replace("KERNEL", 'extern "C" __global__ void')

WIDTH = 1024


@cache
def module() -> tuple[wl.Device, wl.Module]:
    gpu = wl.Device("a100")
    return gpu, gpu.compile(SOURCE, name="patterns.cu")


def floats(count: int = WIDTH * WIDTH) -> np.ndarray:
    return np.ones(count, np.float32)


def integers(count: int = WIDTH * WIDTH, high: int = 1) -> np.ndarray:
    return np.random.default_rng(5).integers(0, high, count).astype(np.int32)


def small(dtype: type) -> np.ndarray:
    return np.ones(WIDTH * WIDTH, dtype)


def advice(name: str, grid: object, block: object, *args: object, shared: int = 0) -> list[Advice]:
    """Returns the advice on a launch, in its order."""
    _, kernels = module()
    run = kernels[name][grid, block, 0, shared](*args)
    return list(run.summary.advice)


def found(rule: str, *launched: object, shared: int = 0) -> Advice:
    """Returns the advice of a rule that must be the first of those on lines."""
    given = advice(*launched, shared=shared)  # pyright: ignore[reportArgumentType]
    assert rule in {one.rule for one in given}, [one.rule for one in given]
    return next(one for one in given if one.rule == rule)


PIXELS = small(np.uint8)


@pytest.mark.parametrize(
    ("rule", "launch", "evidence", "remedy"),
    [
        # One row is 4,096 bytes. Lanes differ in x by a row, and in y by an element.
        (
            "swapped thread indices",
            ("row_by_x", (32, 32), (32, 8), floats(), floats(), WIDTH),
            "threadIdx.x has a stride of 4,096 bytes, and threadIdx.y a stride of 4 bytes",
            "Swap threadIdx.x and threadIdx.y",
        ),
        (
            "swapped thread indices",
            ("row_by_x", (64, 64), (16, 16), floats(), floats(), WIDTH),
            "threadIdx.x has a stride of 4,096 bytes, and threadIdx.y a stride of 4 bytes",
            "Swap threadIdx.x and threadIdx.y",
        ),
        # (x * 1024 + y) * 4 + z floats: 16,384 bytes along x, 4 along z.
        (
            "swapped thread indices",
            ("plane_by_x", 64, (32, 4, 4), floats(), floats(), WIDTH),
            "threadIdx.x has a stride of 16,384 bytes, and threadIdx.z a stride of 4 bytes",
            "Swap threadIdx.x and threadIdx.z",
        ),
        # 8 bytes of each of four rows: a quarter of each sector.
        (
            "narrow block",
            ("bytes_by_8", (128, 128), (8, 8), PIXELS, PIXELS, WIDTH),
            "a warp reads 4 separate pieces of 8 bytes",
            "Make the block 32 threads wide (32x2)",
        ),
        (
            "narrow block",
            ("col_by_x", (1024, 8), (1, 128), floats(), floats(), WIDTH),
            "the block is 1 thread wide, so lane addresses are 4,096 bytes apart",
            "(32x4 instead of 1x128)",
        ),
        # Each thread walks along its own row of 256 floats.
        (
            "strided access",
            ("row_sum", 16, 256, floats(), floats(), 256),
            "lane addresses are 1,024 bytes apart, and each thread accesses consecutive elements",
            "Give each row to a warp",
        ),
        (
            "strided access",
            ("row_of_4", 64, 256, floats(), floats()),
            "lane addresses are 32 bytes apart, and each thread loads 8 consecutive elements",
            "Give each row to 8 lanes",
        ),
        (
            "strided access",
            ("transpose", (32, 128), (32, 8), floats(), floats(), WIDTH),
            "lane addresses are 4,096 bytes apart, as in a column of a matrix",
            "Stage a 32x33 tile in shared memory",
        ),
        (
            "strided access",
            ("column_by_block", 1024, 256, floats(), floats(), WIDTH),
            "the stride of blockIdx.x is 4 bytes",
            "Let threadIdx.x step through the adjacent elements, as blockIdx.x does now",
        ),
        (
            "strided access",
            ("every_second", 256, 256, floats(), floats()),
            "lane addresses are 8 bytes apart, but each lane uses only 4",
            "load both elements of a pair at once (float2)",
        ),
        (
            "strided access",
            ("reals", 256, 256, floats(), floats()),
            "lane addresses are 8 bytes apart",
            "(float2)",
        ),
        (
            "array of structures",
            ("vec3", 256, 256, floats(), floats()),
            "an array of structures of 12 bytes",
            "Keep each field in a separate array (structure of arrays).",
        ),
        # 128 bytes that begin 4 (12) bytes after a sector touch 5 sectors.
        (
            "misaligned access",
            ("shifted", 256, 256, floats(), floats()),
            "the worst request took 5 transactions where 4 would do",
            "Align arrays and rows to 32 bytes",
        ),
        (
            "misaligned access",
            ("shifted_out", 256, 256, floats(), floats()),
            "12 bytes after a sector boundary",
            "Align arrays and rows to 32 bytes",
        ),
        # 33 floats are 132 bytes: all but one of eight blocks begin inside a sector.
        (
            "misaligned blocks",
            ("shifted", 256, 33, floats(), floats()),
            "a block of 33 threads covers 132 bytes",
            "Make the block size a multiple of 32",
        ),
        (
            "scattered access",
            ("by_index", 256, 256, floats(), floats(), integers(high=WIDTH * WIDTH)),
            "the index is loaded at patterns.cu:",
            "Sort the indices",
        ),
        (
            "scattered access",
            ("by_hash", 256, 256, floats(), floats(), WIDTH * WIDTH),
            "the index is computed",
            "Compute the index so that neighboring lanes",
        ),
        # Each of 2,048 warps loses half of 40 iterations.
        (
            "divergence within warps",
            ("odd_lanes", 256, 256, floats()),
            "2,048 of the 2,048 times",
            "Let whole warps take one side",
        ),
        (
            "divergence within warps",
            ("ragged", 256, 256, floats(), integers(high=64)),
            "issue slots",
            "First sort a list of the elements' indices by number of iterations",
        ),
        # 65,536 lanes in 2,048 warps add to one word; by warp 2,048 lanes do.
        (
            "atomics on one address",
            ("total", 256, 256, integers(), integers()),
            "65,536 passes for 2,048 requests to one address in global memory",
            "have one thread per block execute the atomic",
        ),
        (
            "atomics on one address",
            ("total_by_warp", 256, 256, integers(), integers()),
            "2,048 passes for 2,048 requests to one address in global memory",
            "have one thread per block execute the atomic",
        ),
        (
            "atomics on one address",
            ("few_bins", 256, 256, integers(), integers(high=4)),
            "to addresses that lanes of a warp share",
            "Have each block count in shared memory",
        ),
        (
            "array in local memory",
            ("chosen", 64, 256, floats(), floats(), integers(high=32)),
            "an array (128 bytes per thread) is kept in local memory, not in registers",
            "an algorithm whose indices do not depend on the data",
        ),
        (
            "array in local memory",
            ("sorted", 4, 256, integers(), integers(high=1000)),
            "an array (64 bytes per thread) is kept in local memory, not in registers",
            "an algorithm whose indices do not depend on the data",
        ),
        # Each of 2,048 warps loads and stores. A warp's request moves one sector of 32 bytes; 4
        # bytes a lane would move 128.
        (
            "narrow access",
            ("invert", 256, 256, PIXELS, PIXELS),
            "4,096 requests of 1 byte per lane, but a 4-byte register can hold 4 elements",
            "uchar4",
        ),
        (
            "narrow access",
            ("halves", 256, 256, small(np.int16), small(np.int16)),
            "4,096 requests of 2 bytes per lane, but a 4-byte register can hold 2 elements",
            "short2",
        ),
        # 512 warps: in each of 16 iterations 10 barriers, or 5 shuffles.
        (
            "reduction in each iteration",
            ("tree_by_piece", 64, 256, floats(), floats(), 16),
            "81,920 barriers and shuffles",
            "reduce these once, after the loop",
        ),
        (
            "reduction in each iteration",
            ("shuffles_by_piece", 64, 256, floats(), floats(), 16),
            "40,960 barriers and shuffles",
            "reduce these once, after the loop",
        ),
        (
            "double precision",
            ("tone", 256, 256, floats(), floats()),
            "in double precision, at 1/2 of the rate of single precision",
            "write constants with the suffix f",
        ),
        # Each of 512 warps loads twice in each of 16 iterations.
        (
            "narrow access",
            ("row_products", 64, 256, integers(), PIXELS, PIXELS),
            "16,384 requests of 1 byte per lane",
            "requests and iterations are then needed. Multiply and add four pairs of bytes with "
            "one __dp4a",
        ),
        # 32 warps store in each of 64 iterations.
        (
            "store in each iteration",
            ("sum_in_memory", 4, 256, floats(), floats(), 64),
            "2,048 warp stores",
            "Keep the value in a local variable",
        ),
        (
            "store in each iteration",
            ("best_in_memory", 4, 256, integers(), integers(), 64),
            "2,048 warp stores",
            "Keep the value in a local variable",
        ),
        (
            "unnecessary barrier",
            ("barrier_at_end", 256, 256, floats(), floats()),
            "warps executed the barrier 2,048 times",
            "Remove the barrier",
        ),
        (
            "unnecessary barrier",
            ("barrier_twice", 256, 256, floats(), floats()),
            "warps executed the barrier 2,048 times",
            "Remove the barrier",
        ),
        # 8 warps in each of 256 blocks, 64 times.
        (
            "unnecessary barrier",
            ("barrier_for_own", 256, 256, floats(), floats()),
            "warps executed the barrier 131,072 times",
            "Remove the barrier",
        ),
        # 32 warps load in each of 64 iterations.
        (
            "load in each iteration",
            ("scaled", 4, 256, floats(), np.ones(1, np.float32)),
            "2,048 warp loads",
            "is volatile, which is needed only if another thread",
        ),
        (
            "load in each iteration",
            ("scaled_by_alias", 4, 256, floats(), np.ones(1, np.float32)),
            "2,048 warp loads",
            "const and __restrict__",
        ),
        # 20,000 bytes: 164 KiB hold 7 of them (of 21 KiB with the system's 1 KiB), 56 of 64 warps.
        (
            "unused shared memory",
            ("half_used", 256, 256, floats(), floats()),
            "a block has 20,000 bytes of shared memory but uses only 1,024",
            "Declare s with 1,024 bytes (256 elements of 4 bytes): 8 blocks then fit",
        ),
    ],
)
def test_a_pattern_gets_its_remedy(
    rule: str, launch: tuple[object, ...], evidence: str, remedy: str
) -> None:
    one = found(rule, *launch)
    assert evidence in one.evidence
    assert remedy in one.text


def test_shared_memory_of_the_launch_that_no_access_touches() -> None:
    """48 KiB for a block of 8 warps: three blocks, 24 of 64 warps. 1,024 bytes leave all 64."""
    one = found("unused shared memory", "uses_1k", 256, 256, floats(), floats(), shared=48 << 10)
    assert "49,152 bytes of shared memory but uses only 1,024" in one.evidence


@pytest.mark.parametrize(
    ("rule", "launch"),
    [
        ("swapped thread indices", ("col_by_x", (32, 128), (32, 8), floats(), floats(), WIDTH)),
        # 8 floats are a whole sector.
        ("narrow block", ("col_by_x", (128, 128), (8, 8), floats(), floats(), WIDTH)),
        ("strided access", ("column_sum", 4, 256, floats(), floats(), WIDTH)),
        ("array of structures", ("row_of_4", 64, 256, floats(), floats())),
        ("misaligned access", ("words", 256, 256, integers(), integers())),
        ("scattered access", ("words", 256, 256, integers(), integers())),
        ("divergence within warps", ("leader", 256, 256, floats())),
        ("divergence within warps", ("total_by_block", 256, 256, integers(), integers())),
        ("atomics on one address", ("total_by_block", 256, 256, integers(), integers())),
        ("array in local memory", ("unrolled", 4, 256, floats(), floats())),
        ("narrow access", ("words", 256, 256, integers(), integers())),
        ("double precision", ("in_doubles", 256, 256, small(np.float64), small(np.float64))),
        *(
            ("reduction in each iteration", (name, 64, 256, floats(), floats(), 16))
            for name in ("shuffles_after", "sums_so_far", "largest_by_piece", "filter_in_tiles")
        ),
        ("narrow access", ("byte_by_warp", 256, 256, integers(), PIXELS)),
        ("store in each iteration", ("sum_in_register", 4, 256, floats(), floats(), 64)),
        ("unnecessary barrier", ("barrier_once", 256, 256, floats(), floats())),
        # Each round reads what the one before has written: the loop's barrier leads to itself.
        ("unnecessary barrier", ("tree_in_a_loop", 256, 256, floats(), floats())),
        ("unnecessary barrier", ("barrier_for_rows", 256, (32, 8), floats(), floats())),
        ("load in each iteration", ("scaled_by_value", 4, 256, floats(), floats(1))),
        ("load in each iteration", ("scaled_in_steps", 1, 256, floats(), floats(1))),
        ("load in each iteration", ("waits", 4, 256, floats(), floats(1))),
        # 864 at once; a last wave of 536 leaves 328 of 1,728 slots empty, 19 %.
        ("tail effect", ("words", 1400, 256, integers(), integers())),
        ("tail effect", ("words", 864, 256, integers(), integers())),
        ("unused shared memory", ("barrier_once", 256, 256, floats(), floats())),
    ],
)
def test_a_pattern_without_the_fault_gets_none(rule: str, launch: tuple[object, ...]) -> None:
    given = advice(*launch)  # pyright: ignore[reportArgumentType]
    assert rule not in {one.rule for one in given}


def test_what_costs_most_comes_first() -> None:
    """32 transactions a request of the store against 4 of the load; the small grid is the last."""
    given = advice("transpose", (8, 8), (32, 8), floats(), floats(), WIDTH)
    shares = [one.share for one in given if one.cost is not None]
    assert shares == sorted(shares, reverse=True)
    assert given[0].rule == "strided access"
    assert given[-1].rule == "small grid"
    # 64 blocks of 8 warps store 32 sectors each, of which 4 are needed.
    assert given[0].cost == 512 * 28


@pytest.mark.parametrize("name", ["words", "col_by_x", "barrier_once"])
def test_a_kernel_without_a_guard_is_not_blamed_for_it(name: str) -> None:
    """Its buffers are as long as the grid covers."""
    arrays = (integers(), integers()) if name == "words" else (floats(), floats())
    more = (WIDTH,) if name == "col_by_x" else ()
    block = (32, 8) if name == "col_by_x" else 256
    given = advice(name, (32, 128) if name == "col_by_x" else 4096, block, *arrays, *more)
    assert given == []


def test_a_block_of_one_thread_gets_one_size() -> None:
    one = found("partial warps", "words", 64, 1, integers(), integers())
    assert one.text == "Make the block size a multiple of 32: 32."
