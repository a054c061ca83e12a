// Particles, prices, clusters: a record or a few a thread.
#include <math_constants.h>

extern "C" __global__ void nbody(const float4 *bodies, float3 *accelerations, int n)
{
    extern __shared__ float4 tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 own = i < n ? bodies[i] : make_float4(0, 0, 0, 0);
    float3 a = make_float3(0, 0, 0);
    for (int base = 0; base < n; base += blockDim.x) {
        int other = base + threadIdx.x;
        tile[threadIdx.x] = other < n ? bodies[other] : make_float4(0, 0, 0, 0);
        __syncthreads();
        for (int k = 0; k < blockDim.x; k++) {
            float dx = tile[k].x - own.x, dy = tile[k].y - own.y, dz = tile[k].z - own.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float pull = tile[k].w * inverse * inverse * inverse;
            a.x += pull * dx;
            a.y += pull * dy;
            a.z += pull * dz;
        }
        __syncthreads();
    }
    if (i < n)
        accelerations[i] = a;
}

struct Vector {
    float x, y, z;
};

// Particles in the unit cube, whose walls throw them back.
extern "C" __global__ void move(const Vector *places, const Vector *speeds, Vector *next,
                                Vector *next_speeds, int n, float time)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    Vector p = places[i], v = speeds[i];
    p.x += v.x * time;
    p.y += v.y * time;
    p.z += v.z * time;
    if (p.x < 0.0f || p.x > 1.0f)
        v.x = -v.x;
    if (p.y < 0.0f || p.y > 1.0f)
        v.y = -v.y;
    if (p.z < 0.0f || p.z > 1.0f)
        v.z = -v.z;
    next[i] = p;
    next_speeds[i] = v;
}

extern "C" __global__ void normalise(const float4 *in, float4 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float4 v = in[i];
    float scale = rsqrtf(v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w);
    out[i] = make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale);
}

extern "C" __global__ void black_scholes(const float *price, const float *strike,
                                         const float *years, float *call, float *put, int n,
                                         float rate, float volatility)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float s = price[i], k = strike[i], t = years[i], root = sqrtf(t);
        float d1 = (logf(s / k) + (rate + 0.5f * volatility * volatility) * t)
            / (volatility * root);
        float d2 = d1 - volatility * root;
        float discounted = k * expf(-rate * t);
        call[i] = s * normcdff(d1) - discounted * normcdff(d2);
        put[i] = discounted * normcdff(-d2) - s * normcdff(-d1);
    }
}

#define AXES 6

// The nearest of the centres, which are in shared memory.
extern "C" __global__ void nearest(const float *points, const float *centres, int *labels, int n,
                                   int count)
{
    extern __shared__ float own[];
    for (int i = threadIdx.x; i < count * AXES; i += blockDim.x)
        own[i] = centres[i];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float best = CUDART_INF_F;
    int label = 0;
    for (int c = 0; c < count; c++) {
        float distance = 0.0f;
        for (int k = 0; k < AXES; k++) {
            float delta = points[i * AXES + k] - own[c * AXES + k];
            distance += delta * delta;
        }
        if (distance < best) {
            best = distance;
            label = c;
        }
    }
    labels[i] = label;
}

// Horner's rule in double precision.
extern "C" __global__ void polynomial(const double *x, const double *coefficients, double *y,
                                      int n, int degree)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double value = coefficients[degree];
    for (int k = degree - 1; k >= 0; k--)
        value = value * x[i] + coefficients[k];
    y[i] = value;
}
