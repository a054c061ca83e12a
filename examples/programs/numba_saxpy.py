"""A Numba program as it is written for a GPU: `warploom run examples/programs/numba_saxpy.py`."""

import numpy as np
from numba import cuda


@cuda.jit
def saxpy(a, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]


x, y = np.arange(100_000, dtype=np.float32), np.ones(100_000, np.float32)
out = cuda.device_array_like(x)
saxpy[(x.size + 255) // 256, 256](np.float32(2), cuda.to_device(x), cuda.to_device(y), out)
assert np.array_equal(out.copy_to_host(), 2 * x + y)
print("2 x + y: right")
