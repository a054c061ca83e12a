// Sorting: within blocks, by counting, by comparing with all others; lengths of runs.
#include "threads.cuh"

// Batcher's bitonic sort of one element a thread, each block for itself.
extern "C" __global__ void bitonic(const int *in, int *out)
{
    extern __shared__ int keys[];
    int t = thread_rank(), threads = block_threads();
    size_t base = (size_t)blockIdx.x * threads;
    keys[t] = in[base + t];
    __syncthreads();
    for (int k = 2; k <= threads; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            int other = t ^ j;
            if (other > t) {
                int a = keys[t], b = keys[other];
                bool ascending = (t & k) == 0;
                if ((a > b) == ascending) {
                    keys[t] = b;
                    keys[other] = a;
                }
            }
            __syncthreads();
        }
    out[base + t] = keys[t];
}

// A pass of a radix sort: each block sorts its keys by four bits, one bit after the other, and
// counts its digits.
extern "C" __global__ void radix_pass(const unsigned *in, unsigned *out, unsigned *counts, int shift)
{
    extern __shared__ unsigned moved[];
    __shared__ int zeros[33];
    __shared__ unsigned digits[16];
    int t = thread_rank(), threads = block_threads();
    int lane = t % 32, warp = t / 32, warps = threads / 32;
    size_t base = (size_t)blockIdx.x * threads;
    if (t < 16)
        digits[t] = 0;
    unsigned key = in[base + t];
    __syncthreads();
    atomicAdd(&digits[(key >> shift) & 15], 1u);
    for (int bit = shift; bit < shift + 4; bit++) {
        bool one = (key >> bit) & 1;
        unsigned ones = __ballot_sync(0xffffffff, one);
        if (lane == 0)
            zeros[warp + 1] = 32 - __popc(ones);
        __syncthreads();
        if (t == 0) {
            zeros[0] = 0;
            for (int w = 1; w <= warps; w++)
                zeros[w] += zeros[w - 1];
        }
        __syncthreads();
        int ones_before = __popc(ones & ((1u << lane) - 1));
        int zeros_before = zeros[warp] + lane - ones_before;
        moved[one ? zeros[warps] + t - zeros_before : zeros_before] = key;
        __syncthreads();
        key = moved[t];
        __syncthreads();
    }
    out[base + t] = key;
    if (t < 16)
        counts[blockIdx.x * 16 + t] = digits[t];
}

extern "C" __global__ void rank_sort(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float own = in[i];
    int rank = 0;
    for (int j = 0; j < n; j++) {
        float other = in[j];
        if (other < own || (other == own && j < i))
            rank++;
    }
    out[rank] = own;
}

// The thread at the start of a run writes its length, the others write 0.
extern "C" __global__ void run_lengths(const unsigned char *in, int *lengths, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned char value = in[i];
    if (i > 0 && in[i - 1] == value) {
        lengths[i] = 0;
        return;
    }
    int end = i + 1;
    while (end < n && in[end] == value)
        end++;
    lengths[i] = end - i;
}
