// Two kernels that wait for each other, in two streams, or with an argument in one; a copy and an
// event after the first, and a third stream that waits for the event.
#include <cstdio>
#include <cuda_runtime.h>

__global__ void meet(volatile int *own, volatile int *others, int *out) {
    for (int turn = 1; turn <= 3; turn++) {
        *own = turn;
        while (*others < turn) {
        }
    }
    *out = 1;
}

__global__ void sum_of(const int *values, int *sum) { *sum = values[0] + 10 * values[1]; }

int main(int count, char **) {
    int *flags, *out, *sum, *host, total = 0;
    cudaMalloc(&flags, 8);
    cudaMalloc(&out, 8);
    cudaMalloc(&sum, 4);
    cudaMallocHost(&host, 8);
    cudaMemset(flags, 0, 8);
    cudaMemset(out, 0, 8);
    host[0] = 0;
    cudaStream_t first, second, third;
    cudaStreamCreate(&first);
    cudaStreamCreate(&second);
    cudaStreamCreateWithFlags(&third, cudaStreamNonBlocking);
    cudaEvent_t copied, met;
    cudaEventCreate(&copied);
    cudaEventCreate(&met);

    meet<<<1, 32, 0, first>>>(flags, flags + 1, out);
    cudaMemcpyAsync(host, out, 4, cudaMemcpyDeviceToHost, first);
    cudaEventRecord(copied, first);
    cudaStreamWaitEvent(third, copied, 0);
    sum_of<<<1, 1, 0, third>>>(out, sum);
    printf("%d %d %d %d\n", cudaStreamQuery(first), cudaEventQuery(copied), cudaStreamQuery(second),
           cudaStreamQuery(third));
    meet<<<1, 32, 0, count > 1 ? first : second>>>(flags + 1, flags, out + 1);
    cudaEventRecord(met, first);
    int result = cudaEventSynchronize(met);
    printf("%d\n", result);
    if (result) return 0;
    cudaDeviceSynchronize();
    cudaMemcpy(&total, sum, 4, cudaMemcpyDeviceToHost);
    printf("%d %d; %d %d\n", host[0], total % 10, cudaStreamQuery(first), cudaEventQuery(copied));
    return 0;
}
