/* Twelve kernels in the words of OpenCL C. With opencl_as_cuda.h before them, all but the last are
 * CUDA C++ as well. */

__kernel void vector_add(__global const float *a, __global const float *b, __global float *c, int n)
{
    int i = get_global_id(0);
    if (i < n) c[i] = a[i] + b[i];
}

/* Each work-item has every 2nd element: its accesses are half as dense. */
__kernel void strided_scale(__global const float *x, __global float *y, float factor, int n)
{
    int i = 2 * get_global_id(0);
    if (i < n) y[i] = factor * x[i];
}

__kernel void transpose(__global const float *x, __global float *y, int n)
{
    __local float tile[16][17];
    int column = get_group_id(0) * 16 + get_local_id(0), row = get_group_id(1) * 16 + get_local_id(1);
    tile[get_local_id(1)][get_local_id(0)] = x[row * n + column];
    barrier(CLK_LOCAL_MEM_FENCE);
    column = get_group_id(1) * 16 + get_local_id(0);
    row = get_group_id(0) * 16 + get_local_id(1);
    y[row * n + column] = tile[get_local_id(0)][get_local_id(1)];
}

__kernel void tiled_product(__global const float *a, __global const float *b, __global float *c, int n)
{
    __local float left[16][16], right[16][16];
    int x = get_local_id(0), y = get_local_id(1), row = get_global_id(1), column = get_global_id(0);
    float sum = 0;
    for (int start = 0; start < n; start += 16) {
        left[y][x] = a[row * n + start + x];
        right[y][x] = b[(start + y) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 16; ++k) sum += left[y][k] * right[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}

__kernel void histogram(__global const int *x, __global int *bins, int n)
{
    __local int part[64];
    if (get_local_id(0) < 64) part[get_local_id(0)] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    int i = get_global_id(0);
    if (i < n) atomic_add(&part[x[i]], 1);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) < 64) atomic_add(&bins[get_local_id(0)], part[get_local_id(0)]);
}

__kernel void box_filter(__global const float *image, __global float *result, int width, int height)
{
    int x = get_global_id(0), y = get_global_id(1);
    float sum = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
            int row = min(max(y + dy, 0), height - 1), column = min(max(x + dx, 0), width - 1);
            sum += image[row * width + column];
        }
    result[y * width + x] = sum / 9;
}

/* Inclusive, within each work-group, by doubling steps. */
__kernel void scan(__global const int *x, __global int *y)
{
    __local int sums[128];
    int t = get_local_id(0);
    sums[t] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = 1; step < 128; step *= 2) {
        int other = t >= step ? sums[t - step] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[t] += other;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    y[get_global_id(0)] = sums[t];
}

__kernel void stencil(__global const float *x, __global float *y, int n)
{
    int i = get_global_id(0);
    if (i > 0 && i < n - 1) y[i] = 0.25f * x[i - 1] + 0.5f * x[i] + 0.25f * x[i + 1];
}

__kernel void gather(__global const int *index, __global const float *x, __global float *y, int n)
{
    int i = get_global_id(0);
    if (i < n) y[i] = x[index[i]];
}

__kernel void mandelbrot(__global int *counts, int width, int most)
{
    int x = get_global_id(0), y = get_global_id(1), count = 0;
    float re = 3.0f * x / width - 2.0f, im = 2.0f * y / width - 1.0f, a = 0, b = 0;
    while (count < most && a * a + b * b < 4.0f) {
        float next = a * a - b * b + re;
        b = 2.0f * a * b + im;
        a = next;
        ++count;
    }
    counts[y * width + x] = count;
}

__kernel void waves(__global const float *x, __global float *y)
{
    int i = get_global_id(0);
    y[i] = sin(x[i]) * exp(-x[i]) + pow(x[i], 1.5f) + rsqrt(x[i]) + log(x[i]);
}

/* The local memory is the caller's: the size of it is an argument. */
__kernel void reduction(__global const float *x, __global float *sums, __local float *part)
{
    int t = get_local_id(0);
    part[t] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = get_local_size(0) / 2; step > 0; step /= 2) {
        if (t < step) part[t] += part[t + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (t == 0) sums[get_group_id(0)] = part[0];
}
