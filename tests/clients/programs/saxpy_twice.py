"""SAXPY, twice, for its report."""

import numpy as np
from numba import cuda


@cuda.jit
def saxpy(a, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]


x = cuda.to_device(np.ones(1000, np.float32))
out = cuda.device_array_like(x)
for _ in range(2):
    saxpy[8, 128](np.float32(2), x, x, out)
assert out.copy_to_host().tolist() == [3.0] * 1000
