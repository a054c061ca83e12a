"""Checks the costs of half-warp accesses in compiled code by the rules of every device family.

The reference machine applies the device's rules to every access; compiled code only to one of each
pattern. Each half of a warp reads one address, or consecutive ones, from an index of its own.
"""

from __future__ import annotations

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import warploom as wl
from warploom.cost.fields import CostRecord
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.program.build import build
from warploom.ptx.parser import parse

SOURCE = """
#define ROWS int a, int b, int step, int none
#define AT (threadIdx.x < 16 ? a : b) + step * (threadIdx.x % 16)
typedef long long wide_t;
template <typename T> __device__ void read(const T *from, T *out, ROWS) {
    int at = AT;
    T sum = 0;
    for (int lap = 0; lap < 3; ++lap) sum += from[at + lap * none];
    out[threadIdx.x] = sum;
}
template <typename T> __device__ void read_shared(const T *x, T *out, ROWS) {
    __shared__ T own[512];
    for (int i = threadIdx.x; i < 512; i += 32) own[i] = x[i];
    __syncthreads();
    read(own, out, a, b, step, none);
}
extern "C" {
__global__ void words(const int *x, int *y, ROWS) { read(x, y, a, b, step, none); }
__global__ void wides(const wide_t *x, wide_t *y, ROWS) { read(x, y, a, b, step, none); }
__global__ void shared_words(const int *x, int *y, ROWS) { read_shared(x, y, a, b, step, none); }
__global__ void shared_wides(const wide_t *x, wide_t *y, ROWS) {
    read_shared(x, y, a, b, step, none);
}
__global__ void fours(const int4 *x, int4 *y, ROWS) {
    int at = AT;
    int4 sum = make_int4(0, 0, 0, 0);
    for (int lap = 0; lap < 3; ++lap) {
        int4 found = x[at + lap * none];
        sum.x += found.x, sum.y += found.y, sum.z += found.z, sum.w += found.w;
    }
    y[threadIdx.x] = sum;
}
}
"""
DEVICES = ("8800-gtx", "gtx-280", "gtx-480", "k40", "gtx-980", "v100", "h100")
KERNELS = ("words", "wides", "shared_words", "shared_wides", "fours")
INDICES = st.integers(0, 480) | st.sampled_from([0, 1, 2, 7, 8, 15, 16, 17, 32, 48, 64, 256])


@pytest.fixture(scope="module")
def modules():
    kept = {}

    def get(source: str, device: str, engine: str) -> tuple[wl.Device, wl.Module]:
        if (source, device, engine) not in kept:
            gpu = wl.Device(device, engine=engine)
            kept[source, device, engine] = gpu, gpu.compile(source)
        return kept[source, device, engine]

    return get


@settings(max_examples=examples(4, nightly=20))
@given(
    st.sampled_from(DEVICES), st.sampled_from(KERNELS), INDICES, INDICES, st.sampled_from([0, 1])
)
def test_costs_of_half_warp_loads(modules, device, name, a, b, step) -> None:
    dtype = np.int64 if "wides" in name else np.int32
    host = np.arange(512 * 4).reshape(512, 4).astype(dtype)
    host = host if name == "fours" else host[:, 0].copy()
    results = []
    for engine in ("compiled", "reference"):
        gpu, module = modules(SOURCE, device, engine)
        out = gpu.zeros((32, *host.shape[1:]), dtype)
        run = module[name][1, 32](gpu.to_device(host), out, a, b, step, 0)
        lanes = np.arange(32)
        expected = 3 * host[np.where(lanes < 16, a, b) + step * (lanes % 16)]
        assert np.array_equal(out.copy_to_host(), expected)
        results.append((dict(run.counters), [(e.cost, e.lanes) for e in run.examples]))
    assert results[0] == results[1]


def test_a_tile_row_is_one_wavefront_and_two_lines() -> None:
    """Checks 16 x 16 threads: a warp is two rows. Rows of 512 floats are in different lines: 64
    bytes, 2 sectors each; one address a row: 1 sector each. Two words, 16 banks between them: one
    wavefront."""
    source = """
    extern "C" __global__ void k(const float *x, float *y) {
        __shared__ float tile[16][16];
        int c = threadIdx.x, r = threadIdx.y;
        tile[r][c] = x[r * 512 + c];
        __syncthreads();
        float sum = 0;
        for (int k = 0; k < 16; ++k) sum += tile[r][k] * x[r * 512 + k];
        y[r * 16 + c] = sum;
    }"""
    gpu = wl.Device("a100")
    host = np.random.default_rng(1).random((16, 512), np.float32)
    out = gpu.zeros((16, 16), np.float32)
    counters = gpu.compile(source)["k"][1, (16, 16)](gpu.to_device(host), out).counters
    assert np.allclose(out.copy_to_host(), (host[:, :16] ** 2).sum(1)[:, None])
    warps, laps = 8, 16
    assert counters.global_load_requests == warps * (1 + laps)
    assert counters.global_load_sectors == warps * (4 + 2 * laps)
    assert counters.global_load_lines == warps * (2 + 2 * laps)
    assert counters.shared_load_wavefronts == warps * laps
    assert counters.shared_load_bank_conflicts == 0


WRITES = """
#define ROWS int a, int b, int n
#define AT (a + (int)threadIdx.y * (b - a) + (int)threadIdx.x)
typedef long long wide_t;
template <typename T> __device__ void write(T *to, T value, ROWS) {
    #pragma unroll 1
    for (int lap = 0; lap < 3; ++lap) to[AT + lap * n] = value + lap;
}
template <typename T> __device__ void write_shared(T *y, T value, ROWS) {
    __shared__ T own[512];
    for (int i = threadIdx.y * 16 + threadIdx.x; i < 512; i += 32) own[i] = y[i];
    __syncthreads();
    write(own, value, a, b, n);
    __syncthreads();
    for (int i = threadIdx.y * 16 + threadIdx.x; i < 512; i += 32) y[i] = own[i];
}
#define LANE (threadIdx.y * 16 + threadIdx.x)
extern "C" {
__global__ void words(int *y, ROWS) { write<int>(y, LANE, a, b, n); }
__global__ void wides(wide_t *y, ROWS) { write<wide_t>(y, LANE, a, b, n); }
__global__ void shared_words(int *y, ROWS) { write_shared<int>(y, LANE, a, b, n); }
__global__ void shared_wides(wide_t *y, ROWS) { write_shared<wide_t>(y, LANE, a, b, n); }
}
"""


@settings(max_examples=examples(4, nightly=20))
@given(
    st.sampled_from(DEVICES),
    st.sampled_from([name for name in KERNELS if name != "fours"]),
    st.integers(0, 400) | st.sampled_from([0, 16, 32, 48, 64, 256]),
    st.integers(0, 400) | st.sampled_from([0, 16, 32, 48, 64, 256]),
    st.sampled_from([0, 16, 32, 33]),
)
def test_costs_of_half_warp_stores(modules, device, name, a, b, n) -> None:
    dtype = np.int64 if "wides" in name else np.int32
    expected = np.full(512, -1, dtype)
    for lap in range(3):
        for row, first in enumerate((a, b)):  # the higher lanes of a warp last
            expected[first + lap * n :][:16] = 16 * row + np.arange(16) + lap
    results = []
    for engine in ("compiled", "reference"):
        gpu, module = modules(WRITES, device, engine)
        out = gpu.to_device(np.full(512, -1, dtype))
        run = module[name][1, (16, 2)](out, a, b, n)
        assert np.array_equal(out.copy_to_host(), expected)
        results.append((dict(run.counters), [(e.cost, e.lanes) for e in run.examples]))
    assert results[0] == results[1]


STRUCTURES = """
template <typename T, int K> __device__ void read(const T *from, T *out, int first, int n) {
    int t = threadIdx.y * blockDim.x + threadIdx.x;
    if (t >= n) return;
    T sum = 0;
    #pragma unroll 1
    for (int lap = 0; lap < 3; ++lap)
        sum += from[first + K * (8 * lap + (int)threadIdx.x) + 40 * (int)threadIdx.y];
    out[t] = sum;
}
template <typename T, int K> __device__ void read_shared(const T *x, T *out, int first, int n) {
    __shared__ T own[512];
    for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < 512; i += 32) own[i] = x[i];
    __syncthreads();
    read<T, K>(own, out, first, n);
}
#define READ(name, T, K) \\
    __global__ void name##K(const T *x, T *y, int a, int n) { read<T, K>(x, y, a, n); } \\
    __global__ void shared_##name##K(const T *x, T *y, int a, int n) { \\
        read_shared<T, K>(x, y, a, n); \\
    }
extern "C" {
READ(bytes, unsigned char, 3) READ(halves, short, 2) READ(words, int, 2) READ(words, int, 3)
READ(words, int, 4) READ(words, int, 7) READ(wides, long long, 2) READ(wides, long long, 3)
}
"""
TYPES = {"bytes": np.uint8, "halves": np.int16, "words": np.int32, "wides": np.int64}
READS = ("bytes3", "halves2", "words2", "words3", "words4", "words7", "wides2", "wides3")


@settings(max_examples=examples(6, nightly=30))
@given(
    st.sampled_from(DEVICES),
    st.sampled_from([*READS, *(f"shared_{name}" for name in READS)]),
    st.sampled_from([(32,), (8, 4)]),
    st.integers(0, 16),
    st.sampled_from([32, 32, 31, 8, 1]),
)
def test_costs_of_structure_members(modules, device, name, block, a, n) -> None:
    """Reads addresses at strides of a few elements, in warps some of whose lanes may be off."""
    distance, dtype = int(name[-1]), TYPES[name.removeprefix("shared_")[:-1]]
    length = 512  # elements, as shared memory has
    host, lanes = (np.arange(length) * 37 % 120).astype(dtype), np.arange(32)
    along, row = lanes % block[0], lanes // block[0]
    places = [a + distance * (8 * lap + along) + 40 * row for lap in range(3)]
    expected = np.where(lanes < n, sum(host[at] for at in places), 0).astype(dtype)
    results = []
    for engine in ("compiled", "reference"):
        gpu, module = modules(STRUCTURES, device, engine)
        out = gpu.zeros(32, dtype)
        run = module[name][1, block](gpu.to_device(host), out, a, n)
        assert np.array_equal(out.copy_to_host(), expected)
        results.append((dict(run.counters), [(e.cost, e.lanes) for e in run.examples]))
    assert results[0] == results[1]


BACKWARDS = """
#define AT (first + 40 * (int)threadIdx.y + 8 * lap - (int)threadIdx.x)
#define LANE (threadIdx.y * blockDim.x + threadIdx.x)
template <typename T> __device__ T plus(T a, T b) { return a + b; }
template <> __device__ int4 plus(int4 a, int4 b) {
    return make_int4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
template <typename T> __device__ void read(const T *from, T *out, int first, int n) {
    T sum = out[LANE];
    #pragma unroll 1
    for (int lap = 0; lap < 3; ++lap) if (LANE < n) sum = plus(sum, from[AT]);
    out[LANE] = sum;
}
template <typename T> __device__ void write(T *to, const T *x, int first, int n) {
    T value = x[LANE];
    #pragma unroll 1
    for (int lap = 0; lap < 3; ++lap) if (LANE < n) to[AT] = value;
}
template <typename T> __device__ void fill(T *to, const T *from) {
    for (int i = LANE; i < 256; i += 32) to[i] = from[i];
    __syncthreads();
}
#define BOTH(name, T) \\
    __global__ void read_##name(const T *x, T *y, int a, int n) { read<T>(x, y, a, n); } \\
    __global__ void write_##name(const T *x, T *y, int a, int n) { write<T>(y, x, a, n); } \\
    __global__ void read_shared_##name(const T *x, T *y, int a, int n) { \\
        __shared__ T own[256]; fill(own, x); read<T>(own, y, a, n); \\
    } \\
    __global__ void write_shared_##name(const T *x, T *y, int a, int n) { \\
        __shared__ T own[256]; fill(own, (const T *)y); write<T>(own, x, a, n); \\
        __syncthreads(); fill(y, (const T *)own); \\
    }
extern "C" {
BOTH(bytes, unsigned char) BOTH(halves, short) BOTH(words, int) BOTH(wides, long long)
BOTH(fours, int4)
}
"""


@settings(max_examples=examples(6, nightly=40))
@given(
    st.sampled_from(DEVICES),
    st.sampled_from(["read", "write", "read_shared", "write_shared"]),
    st.sampled_from([*TYPES, "fours"]),
    st.sampled_from([(32,), (8, 4), (16, 2)]),
    st.integers(31, 64),
    st.sampled_from([32, 32, 31, 8, 1]),
)
def test_costs_of_elements_that_lie_backwards(modules, device, way, name, block, a, n) -> None:
    """Reads and writes addresses that fall from lane to lane, in warps of which some lanes may be
    inactive: moved in reverse order, but for two rows of 16 threads."""
    members = (4,) if name == "fours" else ()
    host = (np.arange(256 * 4).reshape(256, 4) * 37 % 60).astype(TYPES.get(name, np.int32))
    host = host if members else host[:, 0].copy()
    lanes = np.arange(32)
    places = [a + 40 * (lanes // block[0]) + 8 * lap - lanes % block[0] for lap in range(3)]
    expected = host[::-1].copy()
    for at in places:
        for lane in range(n):
            if "read" in way:
                expected[lane] += host[at[lane]]
            else:
                expected[at[lane]] = host[lane]
    results = []
    for engine in ("compiled", "reference"):
        gpu, module = modules(BACKWARDS, device, engine)
        out = gpu.to_device(host[::-1].copy())
        run = module[f"{way}_{name}"][1, block](gpu.to_device(host), out, a, n)
        assert np.array_equal(out.copy_to_host(), expected)
        results.append((dict(run.counters), [(e.cost, e.lanes) for e in run.examples]))
    assert results[0] == results[1]


PITCHED = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k()
{
.reg .u32 %x, %y, %at, %r<6>;
.shared .align 16 .b8 tile[2048];
mov.u32 %x, %tid.x;
mov.u32 %y, %tid.y;
shl.b32 %r0, %y, 7;
shl.b32 %r1, %x, 2;
mov.u32 %r2, tile;
add.u32 %r3, %r0, %r2;
add.u32 %at, %r3, %r1;
st.shared.u32 [%at], %x;
st.shared.u32 [%at+1024], %y;
ld.shared.u32 %r4, [%at];
ld.shared.u32 %r5, [%at+1024];
ret;
}
"""


def test_the_first_of_several_accesses_is_kept_as_the_costliest() -> None:
    """Uses rows at a stride of 128 bytes, in the same banks: 2 wavefronts (CUDA C++ Programming
    Guide, "Shared Memory")."""
    launch = Launch((1, 1, 1), (16, 8, 1), b"")
    tally = CompiledEngine().launch(build(parse(PITCHED), "k"), launch, DeviceMemory(1 << 28))
    assert tally.records[:, CostRecord.example_cost].tolist() == [2] * 4
    assert tally.records[:, CostRecord.example_mask].tolist() == [0xFFFFFFFF] * 4
