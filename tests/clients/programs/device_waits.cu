// Kernels of two streams that nothing orders but cudaDeviceSynchronize() between them.
#include <cstdio>
#include <cuda_runtime.h>

__global__ void add(int *values)
{
    values[threadIdx.x]++;
}

int main()
{
    int *values, first;
    cudaStream_t one, other;
    cudaMalloc(&values, 32 * sizeof(int));
    cudaMemset(values, 0, 32 * sizeof(int));
    cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaDeviceSynchronize();
    add<<<1, 32, 0, one>>>(values);
    cudaDeviceSynchronize();
    add<<<1, 32, 0, other>>>(values);
    cudaDeviceSynchronize();
    cudaMemcpy(&first, values, sizeof(int), cudaMemcpyDeviceToHost);
    printf("%d\n", first);
    cudaFree(values);
}
