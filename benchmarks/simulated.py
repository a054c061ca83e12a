"""The workloads in Numba's CUDA dialect, line by line as in CUDA C++, for its simulator.

Imported where NUMBA_ENABLE_CUDASIM=1 is set.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import cuda

TILE = 16


@cuda.jit
def saxpy(n: int, a: Any, x: Any, y: Any) -> None:
    i = cuda.grid(1)
    if i < n:
        y[i] = a * x[i] + y[i]


@cuda.jit
def reduce(x: Any, sums: Any, n: int) -> None:
    part = cuda.shared.array(256, np.float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    part[t] = x[i] if i < n else 0
    cuda.syncthreads()
    stride = cuda.blockDim.x // 2
    while stride > 0:
        if t < stride:
            part[t] += part[t + stride]
        cuda.syncthreads()
        stride //= 2
    if t == 0:
        sums[cuda.blockIdx.x] = part[0]


@cuda.jit
def matmul_naive(a: Any, b: Any, c: Any, n: int) -> None:
    column, row = cuda.grid(2)
    total = np.float32(0)
    for k in range(n):
        total += a[row, k] * b[k, column]
    c[row, column] = total


@cuda.jit
def matmul_tiled(a: Any, b: Any, c: Any, n: int) -> None:
    tile_a = cuda.shared.array((TILE, TILE), np.float32)
    tile_b = cuda.shared.array((TILE, TILE), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    column, row = cuda.grid(2)
    total = np.float32(0)
    for start in range(0, n, TILE):
        tile_a[y, x] = a[row, start + x]
        tile_b[y, x] = b[start + y, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[y, k] * tile_b[k, x]
        cuda.syncthreads()
    c[row, column] = total


@cuda.jit
def mandelbrot(steps: Any, width: int, height: int, limit: int) -> None:
    column, row = cuda.grid(2)
    cx = np.float32(-2.0) + np.float32(3.0) * np.float32(column) / np.float32(width)
    cy = np.float32(-1.5) + np.float32(3.0) * np.float32(row) / np.float32(height)
    x, y, step = np.float32(0), np.float32(0), 0
    while step < limit and x * x + y * y < np.float32(4):
        x, y = x * x - y * y + cx, np.float32(2) * x * y + cy
        step += 1
    steps[row, column] = step


@cuda.jit
def histogram(data: Any, bins: Any, n: int) -> None:
    own = cuda.shared.array(256, np.uint32)
    for b in range(cuda.threadIdx.x, 256, cuda.blockDim.x):
        own[b] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        cuda.atomic.add(own, data[i], 1)
    cuda.syncthreads()
    for b in range(cuda.threadIdx.x, 256, cuda.blockDim.x):
        cuda.atomic.add(bins, b, own[b])


@cuda.jit
def nbody(bodies: Any, accelerations: Any, n: int) -> None:
    tile = cuda.shared.array((256, 4), np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    ax, ay, az = np.float32(0), np.float32(0), np.float32(0)
    for start in range(0, n, cuda.blockDim.x):
        for part in range(4):
            tile[t, part] = bodies[start + t, part]
        cuda.syncthreads()
        for k in range(cuda.blockDim.x):
            dx = tile[k, 0] - bodies[i, 0]
            dy = tile[k, 1] - bodies[i, 1]
            dz = tile[k, 2] - bodies[i, 2]
            inverse = 1 / math.sqrt(dx * dx + dy * dy + dz * dz + 0.01)
            pull = tile[k, 3] * inverse * inverse * inverse
            ax += pull * dx
            ay += pull * dy
            az += pull * dz
        cuda.syncthreads()
    accelerations[i, 0], accelerations[i, 1], accelerations[i, 2] = ax, ay, az
    accelerations[i, 3] = 0


@cuda.jit
def transpose_naive(source: Any, out: Any, n: int) -> None:
    x = cuda.blockIdx.x * 32 + cuda.threadIdx.x
    y = cuda.blockIdx.y * 32 + cuda.threadIdx.y
    for j in range(0, 32, 8):
        out[x, y + j] = source[y + j, x]
