"""CuPy: kernels of its own and of the program, with the shared CUDA runtime in its modules."""

import cupy

raw = cupy.RawKernel(
    r"""
    extern "C" __global__ void saxpy(float a, const float *x, float *y) {
        int i = blockDim.x * blockIdx.x + threadIdx.x;
        y[i] += a * x[i];
    }
    """,
    "saxpy",
)
x, y = cupy.arange(256, dtype=cupy.float32), cupy.ones(256, dtype=cupy.float32)
raw((2,), (128,), (cupy.float32(2), x, y))
print("raw", bool((y == 2 * x + 1).all()))

module = cupy.RawModule(
    code="template <typename T> __global__ void twice(T *x) { x[threadIdx.x] *= 2; }",
    options=("-std=c++17",),
    name_expressions=["twice<int>"],
)
z = cupy.array([1, 2, 3], dtype=cupy.int32)
module.get_function("twice<int>")((1,), (3,), (z,))
print("module", *z.tolist())

squares = cupy.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "squares")
print("elementwise", *squares(z, 1).tolist())
norm = cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")
print("reduction", float(norm(cupy.array([3.0, 4.0]))))

print("sums", int(cupy.arange(1000).sum()), *cupy.cumsum(cupy.arange(5)).tolist())  # CUB
print("indexing", *x[cupy.array([3, 5])].tolist(), *x[x > 253].tolist())
print("random", bool((cupy.random.default_rng(1).random(100) < 1).all()))
try:
    cupy.eye(2) @ cupy.eye(2)
except Exception as error:  # without its library, the import fails
    print("product", type(error).__name__ in ("CUBLASError", "ImportError"))
