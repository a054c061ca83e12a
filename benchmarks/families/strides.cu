// Arrays worked through by grid-stride loops: a limited grid, many turns a thread.

extern "C" __global__ void scale(float *x, float factor, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        x[i] *= factor;
}

extern "C" __global__ void axpy(const double *x, double *y, double a, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = a * x[i] + y[i];
}

extern "C" __global__ void triad(const float *__restrict__ a, const float *__restrict__ b,
                                 float *__restrict__ c, float factor, int n)
{
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        c[i] = a[i] + factor * b[i];
}

// A step of AMSGrad: parameters, gradients, two moments and the largest second moment.
extern "C" __global__ void amsgrad(float *p, const float *g, float *m, float *v, float *largest,
                                   float rate, float beta1, float beta2, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float gradient = g[i];
        float first = beta1 * m[i] + (1.0f - beta1) * gradient;
        float second = beta2 * v[i] + (1.0f - beta2) * gradient * gradient;
        float most = fmaxf(largest[i], second);
        m[i] = first;
        v[i] = second;
        largest[i] = most;
        p[i] -= rate * first / (sqrtf(most) + 1e-8f);
    }
}

// Each row of a batch (blockIdx.y) has a gain and an offset of its own.
extern "C" __global__ void normalise_batch(const float *in, const float *gains,
                                           const float *offsets, float *out, int n)
{
    in += (size_t)blockIdx.y * n;
    out += (size_t)blockIdx.y * n;
    float gain = gains[blockIdx.y], offset = offsets[blockIdx.y];
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = (in[i] - offset) * gain;
}

// The loop counts by a pointer to the input.
extern "C" __global__ void clamp_by_pointer(const float *in, float *out, float low, float high,
                                            int n)
{
    int first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
    float *q = out + first;
    for (const float *p = in + first, *end = in + n; p < end; p += stride, q += stride)
        *q = fminf(fmaxf(*p, low), high);
}

extern "C" __global__ void blend_64(const unsigned char *a, const unsigned char *b,
                                    unsigned char *out, int weight, size_t n)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    while (i < n) {
        out[i] = (a[i] * weight + b[i] * (256 - weight)) >> 8;
        i += (size_t)gridDim.x * blockDim.x;
    }
}

// Each thread stops at the first match of its own.
extern "C" __global__ void find_first(const int *values, int wanted, int *place, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        if (values[i] == wanted) {
            atomicMin(place, i);
            break;
        }
}

struct Vector {
    float x, y, z;
};

extern "C" __global__ void lengths(const Vector *vectors, float *out, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        Vector v = vectors[i];
        out[i] = sqrtf(v.x * v.x + v.y * v.y + v.z * v.z);
    }
}

struct Particle {
    float position, velocity, force, mass;
};

extern "C" __global__ void kick(Particle *particles, float dt, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        Particle &p = particles[i];
        p.velocity += dt * p.force / p.mass;
        p.position += dt * p.velocity;
    }
}
