// out = in transposed, n x n, n a multiple of 32; blocks of 32 x 8 threads.
#define TILE 32
#define ROWS 8

extern "C" __global__ void transpose_naive(const float *in, float *out, int n)
{
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        out[x * n + y + j] = in[(y + j) * n + x];
}

template <int WIDTH> __device__ void through_tile(const float *in, float *out, int n)
{
    __shared__ float tile[TILE][WIDTH];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

// Coalesced both ways, but a column of the tile lies in one bank.
extern "C" __global__ void transpose_tiled(const float *in, float *out, int n)
{
    through_tile<TILE>(in, out, n);
}

// One spare column moves each row to the next bank.
extern "C" __global__ void transpose_padded(const float *in, float *out, int n)
{
    through_tile<TILE + 1>(in, out, n);
}
