// A kernel that answers requests of the host, in page-locked memory that both see, until one ends it.
#include <cstdio>
#include <cuda_runtime.h>

__global__ void serve(volatile int *request, volatile int *answer) {
    for (;;) {
        int value;
        while ((value = *request) == 0) {
        }
        if (value < 0) return;
        *answer = 2 * value;
        __threadfence_system();
        *request = 0;
    }
}

int main() {
    int *shared;
    cudaHostAlloc(&shared, 8, cudaHostAllocMapped);
    volatile int *request = shared, *answer = shared + 1;
    *request = *answer = 0;
    serve<<<1, 1>>>(shared, shared + 1);
    for (int value = 1; value <= 3; value++) {
        *request = value;
        while (*request) {
        }
        printf("%d ", *answer);
    }
    *request = -1;
    printf("%d\n", cudaDeviceSynchronize());
    return 0;
}
