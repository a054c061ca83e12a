"""PyCUDA's DynamicSourceModule: device code that the driver links."""

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as drv
from pycuda.compiler import DynamicSourceModule

module = DynamicSourceModule(
    """
    __device__ int offset = 5;
    __device__ float twice(float x) { return 2 * x; }
    __global__ void apply(float *x) { x[threadIdx.x] = twice(x[threadIdx.x]) + offset; }
    """
)
x = np.arange(32, dtype=np.float32)
module.get_function("apply")(drv.InOut(x), block=(32, 1, 1), grid=(1, 1))
assert np.array_equal(x, 2 * np.arange(32) + 5)
print("linked")
