"""Kernels of numba-cuda-mlir, which compiles through MLIR: elementwise, with shared memory and
atomics, and one that writes past the end."""

import math

import numpy as np
from numba_cuda_mlir import cuda
from numba_cuda_mlir.types import float32


@cuda.jit
def saxpy(a, x, y, out):
    i = cuda.grid(1)
    if i < out.shape[0]:
        out[i] = a * x[i] + y[i]


@cuda.jit
def block_sums(x, out):
    parts = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    parts[t] = math.sqrt(x[cuda.grid(1)])
    cuda.syncthreads()
    step = 64
    while step > 0:
        if t < step:
            parts[t] += parts[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(out, 0, parts[0])


def main():
    x = np.arange(1000, dtype=np.float32)
    y, out = np.ones_like(x), np.zeros_like(x)
    saxpy[8, 128](np.float32(2), x, y, out)
    assert np.array_equal(out, 2 * x + y)
    print("saxpy", end=" ")
    squares = np.arange(512, dtype=np.float32) ** 2
    total = np.zeros(1, np.float32)
    block_sums[4, 128](squares, total)
    assert total[0] == 511 * 512 / 2
    print("sums")


main()
