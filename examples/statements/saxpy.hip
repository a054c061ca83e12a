// SAXPY in HIP.
#include <hip/hip_runtime.h>

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = hipBlockIdx_x * hipBlockDim_x + hipThreadIdx_x;
    if (i < n) y[i] = a * x[i] + y[i];
}
