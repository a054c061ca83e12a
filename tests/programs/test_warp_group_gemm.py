"""Matrix products in CUDA that use `wgmma`, against NumPy, and one that waits too late."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

THREADS = 128

GEMM = """
#include <cuda_fp16.h>
// D = A * B^T for A of M x K and B of N x K: a block computes 64 x 64, in steps of 64 along k. Rows
// of 128 bytes in shared memory, swizzled by 128 bytes; a product of depth 16 begins 32 bytes
// further in the row than the one before.
__device__ unsigned long long descriptor(const void *at)
{
    unsigned long long start = __cvta_generic_to_shared(at) >> 4;
    return start | 1ull << 16 | 64ull << 32 | 1ull << 62;  // 1024 bytes from 8 rows to the next
}
__device__ void tile(uint4 *to, const __half *from, int stride)
{
    for (int i = threadIdx.x; i < 64 * 8; i += 128) {
        int row = i / 8, unit = i % 8;
        to[row * 8 + (unit ^ row % 8)] = *(const uint4 *)(from + row * stride + 8 * unit);
    }
}
extern "C" __global__ void gemm(const __half *a, const __half *b, float *d, int n, int k)
{
    __shared__ __align__(1024) uint4 sa[512], sb[512];
    float c[32];
    for (int i = 0; i < 32; i++) c[i] = 0;
    a += blockIdx.y * 64 * k;
    b += blockIdx.x * 64 * k;
    for (int start = 0; start < k; start += 64) {
        tile(sa, a + start, k);
        tile(sb, b + start, k);
        asm volatile("fence.proxy.async;" ::: "memory");
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int i = 0; i < 4; i++)
            asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {OUTPUTS}, "
                         "%32, %33, 1, 1, 1, 0, 0;"
                         : REGISTERS
                         : "l"(descriptor(sa) + 2 * i), "l"(descriptor(sb) + 2 * i));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        WAIT
        __syncthreads();
    }
    LAST
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int i = 0; i < 32; i++) {
        int row = 16 * warp + lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        d[(blockIdx.y * 64 + row) * n + blockIdx.x * 64 + column] = c[i];
    }
}
"""
WAIT = 'asm volatile("wgmma.wait_group.sync.aligned 0;" : REGISTERS :: "memory");'
REGISTERS = ", ".join(f'"+f"(c[{i}])' for i in range(32))
OUTPUTS = ", ".join(f"%{i}" for i in range(32))


def gemm(engine: str, policy: str, *, waits_in_loop: bool) -> tuple[np.ndarray, np.ndarray]:
    """What the kernel computes, and what is right; where it waits only behind its loop, the next
    tiles overwrite those that products still read."""
    m, n, k = 128, 64, 192
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal((rows, k)).astype(np.float16) for rows in (m, n))
    d = np.zeros((m, n), np.float32)
    text = GEMM.replace("WAIT", WAIT if waits_in_loop else "")
    text = text.replace("LAST", "" if waits_in_loop else WAIT)
    text = text.replace("OUTPUTS", OUTPUTS).replace("REGISTERS", REGISTERS)
    gpu = wl.Device("h100", engine=engine, schedule=policy)
    made = gpu.compile(text, options=["--gpu-architecture=sm_90a"])
    made["gemm"][(n // 64, m // 64), THREADS](a, b, d, n, k)
    return d, a.astype(np.float64) @ b.astype(np.float64).T


@pytest.mark.parametrize(
    ("engine", "policy"),
    [
        ("compiled", "converge"),
        pytest.param("compiled", "fair", marks=pytest.mark.nightly),
        ("compiled", "adversarial"),
        pytest.param("compiled", "random", marks=pytest.mark.nightly),
        ("reference", "converge"),
    ],
)
def test_a_matrix_product_from_cuda(engine: str, policy: str) -> None:
    found, right = gemm(engine, policy, waits_in_loop=True)
    assert np.allclose(found, right, rtol=1e-5, atol=1e-4)


def test_a_matrix_product_that_waits_too_late() -> None:
    found, right = gemm("compiled", "converge", waits_in_loop=False)
    assert np.allclose(found, right, rtol=1e-5, atol=1e-4)
    found, right = gemm("compiled", "adversarial", waits_in_loop=False)
    assert not np.allclose(found, right, rtol=1e-2, atol=1)
