"""PyCUDA with PTX: a module from a buffer, arrays, a launch with PyCUDA's own argument packing."""

from __future__ import annotations

import numpy as np
import pycuda.autoinit  # noqa: F401
import pycuda.driver as cuda
from cuda.bindings import nvrtc

SOURCE = rb"""
extern "C" __global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
"""


def ptx():
    _, program = nvrtc.nvrtcCreateProgram(SOURCE, b"saxpy.cu", 0, [], [])
    assert int(nvrtc.nvrtcCompileProgram(program, 1, [b"-arch=compute_80"])[0]) == 0
    text = b" " * nvrtc.nvrtcGetPTXSize(program)[1]
    nvrtc.nvrtcGetPTX(program, text)
    return text


module = cuda.module_from_buffer(ptx())
saxpy = module.get_function("saxpy")
x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
wanted = 2 * x + y
saxpy(np.int32(1000), np.float32(2), cuda.In(x), cuda.InOut(y), block=(128, 1, 1), grid=(8, 1))
np.testing.assert_array_equal(y, wanted)

pointer = cuda.mem_alloc(x.nbytes)
cuda.memcpy_htod(pointer, x)
saxpy.prepare("ifPP")
saxpy.prepared_call((8, 1), (128, 1, 1), 1000, 1.0, pointer, pointer)
back = np.empty_like(x)
cuda.memcpy_dtoh(back, pointer)
np.testing.assert_array_equal(back, 2 * x)
print("saxpy")
