// A whole program: kernels of four streams, which fit on the device beside each other.
#include <cstdio>
#include <cuda_runtime.h>

__global__ void work(float *x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i];
    for (int round = 0; round < 100; round++) value = value * 0.5f + 1.0f;
    x[i] = value;
}

int main()
{
    const int count = 4096;
    float *x;
    cudaMalloc(&x, 4 * count * sizeof(float));
    cudaMemset(x, 0, 4 * count * sizeof(float));
    for (int i = 0; i < 4; i++) {
        cudaStream_t stream;
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        work<<<count / 256, 256, 0, stream>>>(x + i * count);
    }
    cudaDeviceSynchronize();
    float first;
    cudaMemcpy(&first, x, sizeof(first), cudaMemcpyDeviceToHost);
    printf("%g\n", first);
}
