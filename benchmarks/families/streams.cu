// One thread an element, without a loop; blocks that reduce and exchange what they have loaded.

extern "C" __global__ void add(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

extern "C" __global__ void gelu(const double *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float x = in[i];
    out[i] = x / (1.0f + __expf(-1.702f * x));
}

// The rows of both matrices are `pitch` elements apart; the grid covers them exactly.
extern "C" __global__ void blend(const float *a, const float *b, float *c, float share, int pitch)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int i = y * pitch + x;
    c[i] = share * a[i] + (1.0f - share) * b[i];
}

// Each block adds its products in a tree.
extern "C" __global__ void dot_blocks(const double *a, const double *b, double *sums, int n)
{
    extern __shared__ double part[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    part[t] = i < n ? a[i] * b[i] : 0.0;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half)
            part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0)
        sums[blockIdx.x] = part[0];
}

// Each block of 256 threads adds its elements in a tree, whose levels the compiler unrolls.
extern "C" __global__ void sum_blocks(const float *in, float *sums, int n)
{
    __shared__ float part[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    part[t] = i < n ? in[i] : 0.0f;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (t < half)
            part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0)
        sums[blockIdx.x] = part[0];
}

// A block a row, which has as many elements as the block has threads.
extern "C" __global__ void softmax_row(const float *in, float *out)
{
    __shared__ float part[1024];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    float x = in[i];
    part[t] = x;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half)
            part[t] = fmaxf(part[t], part[t + half]);
        __syncthreads();
    }
    float largest = part[0];
    __syncthreads();
    float power = __expf(x - largest);
    part[t] = power;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half)
            part[t] += part[t + half];
        __syncthreads();
    }
    out[i] = power / part[0];
}

// The mean of 16 elements from each on, by way of shared memory; `in` has 32 more than `out`.
extern "C" __global__ void moving_mean(const float *in, float *out)
{
    __shared__ float tile[1024 + 32];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    tile[t] = in[i];
    if (t < 32)
        tile[t + blockDim.x] = in[i + blockDim.x];
    __syncthreads();
    float sum = 0.0f;
    for (int k = 0; k < 16; k++)
        sum += tile[t + k];
    out[i] = sum / 16.0f;
}
