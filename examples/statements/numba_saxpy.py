"""SAXPY in Numba, as tutorials have it: 1 * 1 + 1 for each element."""

import numpy as np
from numba import cuda


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


x = cuda.to_device(np.ones(5, np.float32))
y = cuda.to_device(np.ones(5, np.float32))
saxpy[1, 32](np.float32(1), x, y)
print(y.copy_to_host())
