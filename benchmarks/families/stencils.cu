// Stencils over bytes, halves, floats and doubles.
#include <cuda_fp16.h>

extern "C" __global__ void max3x3(const unsigned char *in, unsigned char *out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h)
        return;
    int best = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            int u = min(max(x + dx, 0), w - 1);
            int v = min(max(y + dy, 0), h - 1);
            best = max(best, (int)in[v * w + u]);
        }
    out[y * w + x] = best;
}

extern "C" __global__ void cross_half(const __half *in, __half *out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1)
        return;
    const __half *c = in + y * w + x;
    __half sum = __hadd(__hadd(c[-1], c[1]), __hadd(c[-w], c[w]));
    out[y * w + x] = __hfma(__float2half(0.25f), sum, __hmul(__float2half(-0.5f), c[0]));
}

extern "C" __global__ void nine_point(const float *in, float *out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && y > 0 && x < w - 1 && y < h - 1) {
        int i = y * w + x;
        float corners = in[i - w - 1] + in[i - w + 1] + in[i + w - 1] + in[i + w + 1];
        float edges = in[i - w] + in[i - 1] + in[i + 1] + in[i + w];
        out[i] = (4.0f * edges + corners - 20.0f * in[i]) / 6.0f;
    }
}

extern "C" __global__ void heat(const double *in, double *out, int w, int h, double rate)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h)
        return;
    double centre = in[y * w + x];
    double left = x > 0 ? in[y * w + x - 1] : centre;
    double right = x < w - 1 ? in[y * w + x + 1] : centre;
    double above = y > 0 ? in[(y - 1) * w + x] : centre;
    double below = y < h - 1 ? in[(y + 1) * w + x] : centre;
    out[y * w + x] = centre + rate * (left + right + above + below - 4.0 * centre);
}

extern "C" __global__ void seven_point(const float *in, float *out, int nx, int ny, int nz)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x == 0 || y == 0 || z == 0 || x >= nx - 1 || y >= ny - 1 || z >= nz - 1)
        return;
    int i = (z * ny + y) * nx + x;
    out[i] = in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + in[i - nx * ny] + in[i + nx * ny]
        - 6.0f * in[i];
}

// A tile with its halo in shared memory, whatever the block.
extern "C" __global__ void blur_tiled(const float *in, float *out, int w, int h)
{
    extern __shared__ float tile[];
    int tw = blockDim.x + 2, th = blockDim.y + 2;
    int left = blockIdx.x * blockDim.x - 1, top = blockIdx.y * blockDim.y - 1;
    int t = threadIdx.y * blockDim.x + threadIdx.x;
    for (int i = t; i < tw * th; i += blockDim.x * blockDim.y) {
        int x = left + i % tw, y = top + i / tw;
        tile[i] = x >= 0 && x < w && y >= 0 && y < h ? in[y * w + x] : 0.0f;
    }
    __syncthreads();
    int x = left + 1 + threadIdx.x, y = top + 1 + threadIdx.y;
    if (x >= w || y >= h)
        return;
    float sum = 0.0f;
    for (int dy = 0; dy < 3; dy++)
        for (int dx = 0; dx < 3; dx++)
            sum += tile[(threadIdx.y + dy) * tw + threadIdx.x + dx];
    out[y * w + x] = sum / 9.0f;
}

extern "C" __global__ void life(const unsigned char *in, unsigned char *out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h)
        return;
    int l = (x + w - 1) % w, r = (x + 1) % w;
    int u = (y + h - 1) % h * w, d = (y + 1) % h * w, c = y * w;
    int n = in[u + l] + in[u + x] + in[u + r] + in[c + l] + in[c + r]
        + in[d + l] + in[d + x] + in[d + r];
    out[c + x] = n == 3 || (n == 2 && in[c + x]);
}
