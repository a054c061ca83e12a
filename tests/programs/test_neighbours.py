"""What threads read of their neighbors in shared memory: scans, halos, the other way round.

Where a lane's neighbor would lie before the first word, that lane does not ask; the others must
not notice.
"""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

SOURCE = """
extern "C" __global__ void scan(const int *x, int *sums) {
    __shared__ int part[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    part[t] = x[i];
    __syncthreads();
    for (int d = 1; d < blockDim.x; d *= 2) {
        int before = t >= d ? part[t - d] : 0;
        __syncthreads();
        part[t] += before;
        __syncthreads();
    }
    sums[i] = part[t];
}
extern "C" __global__ void halo(const int *x, int *sums) {
    __shared__ int part[256 + 4];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    part[t] = x[i];
    if (t < 4) part[t + blockDim.x] = x[i + blockDim.x];
    __syncthreads();
    int sum = 0;
    for (int k = 0; k < 5; k++) sum += part[t + k];
    sums[i] = sum;
}
extern "C" __global__ void reverse(const int *x, int *sums) {
    __shared__ int part[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    part[t] = x[i];
    __syncthreads();
    sums[i] = part[blockDim.x - 1 - t];
}
"""
BLOCKS, MOST = 6, 256
WORDS = np.random.default_rng(3).integers(-99, 99, BLOCKS * MOST + 4).astype(np.int32)


def expected(name: str, threads: int) -> np.ndarray:
    blocks = WORDS[: BLOCKS * threads].reshape(BLOCKS, threads)
    if name == "scan":
        return blocks.cumsum(1).ravel()
    if name == "reverse":
        return blocks[:, ::-1].ravel()
    return np.convolve(WORDS[: BLOCKS * threads + 4], np.ones(5, np.int32), "valid")


@pytest.mark.parametrize("threads", [32, 64, 96, 100, 256])
@pytest.mark.parametrize("name", ["scan", "halo", "reverse"])
def test_neighbours_are_read_alike_by_both_machines(name: str, threads: int) -> None:
    found: list[wl.Run] = []
    for engine in ("reference", "compiled"):
        gpu = wl.Device("h100", engine=engine)
        x, sums = gpu.to_device(WORDS), gpu.zeros(BLOCKS * threads, np.int32)
        found.append(gpu.compile(SOURCE)[name][BLOCKS, threads](x, sums))
        assert np.array_equal(sums.copy_to_host(), expected(name, threads))
    assert found[0].counters == found[1].counters


GUARDED = """
.version 8.0
.target sm_70
.address_size 64
.visible .entry shifted(.param .u64 out)
{
.reg .u32 %x, %words, %before, %part, %v, %w;
.reg .u64 %base, %far, %mine;
.reg .pred %p;
.shared .align 128 .b8 part[128];
ld.param.u64 %base, [out];
mov.u32 %x, %tid.x;
shl.b32 %words, %x, 2;
st.shared.u32 [%words], %x;
bar.sync 0;
mov.u32 %part, part;
sub.u32 %before, %words, 4;
setp.ne.u32 %p, %x, 0;
mov.u32 %v, 77;
@%p ld.shared.u32 %v, [%before];
bar.sync 0;
add.u32 %w, %v, 100;
@%p st.shared.u32 [%before], %w;
bar.sync 0;
ld.shared.u32 %w, [%words];
mul.wide.u32 %far, %x, 8;
add.u64 %mine, %base, %far;
st.global.v2.u32 [%mine], {%v, %w};
ret;
}
"""


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_guard_keeps_the_first_lane_from_before_the_first_word(engine: str) -> None:
    """Lane 0's address is 2^32 - 4; that of lane 1 is 0, for addresses of 32 bits wrap around."""
    gpu = wl.Device("v100", engine=engine)
    out = gpu.zeros((32, 2), np.uint32)
    gpu.compile(GUARDED, "ptx")["shifted"][1, 32](out)
    read, left = out.copy_to_host().T
    lanes = np.arange(32)
    assert np.array_equal(read, np.where(lanes, lanes - 1, 77))
    # Lane t + 1 has left t + 100 in word t; nobody has written the last one.
    assert np.array_equal(left, np.where(lanes < 31, lanes + 100, 31))
