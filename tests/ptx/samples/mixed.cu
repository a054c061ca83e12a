// What NVRTC makes of structs, initial values, inlined functions, vectors and inline PTX.
// mixed.ptx: NVRTC 13, -arch=compute_75 -lineinfo.
struct Big {
    float a[6];
    int n;
    double d;
};

struct __align__(16) Padded {
    float4 p;
    int k;
};

struct __attribute__((packed)) Packed {
    char c;
    int *p;
};

__constant__ float table[64] = {1.f, 2.5f, -3.f};
__device__ int counter = 7;
__device__ int *pointer = &counter;
__device__ double matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
__device__ Packed packed = {'x', &counter};
extern __shared__ float dynamic[];

__device__ __forceinline__ float inner(float x) { return x * 2.f + sqrtf(x); }

__device__ __forceinline__ float outer(float x) {
    float y = inner(x) + 1.f;
    return y > 3.f ? inner(y) : y;
}

__device__ __noinline__ float total(Big b, int k) {
    float s = 0;
    for (int i = 0; i < 6; i++) s += b.a[i] * k;
    if (s < 0) return -1.f;
    return s + b.d;
}

__device__ __noinline__ Big make(float x) {
    Big b;
    for (int i = 0; i < 6; i++) b.a[i] = x * i;
    b.n = 3;
    b.d = x;
    return b;
}

extern "C" __global__ void structs(float *o, Big b) {
    __shared__ float s[64];
    __shared__ double t[4];
    float local[16];
    for (int i = 0; i < 16; i++) local[i] = o[i] * b.n;
    s[threadIdx.x] = local[b.n & 15];
    t[threadIdx.x & 3] = s[0];
    dynamic[threadIdx.x] = t[1];
    __syncthreads();
    o[threadIdx.x] = outer(dynamic[63 - threadIdx.x]) + total(b, (int)o[3]) + table[b.n] +
                     total(make(o[1]), 2);
    atomicAdd(&counter, 1);
    atomicCAS(pointer, 1, 2);
    unsigned m = __ballot_sync(~0u, o[2] > 1.f);
    o[9] = __popc(m) + __shfl_down_sync(~0u, (int)m, 4);
    if (o[4] == 3.f) __trap();
}

extern "C" __global__ void vectors(float4 *x, Padded v, double2 *y, short *h, unsigned char *c,
                                   long long n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 f = x[i];
    f.x += v.p.y;
    f.w = __fdividef(f.y, f.z);
    x[i + 1] = f;
    double2 d = y[i];
    d.x = fma(d.x, d.y, matrix[1][i % 3]);
    y[i + 2] = d;
    h[i] = h[i + 1] * 3;
    c[i] += h[i];
    for (long long k = 0; k < n; k++) {
        if ((k & 7) == 3) continue;
        if (k == i) break;
        y[k].x = y[k].y * d.x;
        if (y[k].x > 1e9) return;
    }
    asm volatile("{ .reg .u32 t; .reg .pred p; setp.eq.u32 p, %0, 3; @p bra L; mov.u32 t, 5; L: }" ::"r"(i));
    asm volatile("{ .reg .u32 t; .reg .pred p; setp.eq.u32 p, %0, 4; @p bra L; mov.u32 t, 6; L: }" ::"r"(i));
}

extern "C" __global__ void prints(int *a) {
    *a = packed.p == nullptr;
    printf("hi %d\n", *a);
}
