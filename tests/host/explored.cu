__device__ int winner;

// Whoever stores last wins: any thread may.
__global__ void last_store() { winner = blockIdx.x * blockDim.x + threadIdx.x; }

// Sums of floats depend on their order.
__global__ void float_sum(const float *x, float *total) {
    atomicAdd(total, x[blockIdx.x * blockDim.x + threadIdx.x]);
}

// Sums of integers do not.
__global__ void integer_sum(int *total) { atomicAdd(total, threadIdx.x); }

// A thread reads what another has written, or not yet.
__global__ void reversed(const int *in, int *out) {
    __shared__ int tile[64];
    tile[threadIdx.x] = in[threadIdx.x];        // early or late
    out[threadIdx.x] = tile[63 - threadIdx.x];  // sees it or not
}

// The same, waited for.
__global__ void reversed_after_barrier(const int *in, int *out) {
    __shared__ int tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[63 - threadIdx.x];
}

// Block 1 waits for block 0; where it comes first and the device holds one block, nobody goes on.
__global__ void in_order(volatile int *flag) {
    if (blockIdx.x == 1) while (*flag == 0);
    *flag = 1;
}
