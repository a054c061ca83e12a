import numpy as np
from numba import cuda


@cuda.jit
def saxpy(a, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]


x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
out = np.zeros(1000, np.float32)
saxpy[4, 256](np.float32(2), x, y, out)
print((out == 2 * x + 1).all())
