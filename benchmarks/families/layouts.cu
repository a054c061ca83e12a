// Data brought from one layout to another without shared memory: rows of a thread each.

// Each thread moves four elements of a column (blocks of 32 x 8 threads, tiles of 32 x 32).
extern "C" __global__ void transpose_plain(const float *in, float *out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y * 4 + threadIdx.y;
    for (int j = 0; j < 4; j++)
        out[x * height + y + j * blockDim.y] = in[(y + j * blockDim.y) * width + x];
}

// An image of planes to one of pixels, channel by channel (NCHW to NHWC).
extern "C" __global__ void interleave(const float *in, float *out, int pixels, int channels)
{
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= pixels)
        return;
    for (int c = 0; c < channels; c++)
        out[p * channels + c] = in[c * pixels + p];
}

extern "C" __global__ void one_hot(const int *labels, float *out, int classes, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int label = labels[i];
    for (int c = 0; c < classes; c++)
        out[i * classes + c] = c == label ? 1.0f : 0.0f;
}

// One step of the Lorenz system for many states, which are `pitch` elements apart.
extern "C" __global__ void lorenz(const double *in, double *out, int pitch, double step, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const double *from = in + i * pitch;
    double *to = out + i * pitch;
    double x = from[0], y = from[1], z = from[2];
    to[0] = x + step * 10.0 * (y - x);
    to[1] = y + step * (x * (28.0 - z) - y);
    to[2] = z + step * (x * y - 8.0 / 3.0 * z);
}

// Rows of powers for a least-squares fit (a Vandermonde matrix).
extern "C" __global__ void powers(const float *in, float *out, int pitch, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float x = in[i], power = 1.0f;
    float *row = out + i * pitch;
    for (int k = 0; k < 6; k++) {
        row[k] = power;
        power *= x;
    }
}
