"""Triton without torch: its compiler and its launcher, with arrays in memory of the driver's."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl
from cuda.bindings import driver


class Array:
    """What Triton takes for a tensor: an address and a type."""

    def __init__(self, host):
        self.host = host
        self.dtype = {"float32": tl.float32, "int32": tl.int32}[str(host.dtype)]
        _, address = driver.cuMemAlloc(host.nbytes)
        self.address = int(address)
        driver.cuMemcpyHtoD(self.address, host, host.nbytes)

    def data_ptr(self):
        return self.address

    def numpy(self):
        out = np.empty_like(self.host)
        driver.cuMemcpyDtoH(out, self.address, out.nbytes)
        return out


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask) + tl.load(y + at, mask), mask)


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    values = tl.load(x + row * n + at, at < n, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * n + at, powers / tl.sum(powers, 0), at < n)


@triton.jit
def matmul(a, b, c, n, k, BLOCK: tl.constexpr):  # noqa: N803
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for step in range(0, k, BLOCK):
        left = tl.load(a + rows[:, None] * k + step + inner[None, :])
        right = tl.load(b + (step + inner[:, None]) * n + columns[None, :])
        total += tl.dot(left, right, input_precision="ieee")
    tl.store(c + rows[:, None] * n + columns[None, :], total)


driver.cuInit(0)
driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(0)[1])


class Active:
    """The part of torch that Triton's launcher asks: the device and its stream."""


rng = np.random.default_rng(0)
x, y = (rng.standard_normal(1000).astype(np.float32) for _ in range(2))
out = Array(np.zeros(1000, np.float32))
backend = triton.runtime.driver.active
backend.get_current_device = lambda: 0
backend.get_current_stream = lambda device: 0
backend.set_current_device = lambda device: None
add[(4,)](Array(x), Array(y), out, 1000, BLOCK=256)
np.testing.assert_array_equal(out.numpy(), x + y)
print("add")

x = rng.standard_normal((8, 100)).astype(np.float32)
out = Array(np.zeros_like(x))
softmax[(8,)](Array(x), out, 100, BLOCK=128)
powers = np.exp(x - x.max(1, keepdims=True))
np.testing.assert_allclose(out.numpy(), powers / powers.sum(1, keepdims=True), rtol=1e-5)
print("softmax")

a, b = (rng.integers(-4, 4, (32, 32)).astype(np.float32) for _ in range(2))
out = Array(np.zeros((32, 32), np.float32))
matmul[(2, 2)](Array(a), Array(b), out, 32, 32, BLOCK=16)
np.testing.assert_array_equal(out.numpy(), a @ b)
print("matmul")
