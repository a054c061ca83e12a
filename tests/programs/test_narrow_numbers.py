"""CUDA's own headers for half, bfloat16 and fp8, compiled as they are, against ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import warploom as wl

SOURCE = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>

extern "C" __global__ void halves(const __half2* a, const __half2* b, __half2* sum, __half2* top) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    sum[i] = __hadd2(a[i], b[i]);
    top[i] = __hmax2(__hmul2(a[i], b[i]), __hneg2(b[i]));
}

extern "C" __global__ void brains(const __nv_bfloat16* a, const __nv_bfloat16* b,
                                  __nv_bfloat16* product, float* wide) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    product[i] = __hmul(a[i], b[i]);
    wide[i] = __bfloat162float(__hsub(a[i], b[i]));
}

extern "C" __global__ void eighths(const float* x, unsigned char* bits, float* back) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __nv_fp8_e4m3 small(x[i]);
    bits[i] = small.__x;
    back[i] = float(small);
}
"""
COUNT = 512


@pytest.fixture(scope="module", params=["8.0", "9.0"])
def gpu(request: pytest.FixtureRequest) -> wl.Device:
    """A device without bfloat16 arithmetic of its own and fp8, and one with both."""
    return wl.Device(cc=request.param)


@pytest.fixture(scope="module")
def module(gpu: wl.Device) -> wl.Module:
    return gpu.compile(SOURCE, language="cuda")


def numbers(seed: int, dtype: type) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=COUNT) * 2.0 ** rng.integers(-12, 6, COUNT)).astype(dtype)


def same(got: np.ndarray, expected: np.ndarray) -> bool:
    return got.view(np.uint16).tolist() == expected.view(np.uint16).tolist()


def test_halves(gpu: wl.Device, module: wl.Module) -> None:
    a, b = numbers(1, np.float16), numbers(2, np.float16)
    sums, tops = gpu.zeros(COUNT, np.float16), gpu.zeros(COUNT, np.float16)
    module["halves"][2, COUNT // 4](gpu.to_device(a), gpu.to_device(b), sums, tops)
    assert same(sums.copy_to_host(), a + b)
    assert same(tops.copy_to_host(), np.maximum(a * b, -b))


def test_brains(gpu: wl.Device, module: wl.Module) -> None:
    a, b = numbers(3, ml_dtypes.bfloat16), numbers(4, ml_dtypes.bfloat16)
    products, wide = gpu.zeros(COUNT, np.uint16), gpu.zeros(COUNT, np.float32)
    given = [gpu.to_device(v.view(np.uint16)) for v in (a, b)]
    module["brains"][2, COUNT // 2](*given, products, wide)
    assert same(products.copy_to_host(), a * b)
    assert wide.copy_to_host().tolist() == (a - b).astype(np.float32).tolist()


def test_eighths(gpu: wl.Device, module: wl.Module) -> None:
    x = numbers(5, np.float32)
    bits, back = gpu.zeros(COUNT, np.uint8), gpu.zeros(COUNT, np.float32)
    module["eighths"][2, COUNT // 2](gpu.to_device(x), bits, back)
    expected = x.astype(ml_dtypes.float8_e4m3fn)
    assert bits.copy_to_host().tolist() == expected.view(np.uint8).tolist()
    assert back.copy_to_host().tolist() == expected.astype(np.float32).tolist()
