"""A warp scheduler and a prefetcher of one's own, and what they do to three kernels.

python examples/policies.py
"""

import numpy as np

import warploom as wl

SOURCE = """
extern "C" __global__ void stream(const float *x, float *y, int n, int rounds) {
    float sum = 0;
    for (int r = 0; r < rounds; r++)
        sum += x[(blockIdx.x * rounds + r) * blockDim.x + threadIdx.x];
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
extern "C" __global__ void tiles(const float *x, float *y, int n, int rounds) {
    __shared__ float tile[256];
    float sum = 0;
    for (int r = 0; r < rounds; r++) {
        tile[threadIdx.x] = x[(blockIdx.x + r * gridDim.x) * blockDim.x + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < 32; k++) sum += tile[threadIdx.x ^ k];
        __syncthreads();
    }
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
extern "C" __global__ void scattered(const float *x, float *y, int n, int rounds) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int r = 0; r < rounds; r++) sum += x[at = (at * 1664525u + 1013904223u) % n];
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""


@wl.warp_scheduler
def youngest(slot, age, last, instruction, now, words):
    """The warp that began last goes first."""
    return -age


@wl.prefetcher
def stride(line, missed, instruction, slot, nth, words):
    """The line at the same distance as the two before, of the same instruction and warp."""
    at = 2 * ((31 * instruction + slot) % 128)
    if nth == 0:
        words[at], words[at + 1] = line, line - words[at]
    return line + (nth + 1) * words[at + 1] if nth < 2 else -1


gpu = wl.Device("v100", record=True)
module = gpu.compile(SOURCE)
x, y = gpu.to_device(np.ones(1 << 20, np.float32)), gpu.zeros(64 * 256, np.float32)
for name in ("stream", "tiles", "scattered"):
    run = module[name][64, 256](x, y, 1 << 20, 32)
    gto, own = (run.time(scheduler=one).cycles for one in ("gto", youngest))
    ahead = run.time(scheduler="gto", prefetcher=stride)
    prefetched = f"{ahead.cycles:,} ({ahead.prefetched_lines:,} lines)"
    print(f"{name:10} gto {gto:,}; youngest {own:,}; gto with prefetches {prefetched}")
