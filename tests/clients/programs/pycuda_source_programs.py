"""PyCUDA's own way: kernels from source, and arrays whose arithmetic makes kernels."""

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as cuda
from pycuda import gpuarray
from pycuda.compiler import SourceModule
from pycuda.elementwise import ElementwiseKernel

module = SourceModule("""
#include <cuda_fp16.h>

__global__ void multiply_them(float *dest, const float *a, const float *b)
{
    const int i = threadIdx.x;
    dest[i] = a[i] * __half2float(__float2half(b[i]));
}
""", no_extern_c=True)  # fmt: skip
other = SourceModule("__global__ void scale(float *a) { a[threadIdx.x] *= FACTOR; }",
                     options=["-DFACTOR=2", "-O3"])  # fmt: skip

multiply_them = module.get_function("_Z13multiply_themPfPKfS1_")
a, b = np.arange(400, dtype=np.float32), np.full(400, 0.5, np.float32)
dest = np.zeros_like(a)
multiply_them(cuda.Out(dest), cuda.In(a), cuda.In(b), block=(400, 1, 1), grid=(1, 1))
np.testing.assert_array_equal(dest, a / 2)
other.get_function("scale")(cuda.InOut(dest), block=(400, 1, 1))
np.testing.assert_array_equal(dest, a)
print("module")

x = gpuarray.to_gpu(a)
np.testing.assert_array_equal((2 * x + 1).get(), 2 * a + 1)
print("array")

add = ElementwiseKernel("float s, float *x, float *y", "y[i] = s * x[i] + y[i]", "add")
y = gpuarray.to_gpu(b)
add(3.0, x, y)
np.testing.assert_array_equal(y.get(), 3 * a + b)
print("elementwise")

assert gpuarray.sum(x).get() == a.sum()
print("sum")
