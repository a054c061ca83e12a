// Sums, largest elements and counts over grid-stride loops; rows that the lanes of a warp share.
#include "threads.cuh"

__device__ float sum_of_warp(float value)
{
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_down_sync(0xffffffff, value, step);
    return value;
}

// A partial sum a block, by a tree in shared memory; the threads are a power of two.
extern "C" __global__ void dot(const double *a, const double *b, double *sums, int n)
{
    extern __shared__ double partial[];
    int t = thread_rank(), threads = block_threads();
    double sum = 0.0;
    for (int i = blockIdx.x * threads + t; i < n; i += gridDim.x * threads)
        sum += a[i] * b[i];
    partial[t] = sum;
    __syncthreads();
    for (int half = threads / 2; half > 0; half /= 2) {
        if (t < half)
            partial[t] += partial[t + half];
        __syncthreads();
    }
    if (t == 0)
        sums[blockIdx.x] = partial[0];
}

// The squared distance of two vectors: shuffles, then one atomic addition a warp.
extern "C" __global__ void distance(const float *a, const float *b, float *total, int n)
{
    int t = thread_rank(), threads = block_threads();
    float sum = 0.0f;
    for (int i = blockIdx.x * threads + t; i < n; i += gridDim.x * threads) {
        float difference = a[i] - b[i];
        sum += difference * difference;
    }
    sum = sum_of_warp(sum);
    if (t % 32 == 0)
        atomicAdd(total, sum);
}

// The largest element: the warps by shuffles, the block in shared memory, the grid by atomics.
extern "C" __global__ void largest(const int *in, int *out, int n)
{
    __shared__ int largest_of[32];
    int t = thread_rank(), threads = block_threads();
    int most = -0x7fffffff - 1;
    for (int i = blockIdx.x * threads + t; i < n; i += gridDim.x * threads)
        most = max(most, in[i]);
    most = __reduce_max_sync(0xffffffff, most);
    if (t % 32 == 0)
        largest_of[t / 32] = most;
    __syncthreads();
    if (t == 0) {
        for (int w = 1; w < threads / 32; w++)
            most = max(most, largest_of[w]);
        atomicMax(out, most);
    }
}

// How often two images have two of 16 shades at the same place, in shared memory first.
extern "C" __global__ void joint_histogram(const unsigned char *a, const unsigned char *b,
                                           unsigned *bins, int n)
{
    __shared__ unsigned own[256];
    int t = thread_rank(), threads = block_threads();
    for (int bin = t; bin < 256; bin += threads)
        own[bin] = 0;
    __syncthreads();
    for (int i = blockIdx.x * threads + t; i < n; i += gridDim.x * threads)
        atomicAdd(&own[(a[i] >> 4) * 16 + (b[i] >> 4)], 1u);
    __syncthreads();
    for (int bin = t; bin < 256; bin += threads)
        atomicAdd(&bins[bin], own[bin]);
}

// A matrix times a vector: one warp per row, whose lanes stride over the columns.
extern "C" __global__ void times_vector(const float *matrix, const float *x, float *y, int rows,
                                        int columns)
{
    int rank = thread_rank(), lane = rank % 32;
    int row = (blockIdx.x * block_threads() + rank) / 32;
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int c = lane; c < columns; c += 32)
        sum += matrix[(size_t)row * columns + c] * x[c];
    sum = sum_of_warp(sum);
    if (lane == 0)
        y[row] = sum;
}

// Warps stride over the rows as well: the root of each row's sum of squares.
extern "C" __global__ void row_norms(const float *matrix, float *norms, int rows, int columns)
{
    int rank = blockIdx.x * block_threads() + thread_rank(), lane = rank % 32;
    int warps = gridDim.x * block_threads() / 32;
    for (int row = rank / 32; row < rows; row += warps) {
        const float *elements = matrix + (size_t)row * columns;
        float sum = 0.0f;
        for (int c = lane; c < columns; c += 32)
            sum += elements[c] * elements[c];
        sum = sum_of_warp(sum);
        if (lane == 0)
            norms[row] = sqrtf(sum);
    }
}
