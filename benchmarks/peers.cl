// The kernels of peers.py in OpenCL C, line by line as in CUDA C++.
__kernel void saxpy(int n, float a, __global const float *x, __global float *y)
{
    int i = get_global_id(0);
    if (i < n)
        y[i] = a * x[i] + y[i];
}

__kernel void reduce(__global const float *x, __global float *sums, int n)
{
    __local float part[256];
    int t = get_local_id(0), i = get_global_id(0);
    part[t] = i < n ? x[i] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int stride = get_local_size(0) / 2; stride > 0; stride /= 2) {
        if (t < stride)
            part[t] += part[t + stride];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (t == 0)
        sums[get_group_id(0)] = part[0];
}

#define TILE 16

__kernel void matmul_naive(__global const float *a, __global const float *b, __global float *c, int n)
{
    int row = get_group_id(1) * TILE + get_local_id(1), column = get_global_id(0);
    float sum = 0.0f;
    for (int k = 0; k < n; ++k)
        sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

__kernel void matmul_tiled(__global const float *a, __global const float *b, __global float *c, int n)
{
    __local float tile_a[TILE][TILE], tile_b[TILE][TILE];
    int x = get_local_id(0), y = get_local_id(1);
    int row = get_group_id(1) * TILE + y, column = get_group_id(0) * TILE + x;
    float sum = 0.0f;
    for (int start = 0; start < n; start += TILE) {
        tile_a[y][x] = a[row * n + start + x];
        tile_b[y][x] = b[(start + y) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TILE; ++k)
            sum += tile_a[y][k] * tile_b[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}

__kernel void mandelbrot(__global int *steps, int width, int height, int limit)
{
    int column = get_global_id(0), row = get_global_id(1);
    float cx = -2.0f + 3.0f * column / width, cy = -1.5f + 3.0f * row / height;
    float x = 0.0f, y = 0.0f;
    int step = 0;
    while (step < limit && x * x + y * y < 4.0f) {
        float next = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = next;
        ++step;
    }
    steps[row * width + column] = step;
}

__kernel void histogram(__global const uchar *data, __global uint *bins, int n)
{
    __local uint own[256];
    for (int b = get_local_id(0); b < 256; b += get_local_size(0))
        own[b] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        atomic_inc(&own[data[i]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int b = get_local_id(0); b < 256; b += get_local_size(0))
        atomic_add(&bins[b], own[b]);
}

__kernel void nbody(__global const float4 *bodies, __global float4 *accelerations, int n)
{
    __local float4 tile[256];
    int i = get_global_id(0), size = get_local_size(0);
    float4 me = bodies[i];
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int start = 0; start < n; start += size) {
        tile[get_local_id(0)] = bodies[start + get_local_id(0)];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < size; ++k) {
            float4 other = tile[k];
            float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
            float r2 = dx * dx + dy * dy + dz * dz + 0.01f;
            float inverse = rsqrt(r2);
            float pull = other.w * inverse * inverse * inverse;
            ax += pull * dx;
            ay += pull * dy;
            az += pull * dz;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    accelerations[i] = (float4)(ax, ay, az, 0.0f);
}

__kernel void transpose_naive(__global const float *in, __global float *out, int n)
{
    int x = get_group_id(0) * 32 + get_local_id(0), y = get_group_id(1) * 32 + get_local_id(1);
    for (int j = 0; j < 32; j += 8)
        out[x * n + y + j] = in[(y + j) * n + x];
}
