"""Kernel Tuner: the best block size of a kernel, with each of the two backends that it has for
CUDA, and an answer that is checked."""

import kernel_tuner
import numpy as np

SOURCE = """
__global__ void add(float *c, const float *a, const float *b, int n)
{
    int i = blockIdx.x * block_size_x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"""

n = 1000
a, b = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
arguments = [np.zeros(n, np.float32), a, b, np.int32(n)]
for backend in ("nvcuda", "pycuda"):
    tried, _ = kernel_tuner.tune_kernel(
        "add",
        SOURCE,
        n,
        arguments,
        {"block_size_x": [32, 64, 128]},
        answer=[a + b, None, None, None],
        lang=backend,
        iterations=2,
        quiet=True,
    )
    assert all(isinstance(one["time"], float) for one in tried)
    print(backend, len(tried), end=" ")
