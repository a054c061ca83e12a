// Launches a kernel, prints without a newline at the end, and with an argument waits to be ended.
#include <unistd.h>

#include "must.h"

__global__ void fill(int *x) { x[threadIdx.x] = 1; }

int main(int count, char **)
{
    int *x;
    MUST(cudaMalloc(&x, 32 * sizeof(int)));
    fill<<<1, 32>>>(x);
    MUST(cudaDeviceSynchronize());
    printf("its own words");
    if (count == 1) return 0;
    fflush(stdout);
    for (;;) pause();
}
