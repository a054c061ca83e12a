// Four kernels in four streams, each followed by a copy of its own part, all issued at once.
#include <cstdio>
#include <cuda_runtime.h>

const int PARTS = 4, COUNT = 1 << 14;

__global__ void fill(int *values, int number)
{
    values[blockIdx.x * blockDim.x + threadIdx.x] = number;
}

int main()
{
    int *values, *host;
    cudaStream_t streams[PARTS];
    cudaMalloc(&values, PARTS * COUNT * sizeof(int));
    cudaMallocHost(&host, PARTS * COUNT * sizeof(int));
    for (int part = 0; part < PARTS; part++) {
        cudaStreamCreate(&streams[part]);
        fill<<<COUNT / 256, 256, 0, streams[part]>>>(values + part * COUNT, part);
        cudaMemcpyAsync(host + part * COUNT, values + part * COUNT, COUNT * sizeof(int),
                        cudaMemcpyDeviceToHost, streams[part]);
    }
    cudaDeviceSynchronize();
    printf("%d\n", host[PARTS * COUNT - 1]);
}
