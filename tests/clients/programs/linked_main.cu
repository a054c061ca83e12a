// One of two object files: what it uses on the device, linked_part.cu defines.
#include "must.h"

extern __device__ float scaled(float x);
extern __device__ int calls;
extern __constant__ float factors[2];

void set_factors();
int count_calls();

__global__ void apply(float *x)
{
    x[threadIdx.x] = scaled(x[threadIdx.x]) + factors[1];
    atomicAdd(&calls, 1);
}

int main()
{
    float *x;
    MUST(cudaMallocManaged(&x, 32 * sizeof(float)));
    for (int i = 0; i < 32; ++i) x[i] = i;
    set_factors();
    apply<<<1, 32>>>(x);
    MUST(cudaDeviceSynchronize());
    printf("%g %g %d\n", x[1], x[31], count_calls());
    return 0;
}
