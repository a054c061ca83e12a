"""SAXPY in the manner of cuda.core's own sample: a templated kernel compiled to machine code."""

from __future__ import annotations

import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

CODE = """
template<typename T>
__global__ void saxpy(const T a, const T* x, const T* y, T* out, size_t n)
{
    const unsigned int first = threadIdx.x + blockIdx.x * blockDim.x;
    for (size_t i = first; i < n; i += gridDim.x * blockDim.x)
        out[i] = a * x[i] + y[i];
}
"""

device = Device()
device.set_current()
stream = device.create_stream()

program = Program(CODE, "c++", ProgramOptions(std="c++17", arch=f"sm_{device.arch}"))
module = program.compile("cubin", name_expressions=("saxpy<float>", "saxpy<double>"))

for dtype, name in ((np.float32, "saxpy<float>"), (np.float64, "saxpy<double>")):
    kernel = module.get_kernel(name)
    n = 500
    x, y = np.arange(n, dtype=dtype), np.ones(n, dtype)
    buffers = [device.allocate(x.nbytes, stream=stream) for _ in range(3)]
    for buffer, host in zip(buffers, (x, y), strict=False):
        driver.cuMemcpyHtoD(int(buffer.handle), host, host.nbytes)
    config = LaunchConfig(grid=4, block=64)
    launch(stream, config, kernel, dtype(10), *(int(b.handle) for b in buffers), np.uint64(n))
    stream.sync()
    out = np.zeros(n, dtype)
    driver.cuMemcpyDtoH(out, int(buffers[2].handle), out.nbytes)
    np.testing.assert_array_equal(out, 10 * x + y)
    print(name)
    for buffer in buffers:
        buffer.close(stream)
stream.close()
