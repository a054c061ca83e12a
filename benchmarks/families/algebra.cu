// Dense linear algebra.
#include "threads.cuh"

extern "C" __global__ void product(const float *a, const float *b, float *c, int m, int n, int k)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || column >= n)
        return;
    float sum = 0.0f;
    for (int i = 0; i < k; i++)
        sum += a[row * k + i] * b[i * n + column];
    c[row * n + column] = sum;
}

// Tiles of DEPTH columns of a and rows of b, whatever the block.
#define DEPTH 16

extern "C" __global__ void product_tiled(const double *a, const double *b, double *c,
                                         int m, int n, int k)
{
    extern __shared__ double tiles[];
    int w = blockDim.x, h = blockDim.y;
    double *left = tiles, *right = tiles + h * DEPTH;
    int row0 = blockIdx.y * h, column0 = blockIdx.x * w;
    int t = threadIdx.y * w + threadIdx.x;
    double sum = 0.0;
    for (int k0 = 0; k0 < k; k0 += DEPTH) {
        for (int i = t; i < h * DEPTH; i += w * h) {
            int r = row0 + i / DEPTH, c = k0 + i % DEPTH;
            left[i] = r < m && c < k ? a[r * k + c] : 0.0;
        }
        for (int i = t; i < w * DEPTH; i += w * h) {
            int r = k0 + i / w, c = column0 + i % w;
            right[i] = r < k && c < n ? b[r * n + c] : 0.0;
        }
        __syncthreads();
        for (int i = 0; i < DEPTH; i++)
            sum += left[threadIdx.y * DEPTH + i] * right[i * w + threadIdx.x];
        __syncthreads();
    }
    int row = row0 + threadIdx.y, column = column0 + threadIdx.x;
    if (row < m && column < n)
        c[row * n + column] = sum;
}

// A tile of 32 x 32 through shared memory; the block walks over it in strips.
extern "C" __global__ void transpose(const float *in, float *out, int rows, int columns)
{
    __shared__ float tile[32][33];
    int left = blockIdx.x * 32, top = blockIdx.y * 32;
    int t = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
    for (int i = t; i < 1024; i += threads) {
        int r = i / 32, c = i % 32;
        if (top + r < rows && left + c < columns)
            tile[r][c] = in[(top + r) * columns + left + c];
    }
    __syncthreads();
    for (int i = t; i < 1024; i += threads) {
        int r = i / 32, c = i % 32;
        if (left + r < columns && top + c < rows)
            out[(left + r) * rows + top + c] = tile[c][r];
    }
}

// One step of an LU factorisation without pivots: row k is taken off the rows below it.
extern "C" __global__ void eliminate(double *a, int n, int k)
{
    int column = k + blockIdx.x * blockDim.x + threadIdx.x;
    int row = k + 1 + blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || column >= n || column == k)
        return;
    double factor = a[row * n + k] / a[k * n + k];
    a[row * n + column] -= factor * a[k * n + column];
}

// Forward substitution, one lower triangular system a block, columns from left to right.
extern "C" __global__ void substitute(const float *matrices, const float *right, float *x, int n)
{
    extern __shared__ float rest[];
    int t = thread_rank();
    int threads = block_threads();
    const float *l = matrices + (size_t)blockIdx.x * n * n;
    for (int i = t; i < n; i += threads)
        rest[i] = right[blockIdx.x * n + i];
    for (int k = 0; k < n; k++) {
        __syncthreads();
        float value = rest[k] / l[k * n + k];
        if (t == 0)
            x[blockIdx.x * n + k] = value;
        for (int i = k + 1 + t; i < n; i += threads)
            rest[i] -= l[i * n + k] * value;
    }
}

extern "C" __global__ void jacobi(const double *a, const double *b, const double *x, double *next,
                                  int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double sum = b[i];
    for (int j = 0; j < n; j++)
        if (j != i)
            sum -= a[i * n + j] * x[j];
    next[i] = sum / a[i * n + i];
}
