"""cuda.bindings.runtime, whose extension modules have a CUDA runtime of their own linked in."""

import numpy as np
from cuda.bindings import runtime as rt


def must(answer):
    error, *values = answer
    assert error == rt.cudaError_t.cudaSuccess, error
    return values[0] if len(values) == 1 else values


assert must(rt.cudaGetDeviceCount()) == 1
properties = must(rt.cudaGetDeviceProperties(0))
print(properties.name.decode().split()[0], properties.major, end=" ")
x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
memory, stream = must(rt.cudaMalloc(400)), must(rt.cudaStreamCreate())
kinds = rt.cudaMemcpyKind
must(rt.cudaMemcpyAsync(memory, x.ctypes.data, 400, kinds.cudaMemcpyHostToDevice, stream))
must(rt.cudaMemcpyAsync(y.ctypes.data, memory, 400, kinds.cudaMemcpyDeviceToHost, stream))
must(rt.cudaStreamSynchronize(stream))
assert np.array_equal(x, y)
must(rt.cudaFree(memory))
print(rt.cudaMemcpy(1, 2, 4, kinds.cudaMemcpyDeviceToDevice)[0].name)
