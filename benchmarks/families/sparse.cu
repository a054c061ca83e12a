// Products of a sparse matrix and a vector.
#include "threads.cuh"

extern "C" __global__ void csr_scalar(const int *starts, const int *columns, const double *values,
                                      const double *x, double *y, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        double sum = 0.0;
        for (int i = starts[row]; i < starts[row + 1]; i++)
            sum += values[i] * x[columns[i]];
        y[row] = sum;
    }
}

// One warp a row.
extern "C" __global__ void csr_vector(const int *starts, const int *columns, const float *values,
                                      const float *x, float *y, int rows)
{
    int rank = thread_rank();
    int threads = block_threads();
    int row = (blockIdx.x * threads + rank) / 32, lane = rank % 32;
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int i = starts[row] + lane; i < starts[row + 1]; i += 32)
        sum += values[i] * x[columns[i]];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, step);
    if (lane == 0)
        y[row] = sum;
}

// Every row has `width` places, stored place by place; a column of -1 is an empty one.
extern "C" __global__ void ell(const int *columns, const float *values, const float *x, float *y,
                               int rows, int width)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int i = 0; i < width; i++) {
        int column = columns[i * rows + row];
        if (column >= 0)
            sum += values[i * rows + row] * x[column];
    }
    y[row] = sum;
}

extern "C" __global__ void coordinates(const int *rows, const int *columns, const float *values,
                                       const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&y[rows[i]], values[i] * x[columns[i]]);
}
