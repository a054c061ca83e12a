// Work of two streams without an event between, and a copy that the host does not wait for.
#include <cstdio>
#include <cuda_runtime.h>

__global__ void fill(int *values, int value) { values[threadIdx.x] = value; }
__global__ void twice(int *values) { values[threadIdx.x] *= 2; }

int main(int count, char **) {
    int *values, *host;
    cudaMalloc(&values, 128);
    cudaMallocHost(&host, 128);
    cudaMemset(values, 0, 128);
    host[7] = -1;
    cudaStream_t first, second;
    cudaStreamCreate(&first);
    cudaStreamCreate(&second);
    cudaEvent_t filled;
    cudaEventCreate(&filled);
    fill<<<1, 32, 0, first>>>(values, 5);
    cudaEventRecord(filled, first);
    if (count > 1) cudaStreamWaitEvent(second, filled, 0);
    twice<<<1, 32, 0, second>>>(values);
    cudaMemcpyAsync(host, values, 128, cudaMemcpyDeviceToHost, second);
    if (count > 1) cudaStreamSynchronize(second);
    printf("%d\n", host[7]);
    cudaDeviceSynchronize();
    printf("%d\n", host[7]);
    return 0;
}
