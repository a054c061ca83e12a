// The sum of 128 numbers, as a tree in shared memory: which lanes work in each round?
__global__ void naive(const int *in, int *out)
{
    __shared__ int sums[128];
    int i = threadIdx.x;
    sums[i] = in[i];
    __syncthreads();
#pragma unroll 1
    for (int step = 1; step < blockDim.x; step *= 2) {
        if (i % (2 * step) == 0)
            sums[i] += sums[i + step];
        __syncthreads();
    }
    if (i == 0) *out = sums[0];
}

__global__ void contiguous(const int *in, int *out)
{
    __shared__ int sums[128];
    int i = threadIdx.x;
    sums[i] = in[i];
    __syncthreads();
#pragma unroll 1
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (i < step)
            sums[i] += sums[i + step];
        __syncthreads();
    }
    if (i == 0) *out = sums[0];
}
