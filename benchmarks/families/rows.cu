// Rows of a matrix and signals: softmax, layer normalisation, Fourier transforms.
#include <math_constants.h>
#include "threads.cuh"

__device__ float warp_max(float value)
{
    for (int step = 16; step > 0; step >>= 1)
        value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, step));
    return value;
}

__device__ float warp_sum(float value)
{
    for (int step = 16; step > 0; step >>= 1)
        value += __shfl_xor_sync(0xffffffff, value, step);
    return value;
}

// One warp a row.
extern "C" __global__ void softmax(const float *in, float *out, int rows, int columns)
{
    int rank = thread_rank(), lane = rank % 32;
    int row = (blockIdx.x * block_threads() + rank) / 32;
    if (row >= rows)
        return;
    in += (size_t)row * columns;
    out += (size_t)row * columns;
    float largest = -CUDART_INF_F;
    for (int c = lane; c < columns; c += 32)
        largest = fmaxf(largest, in[c]);
    largest = warp_max(largest);
    float sum = 0.0f;
    for (int c = lane; c < columns; c += 32)
        sum += __expf(in[c] - largest);
    sum = warp_sum(sum);
    for (int c = lane; c < columns; c += 32)
        out[c] = __expf(in[c] - largest) / sum;
}

__device__ float block_sum(float value, float *sums)
{
    int rank = thread_rank(), lane = rank % 32, warp = rank / 32, warps = block_threads() / 32;
    value = warp_sum(value);
    if (lane == 0)
        sums[warp] = value;
    __syncthreads();
    value = warp_sum(lane < warps ? sums[lane] : 0.0f);
    __syncthreads();
    return value;
}

// One block a row.
extern "C" __global__ void layer_norm(const float *in, const float *gain, const float *bias,
                                      float *out, int columns)
{
    __shared__ float sums[32];
    int t = thread_rank(), threads = block_threads();
    in += (size_t)blockIdx.x * columns;
    out += (size_t)blockIdx.x * columns;
    float sum = 0.0f, squares = 0.0f;
    for (int c = t; c < columns; c += threads) {
        sum += in[c];
        squares += in[c] * in[c];
    }
    float mean = block_sum(sum, sums) / columns;
    float variance = block_sum(squares, sums) / columns - mean * mean;
    float scale = rsqrtf(variance + 1e-5f);
    for (int c = t; c < columns; c += threads)
        out[c] = (in[c] - mean) * scale * gain[c] + bias[c];
}

// A transform of `n` points (a power of two) a block, radix 2, in shared memory.
extern "C" __global__ void fft(const float2 *in, float2 *out, int n, int bits)
{
    extern __shared__ float2 points[];
    int t = thread_rank(), threads = block_threads();
    in += (size_t)blockIdx.x * n;
    out += (size_t)blockIdx.x * n;
    for (int i = t; i < n; i += threads)
        points[__brev(i) >> (32 - bits)] = in[i];
    __syncthreads();
    for (int half = 1; half < n; half *= 2) {
        for (int i = t; i < n / 2; i += threads) {
            int k = i % half, a = (i - k) * 2 + k, b = a + half;
            float s, c;
            sincospif(-(float)k / half, &s, &c);
            float2 p = points[a], q = points[b];
            float2 r = make_float2(q.x * c - q.y * s, q.x * s + q.y * c);
            points[a] = make_float2(p.x + r.x, p.y + r.y);
            points[b] = make_float2(p.x - r.x, p.y - r.y);
        }
        __syncthreads();
    }
    for (int i = t; i < n; i += threads)
        out[i] = points[i];
}

extern "C" __global__ void complex_product(const double2 *a, const double2 *b, double2 *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double2 p = a[i], q = b[i];
    c[i] = make_double2(p.x * q.x - p.y * q.y, p.x * q.y + p.y * q.x);
}

// A filter of `taps` coefficients; the signal's end is followed by zeros.
extern "C" __global__ void filter(const float *in, const float *taps, float *out, int n, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < count && i + k < n; k++)
        sum += taps[k] * in[i + k];
    out[i] = sum;
}
