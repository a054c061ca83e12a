// Kernels whose lanes part, wait for each other, and meet again.

extern "C" __global__ void spin_lock(int *lock, int *count)
{
    while (atomicCAS(lock, 0, 1) != 0) { }
    *count += 1;
    __threadfence();
    atomicExch(lock, 0);
}

// Lane 1 waits for what lane 0 of its own warp produces, or the other way round.
extern "C" __global__ void exchange(int *out, int producer)
{
    __shared__ volatile int flag, value;
    if (threadIdx.x == 0)
        flag = 0;
    __syncthreads();
    if (threadIdx.x == producer) {
        value = 42;
        __threadfence_block();
        flag = 1;
    } else if (threadIdx.x == 1 - producer) {
        while (flag == 0) { }
        out[0] = value;
    }
}

extern "C" __global__ void sum_lockstep(const int *in, int *out)
{
    __shared__ volatile int part[64];
    int t = threadIdx.x;
    part[t] = in[t];
    part[t + 32] = 0;
    for (int d = 16; d > 0; d /= 2)
        part[t] += part[t + d];
    if (t == 0)
        out[0] = part[0];
}

extern "C" __global__ void sum_synchronised(const int *in, int *out)
{
    __shared__ int part[64];
    int t = threadIdx.x;
    part[t] = in[t];
    part[t + 32] = 0;
    __syncwarp();
    for (int d = 16; d > 0; d /= 2) {
        int next = part[t + d];
        __syncwarp();
        part[t] += next;
        __syncwarp();
    }
    if (t == 0)
        out[0] = part[0];
}

extern "C" __global__ void some_reach_the_barrier(int *out)
{
    if (threadIdx.x < 40)
        __syncthreads();
    else
        while (((volatile int *)out)[1] == 0) { }
    out[0] = 1;
}

// Each block waits for the next one.
extern "C" __global__ void chain(int *flags)
{
    if (threadIdx.x != 0)
        return;
    if (blockIdx.x + 1 < gridDim.x)
        while (((volatile int *)flags)[blockIdx.x + 1] == 0) { }
    __threadfence();
    atomicExch(&flags[blockIdx.x], 1);
}

// Each block adds what all before it hold: it looks back at the block before it.
extern "C" __global__ void look_back(const int *in, int *sums, int *ready)
{
    if (threadIdx.x != 0)
        return;
    int before = 0;
    if (blockIdx.x > 0) {
        while (atomicAdd(&ready[blockIdx.x - 1], 0) == 0) { }
        before = ((volatile int *)sums)[blockIdx.x - 1];
    }
    ((volatile int *)sums)[blockIdx.x] = before + in[blockIdx.x];
    __threadfence();
    atomicExch(&ready[blockIdx.x], 1);
}

// All blocks count themselves in and wait for the last.
extern "C" __global__ void grid_barrier(int *arrived, int *out)
{
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < gridDim.x) { }
    }
    __syncthreads();
    if (threadIdx.x == 0)
        out[blockIdx.x] = atomicAdd(arrived, 0);
}

extern "C" __global__ void halves(int *out)
{
    int t = threadIdx.x, v = t;
    if (t < 16)
        v = __shfl_xor_sync(0x0000ffff, v, 1);
    else
        v = __shfl_xor_sync(0xffff0000, v, 2);
    v += __shfl_down_sync(0xffffffff, v, 16);
    out[t] = v;
}

// An inner loop whose count differs by lane: it does not end soon, but it ends.
extern "C" __global__ void long_runs(int *out, int laps)
{
    unsigned x = threadIdx.x;
    for (int i = 0; i < laps * (1 + threadIdx.x % 2); ++i)
        x = x * 1664525u + 1013904223u;
    out[threadIdx.x] = x;
}
