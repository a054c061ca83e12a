// A whole program of HIP: allocations, copies, a launch, errors.
#include <hip/hip_runtime.h>
#include <cstdio>
#include <vector>

#define CHECK(call) do { hipError_t e = call; if (e != hipSuccess) { printf("%s\n", hipGetErrorString(e)); return 1; } } while (0)

__global__ void vadd(const float *a, const float *b, float *c, int n)
{
    int i = hipBlockIdx_x * hipBlockDim_x + hipThreadIdx_x;
    if (i < n) c[i] = a[i] + b[i];
}

int main()
{
    const int n = 1000;
    std::vector<float> a(n, 1.5f), b(n, 2.0f), c(n);
    float *da, *db, *dc;
    CHECK(hipMalloc(&da, n * sizeof(float)));
    CHECK(hipMalloc(&db, n * sizeof(float)));
    CHECK(hipMalloc(&dc, n * sizeof(float)));
    CHECK(hipMemcpy(da, a.data(), n * sizeof(float), hipMemcpyHostToDevice));
    CHECK(hipMemcpyHtoD((hipDeviceptr_t)db, b.data(), n * sizeof(float)));
    hipLaunchKernelGGL(vadd, dim3((n + 255) / 256), dim3(256), 0, 0, da, db, dc, n);
    CHECK(hipGetLastError());
    CHECK(hipMemcpy(c.data(), dc, n * sizeof(float), hipMemcpyDeviceToHost));
    hipDeviceProp_t properties;
    CHECK(hipGetDeviceProperties(&properties, 0));
    printf("%g %g %d; %s\n", c[0], c[n - 1], properties.warpSize, hipGetErrorName(hipFree(c.data())));
    return 0;
}
