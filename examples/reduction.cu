// The sum of a block in shared memory, two ways. Both halve the number of partial sums each step.

// Contiguous lanes: the active threads are the first `stride` ones, so whole warps drop out.
extern "C" __global__ void reduce(const float *x, float *sums, int n)
{
    extern __shared__ float part[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    part[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride)
            part[t] += part[t + stride];
        __syncthreads();
    }
    if (t == 0)
        sums[blockIdx.x] = part[0];
}

// Its naive twin: every (2 * stride)-th thread is active, so every warp stays busy with few lanes.
extern "C" __global__ void reduce_naive(const float *x, float *sums, int n)
{
    extern __shared__ float part[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    part[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int stride = 1; stride < blockDim.x; stride *= 2) {
        if (t % (2 * stride) == 0)
            part[t] += part[t + stride];
        __syncthreads();
    }
    if (t == 0)
        sums[blockIdx.x] = part[0];
}
