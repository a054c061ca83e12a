// Scans and reductions of a block, in shared memory and by shuffles.
#include "threads.cuh"

// Hillis and Steele: an inclusive sum in log2(threads) steps, each block for itself.
extern "C" __global__ void scan_shared(const int *in, int *out, int n)
{
    extern __shared__ int part[];
    int t = thread_rank(), threads = block_threads();
    int i = blockIdx.x * threads + t;
    part[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int step = 1; step < threads; step *= 2) {
        int left = t >= step ? part[t - step] : 0;
        __syncthreads();
        part[t] += left;
        __syncthreads();
    }
    if (i < n)
        out[i] = part[t];
}

// Blelloch: an exclusive sum up and down a tree of twice as many elements as threads.
extern "C" __global__ void scan_tree(const float *in, float *out, int n)
{
    extern __shared__ float tree[];
    int t = thread_rank(), threads = block_threads();
    int base = blockIdx.x * 2 * threads;
    tree[t] = base + t < n ? in[base + t] : 0.0f;
    tree[t + threads] = base + t + threads < n ? in[base + t + threads] : 0.0f;
    int offset = 1;
    for (int d = threads; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d) {
            int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1;
            tree[b] += tree[a];
        }
        offset *= 2;
    }
    if (t == 0)
        tree[2 * threads - 1] = 0.0f;
    for (int d = 1; d <= threads; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (t < d) {
            int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1;
            float left = tree[a];
            tree[a] = tree[b];
            tree[b] += left;
        }
    }
    __syncthreads();
    if (base + t < n)
        out[base + t] = tree[t];
    if (base + t + threads < n)
        out[base + t + threads] = tree[t + threads];
}

__device__ int warp_scan(int value, int lane)
{
    for (int step = 1; step < 32; step *= 2) {
        int left = __shfl_up_sync(0xffffffff, value, step);
        if (lane >= step)
            value += left;
    }
    return value;
}

// An inclusive sum by shuffles in each warp, and once more over the sums of the warps.
extern "C" __global__ void scan_shuffles(const int *in, int *out, int n)
{
    __shared__ int sums[32];
    int t = thread_rank(), lane = t % 32, warp = t / 32;
    int i = blockIdx.x * block_threads() + t;
    int value = warp_scan(i < n ? in[i] : 0, lane);
    if (lane == 31)
        sums[warp] = value;
    __syncthreads();
    if (warp == 0) {
        int warps = block_threads() / 32;
        int sum = warp_scan(lane < warps ? sums[lane] : 0, lane);
        sums[lane] = sum;
    }
    __syncthreads();
    if (warp > 0)
        value += sums[warp - 1];
    if (i < n)
        out[i] = value;
}

// The sum of squares over a grid-stride loop, in a tree; a block may have any number of threads.
extern "C" __global__ void sum_squares(const float *in, double *sums, int n)
{
    extern __shared__ double partial[];
    int t = thread_rank(), threads = block_threads();
    double sum = 0.0;
    for (int i = blockIdx.x * threads + t; i < n; i += gridDim.x * threads)
        sum += (double)in[i] * in[i];
    partial[t] = sum;
    __syncthreads();
    for (int left = threads; left > 1;) {
        int half = (left + 1) / 2;
        if (t < left - half)
            partial[t] += partial[t + half];
        __syncthreads();
        left = half;
    }
    if (t == 0)
        sums[blockIdx.x] = partial[0];
}

// The largest element of each row and its first place, one block a row.
extern "C" __global__ void argmax_rows(const float *in, int *places, int columns)
{
    extern __shared__ unsigned char bytes[];
    int t = thread_rank(), threads = block_threads();
    float *values = (float *)bytes;
    int *where = (int *)(values + threads);
    const float *row = in + (size_t)blockIdx.x * columns;
    float best = row[0];
    int place = 0;
    for (int c = t; c < columns; c += threads)
        if (row[c] > best) {
            best = row[c];
            place = c;
        }
    values[t] = best;
    where[t] = place;
    __syncthreads();
    for (int half = threads / 2; half > 0; half /= 2) {
        if (t < half) {
            float other = values[t + half];
            if (other > values[t] || (other == values[t] && where[t + half] < where[t])) {
                values[t] = other;
                where[t] = where[t + half];
            }
        }
        __syncthreads();
    }
    if (t == 0)
        places[blockIdx.x] = where[0];
}

// Keeps the positive elements of each block's part in order, by ballots.
extern "C" __global__ void compact(const int *in, int *out, int *counts, int n)
{
    __shared__ int offsets[33];
    int t = thread_rank(), lane = t % 32, warp = t / 32, threads = block_threads();
    int base = blockIdx.x * threads, i = base + t;
    int value = i < n ? in[i] : 0;
    unsigned kept = __ballot_sync(__activemask(), value > 0);
    if (lane == 0)
        offsets[warp + 1] = __popc(kept);
    __syncthreads();
    if (t == 0) {
        offsets[0] = 0;
        for (int w = 0; w < (threads + 31) / 32; w++)
            offsets[w + 1] += offsets[w];
        counts[blockIdx.x] = offsets[(threads + 31) / 32];
    }
    __syncthreads();
    if (value > 0)
        out[base + offsets[warp] + __popc(kept & ((1u << lane) - 1))] = value;
}
