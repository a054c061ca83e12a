// A kernel that writes behind the end of its memory.
#include "must.h"

__global__ void fill(int *x) { x[2 * threadIdx.x] = 1; }

int main()
{
    int *x;
    MUST(cudaMalloc(&x, 32 * sizeof(int)));
    fill<<<1, 32>>>(x);
    return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 0 : 1;
}
