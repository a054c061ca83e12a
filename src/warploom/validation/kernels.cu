// Kernels that do what published benchmarks do; figures.json says which. Written for Warploom.

extern "C" __global__ void init(double *a, const double *b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = 0.5;
}
extern "C" __global__ void read(double *a, const double *b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && b[i] == 123.0) a[i] = 1.0;
}
extern "C" __global__ void scale(double *a, const double *b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = b[i] * 1.2;
}
extern "C" __global__ void triad(double *a, const double *b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = b[i] * 1.2 + b[n + i];
}
extern "C" __global__ void chase(long long *x, int steps) {
    long long *p = x;
    #pragma unroll 1
    for (int i = 0; i < steps; i++) p = (long long *)*p;
    x[1] = (long long)p;
}
extern "C" __global__ void barriers(int n) {
    #pragma unroll 1  // the published figures include the loop: 29 cycles a turn for __syncwarp()
    for (int i = 0; i < n; i++) __syncthreads();
}

// Every block reads the same LENGTH floats, again and again.
#ifdef LENGTH
extern "C" __global__ void cached(float *out, const float *in, int rounds, int zero) {
    float sum = 0;
    in += threadIdx.x;
    #pragma unroll (LENGTH / 256 < 32 ? 32 / (LENGTH / 256) : 1)
    for (int r = 0; r < rounds; r++) {
        in += zero;
        #pragma unroll (LENGTH / 256 < 32 ? LENGTH / 256 : 32)
        for (int i = 0; i < LENGTH; i += 256) sum += in[i];
        sum *= 1.3f;
    }
    if (sum == 1233.f) out[threadIdx.x] += sum;
}
#endif

// FACTOR multiply-adds for each of two numbers that are read.
#ifdef FACTOR
extern "C" __global__ void roofline(const float *__restrict__ a, const float *__restrict__ b,
                                    float *c, int rounds) {
    a += threadIdx.x + blockIdx.x * 256 * rounds;
    b += threadIdx.x + blockIdx.x * 256 * rounds;
    float sum = 0;
    #pragma unroll 1
    for (int r = 0; r < rounds; r += 2) {
        float x = a[r * 256], y = b[r * 256], u = x - y;
        float x2 = a[(r + 1) * 256], y2 = b[(r + 1) * 256], v = x2 - y2;
        #pragma unroll
        for (int k = 0; k < FACTOR; k++) {
            u = u * x - y;
            v = v * x2 - y2;
        }
        sum += u + v;
    }
    if (threadIdx.x == 0) c[blockIdx.x] = sum;
}
#endif

// Loads whose lanes are STRIDE floats apart, four at a time from one base.
extern "C" __global__ void strided(float *a, float *out, int rounds, int stride, int zero) {
    float sum = 0;
    a += threadIdx.x % 64 * stride;
    #pragma unroll 1
    for (int r = 0; r < rounds; r++) {
        a += zero;
        sum += a[0] * a[4];
        sum += a[8] * a[12];
        sum += a[20] * a[16];
        sum += a[24] * a[28];
    }
    if (sum == 1233.f) out[threadIdx.x] = sum;
}

// Products of matrices of n times k and k times n floats, by the steps of a known tutorial.
extern "C" __global__ void gemm_naive(const float *a, const float *b, float *c, int n, int k) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    if (x >= n || y >= n) return;
    float sum = 0;
    for (int i = 0; i < k; i++) sum += a[x * k + i] * b[i * n + y];
    c[x * n + y] = sum;
}
extern "C" __global__ void gemm_coalesced(const float *a, const float *b, float *c, int n, int k) {
    int x = blockIdx.x * 32 + threadIdx.x / 32, y = blockIdx.y * 32 + threadIdx.x % 32;
    if (x >= n || y >= n) return;
    float sum = 0;
    for (int i = 0; i < k; i++) sum += a[x * k + i] * b[i * n + y];
    c[x * n + y] = sum;
}
extern "C" __global__ void gemm_shared(const float *a, const float *b, float *c, int n, int k) {
    __shared__ float s[32 * 32], t[32 * 32];
    int x = threadIdx.x % 32, y = threadIdx.x / 32;
    a += blockIdx.x * 32 * k;
    b += blockIdx.y * 32;
    float sum = 0;
    for (int i = 0; i < k; i += 32) {
        s[y * 32 + x] = a[y * k + x];
        t[y * 32 + x] = b[y * n + x];
        __syncthreads();
        a += 32;
        b += 32 * n;
        for (int j = 0; j < 32; j++) sum += s[y * 32 + j] * t[j * 32 + x];
        __syncthreads();
    }
    c[(blockIdx.x * 32 + y) * n + blockIdx.y * 32 + x] = sum;
}
// A block makes ROWS x COLUMNS results from stretches of DEPTH, a thread HIGH x WIDE of them.
template <int ROWS, int COLUMNS, int DEPTH, int HIGH, int WIDE>
__device__ void gemm_tile(const float *a, const float *b, float *c, int n, int k) {
    constexpr int threads = ROWS * COLUMNS / (HIGH * WIDE);
    __shared__ float s[ROWS * DEPTH], t[DEPTH * COLUMNS];
    int x = threadIdx.x % (COLUMNS / WIDE), y = threadIdx.x / (COLUMNS / WIDE);
    a += blockIdx.y * ROWS * k;
    b += blockIdx.x * COLUMNS;
    float sums[HIGH * WIDE] = {0}, left[HIGH], right[WIDE];
    for (int i = 0; i < k; i += DEPTH) {
        for (int e = threadIdx.x; e < ROWS * DEPTH; e += threads)
            s[e] = a[e / DEPTH * k + e % DEPTH];
        for (int e = threadIdx.x; e < DEPTH * COLUMNS; e += threads)
            t[e] = b[e / COLUMNS * n + e % COLUMNS];
        __syncthreads();
        a += DEPTH;
        b += DEPTH * n;
        for (int d = 0; d < DEPTH; d++) {
            for (int h = 0; h < HIGH; h++) left[h] = s[(y * HIGH + h) * DEPTH + d];
            for (int w = 0; w < WIDE; w++) right[w] = t[d * COLUMNS + x * WIDE + w];
            for (int h = 0; h < HIGH; h++)
                for (int w = 0; w < WIDE; w++) sums[h * WIDE + w] += left[h] * right[w];
        }
        __syncthreads();
    }
    for (int h = 0; h < HIGH; h++)
        for (int w = 0; w < WIDE; w++)
            c[(blockIdx.y * ROWS + y * HIGH + h) * n + blockIdx.x * COLUMNS + x * WIDE + w] =
                sums[h * WIDE + w];
}
extern "C" __global__ void gemm_rows(const float *a, const float *b, float *c, int n, int k) {
    gemm_tile<64, 64, 8, 8, 1>(a, b, c, n, k);
}
extern "C" __global__ void gemm_tiles(const float *a, const float *b, float *c, int n, int k) {
    gemm_tile<128, 128, 8, 8, 8>(a, b, c, n, k);
}
