"""Programs of numba-cuda's users, as they write them: each checks itself against NumPy."""

from __future__ import annotations

import math

import numpy as np
from numba import cuda, float32, int32

TILE = 16


def saxpy():
    @cuda.jit
    def kernel(a, x, y, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = a * x[i] + y[i]

    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    out = np.zeros_like(x)
    kernel[8, 128](np.float32(2), x, y, out)
    np.testing.assert_array_equal(out, 2 * x + y)


def matmul():
    @cuda.jit
    def kernel(a, b, c):
        left = cuda.shared.array((TILE, TILE), float32)
        right = cuda.shared.array((TILE, TILE), float32)
        x, y = cuda.grid(2)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        total = float32(0)
        for step in range(math.ceil(a.shape[1] / TILE)):
            left[ty, tx] = 0
            right[ty, tx] = 0
            if y < a.shape[0] and tx + step * TILE < a.shape[1]:
                left[ty, tx] = a[y, tx + step * TILE]
            if x < b.shape[1] and ty + step * TILE < b.shape[0]:
                right[ty, tx] = b[ty + step * TILE, x]
            cuda.syncthreads()
            for k in range(TILE):
                total += left[ty, k] * right[k, tx]
            cuda.syncthreads()
        if y < c.shape[0] and x < c.shape[1]:
            c[y, x] = total

    rng = np.random.default_rng(0)
    a = rng.integers(-8, 8, (40, 24)).astype(np.float32)
    b = rng.integers(-8, 8, (24, 33)).astype(np.float32)
    c = cuda.device_array((40, 33), np.float32)
    kernel[(3, 3), (TILE, TILE)](cuda.to_device(a), cuda.to_device(b), c)
    np.testing.assert_array_equal(c.copy_to_host(), a @ b)


def histogram():
    @cuda.jit
    def kernel(data, bins):
        i = cuda.grid(1)
        step = cuda.gridsize(1)
        for j in range(i, data.size, step):
            cuda.atomic.add(bins, data[j], 1)

    data = np.random.default_rng(1).integers(0, 10, 5000)
    bins = np.zeros(10, np.int64)
    kernel[4, 64](data, bins)
    np.testing.assert_array_equal(bins, np.bincount(data))


def shuffles():
    @cuda.jit
    def kernel(data, out):
        i = cuda.grid(1)
        value = data[i]
        for step in (16, 8, 4, 2, 1):
            value += cuda.shfl_down_sync(0xFFFFFFFF, value, step)
        if cuda.laneid == 0:
            out[i // 32] = value

    data = np.arange(128, dtype=np.int32)
    out = np.zeros(4, np.int32)
    kernel[2, 64](data, out)
    np.testing.assert_array_equal(out, data.reshape(4, 32).sum(1))


def grid_sync():
    @cuda.jit("void(int32[:,::1])")
    def kernel(m):
        column = cuda.grid(1)
        whole = cuda.cg.this_grid()
        for row in range(1, m.shape[0]):
            m[row, column] = m[row - 1, m.shape[1] - column - 1] + 1
            whole.sync()

    m = np.zeros((16, 256), np.int32)
    blocks = 256 // 32
    assert kernel.overloads[kernel.signatures[0]].max_cooperative_grid_blocks(32) >= blocks
    kernel[blocks, 32](m)
    np.testing.assert_array_equal(m, np.arange(16)[:, None].repeat(256, 1))


def streams():
    @cuda.jit
    def kernel(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] *= 2

    stream, start, end = cuda.stream(), cuda.event(), cuda.event()
    host = cuda.pinned_array(100, np.float64)
    host[:] = 1
    start.record(stream)
    device = cuda.to_device(host, stream=stream)
    kernel[4, 32, stream](device)
    device.copy_to_host(host, stream=stream)
    end.record(stream)
    end.synchronize()
    assert host.tolist() == [2.0] * 100
    assert cuda.event_elapsed_time(start, end) >= 0


def structures():
    particle = np.dtype([("position", np.float32, (3,)), ("charge", np.int16)], align=True)

    @cuda.jit
    def kernel(particles):
        i = cuda.grid(1)
        if i < particles.size:
            for axis in range(3):
                particles[i].position[axis] += axis
            particles[i].charge = -particles[i].charge

    particles = np.zeros(50, particle)
    particles["charge"] = np.arange(50)
    kernel[2, 32](particles)
    assert particles["position"].tolist() == [[0, 1, 2]] * 50
    np.testing.assert_array_equal(particles["charge"], -np.arange(50))


def mapped():
    @cuda.jit
    def kernel(x, total):
        cuda.atomic.add(total, 0, x[cuda.grid(1)])

    x = cuda.mapped_array(64, np.int32)
    x[:] = int32(3)
    total = cuda.managed_array(1, np.int32)
    total[0] = 0
    kernel[2, 32](x, total)
    cuda.synchronize()
    assert total[0] == 192


def halves():
    """float16 is C++ that NVIDIA's linker joins with the kernel."""

    @cuda.jit
    def kernel(x, y):
        i = cuda.grid(1)
        y[i] = x[i] * x[i] + np.float16(1)

    x = np.arange(32, dtype=np.float16)
    y = np.zeros_like(x)
    kernel[1, 32](x, y)
    np.testing.assert_array_equal(y, x * x + np.float16(1))


def linked():
    source = 'extern "C" __device__ int times7(int *r, int a) { *r = a * 7; return 0; }'
    times7 = cuda.declare_device("times7", "int32(int32)", link=cuda.CUSource(source))

    @cuda.jit
    def kernel(r):
        r[cuda.grid(1)] = times7(cuda.grid(1))

    r = np.zeros(4, np.int32)
    kernel[1, 4](r)
    assert r.tolist() == [0, 7, 14, 21]


if __name__ == "__main__":
    for program in (
        *(saxpy, matmul, histogram, shuffles),
        *(grid_sync, streams, structures, mapped),
        *(halves, linked),
    ):
        program()
        print(program.__name__)
