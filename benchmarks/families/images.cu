// Images, histograms, the Mandelbrot set.
#include "threads.cuh"

extern "C" __global__ void grey(const unsigned char *rgb, unsigned char *out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h)
        return;
    const unsigned char *p = rgb + 3 * (y * w + x);
    out[y * w + x] = (77 * p[0] + 150 * p[1] + 29 * p[2]) >> 8;
}

extern "C" __global__ void resize(const float *in, int w, int h, float *out, int ow, int oh)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= ow || y >= oh)
        return;
    float u = (x + 0.5f) * w / ow - 0.5f, v = (y + 0.5f) * h / oh - 0.5f;
    u = fminf(fmaxf(u, 0.0f), w - 1.0f);
    v = fminf(fmaxf(v, 0.0f), h - 1.0f);
    int left = (int)u, top = (int)v;
    int right = min(left + 1, w - 1), bottom = min(top + 1, h - 1);
    float a = u - left, b = v - top;
    float above = in[top * w + left] * (1.0f - a) + in[top * w + right] * a;
    float below = in[bottom * w + left] * (1.0f - a) + in[bottom * w + right] * a;
    out[y * ow + x] = above * (1.0f - b) + below * b;
}

__constant__ float binomial[5][5] = {{1, 4, 6, 4, 1},
                                     {4, 16, 24, 16, 4},
                                     {6, 24, 36, 24, 6},
                                     {4, 16, 24, 16, 4},
                                     {1, 4, 6, 4, 1}};

extern "C" __global__ void convolve(const float *in, float *out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h)
        return;
    float sum = 0.0f;
    for (int dy = -2; dy <= 2; dy++)
        for (int dx = -2; dx <= 2; dx++) {
            int u = x + dx, v = y + dy;
            if (u >= 0 && u < w && v >= 0 && v < h)
                sum += binomial[dy + 2][dx + 2] * in[v * w + u];
        }
    out[y * w + x] = sum / 256.0f;
}

extern "C" __global__ void mandelbrot(int *steps, int w, int h, int limit)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= w || row >= h)
        return;
    double cx = -2.0 + 3.0 * column / w, cy = -1.5 + 3.0 * row / h;
    double x = 0.0, y = 0.0;
    int n = 0;
    while (n < limit && x * x + y * y < 4.0) {
        double next = x * x - y * y + cx;
        y = 2.0 * x * y + cy;
        x = next;
        n++;
    }
    steps[row * w + column] = n;
}

// Counts of a block in shared memory first.
extern "C" __global__ void histogram(const unsigned char *data, unsigned *bins, int n)
{
    __shared__ unsigned own[256];
    int t = thread_rank();
    int threads = block_threads();
    for (int b = t; b < 256; b += threads)
        own[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * threads + t; i < n; i += gridDim.x * threads)
        atomicAdd(&own[data[i]], 1u);
    __syncthreads();
    for (int b = t; b < 256; b += threads)
        if (own[b])
            atomicAdd(&bins[b], own[b]);
}

extern "C" __global__ void histogram_global(const float *data, int *bins, int n, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int bin = (int)(data[i] * count);
        atomicAdd(&bins[min(bin, count - 1)], 1);
    }
}

// Sobel's operator over bytes.
extern "C" __global__ void edges(const unsigned char *in, unsigned char *out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1)
        return;
    const unsigned char *p = in + y * w + x;
    int gx = p[-w + 1] + 2 * p[1] + p[w + 1] - p[-w - 1] - 2 * p[-1] - p[w - 1];
    int gy = p[w - 1] + 2 * p[w] + p[w + 1] - p[-w - 1] - 2 * p[-w] - p[-w + 1];
    out[y * w + x] = min(abs(gx) + abs(gy), 255);
}
