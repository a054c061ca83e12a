// Kernels with the parameters of four published search spaces (spaces.py says which), written for
// Warploom: what a parameter changes is what it changes there. Sizes that the search spaces fix are
// macros too, so that a launch can be shorter than the published one.

#ifdef CONVOLUTION  // A filter over an image, whose tile a block keeps in shared memory.
#define SIDE 4096
#define MARGIN_X (filter_width / 2 * 2)
#define MARGIN_Y (filter_height / 2 * 2)
#define IN_WIDTH (SIDE + MARGIN_X)
#define IN_HEIGHT (SIDE + MARGIN_Y)
#define OUT_X (block_size_x * tile_size_x)
#define OUT_Y (block_size_y * tile_size_y)
#define NEEDED_X (OUT_X + MARGIN_X)
#define NEEDED_Y (OUT_Y + MARGIN_Y)
#define RAGGED (SIDE % OUT_X != 0 || SIDE % OUT_Y != 0)

__constant__ float weights[33 * 33];

__device__ float pixel(const float *image, int at) {
    return read_only ? __ldg(image + at) : image[at];
}

extern "C" __global__ void convolution(float *out, float *image) {
    __shared__ float tile[NEEDED_Y][NEEDED_X];  // use_padding changed nothing in the published runs
    const int x0 = blockIdx.x * OUT_X, y0 = blockIdx.y * OUT_Y;
    #pragma unroll
    for (int y = threadIdx.y; y < NEEDED_Y; y += block_size_y)
        #pragma unroll
        for (int x = threadIdx.x; x < NEEDED_X; x += block_size_x)
            if (!RAGGED || (y0 + y < IN_HEIGHT && x0 + x < IN_WIDTH))
                tile[y][x] = pixel(image, (y0 + y) * IN_WIDTH + x0 + x);
    __syncthreads();
    float sums[tile_size_y][tile_size_x] = {};
    #pragma unroll
    for (int fy = 0; fy < filter_height; fy++)
        #pragma unroll
        for (int fx = 0; fx < filter_width; fx++)
            #pragma unroll
            for (int ty = 0; ty < tile_size_y; ty++)
                #pragma unroll
                for (int tx = 0; tx < tile_size_x; tx++)
                    sums[ty][tx] += tile[threadIdx.y + ty * block_size_y + fy]
                                        [threadIdx.x + tx * block_size_x + fx]
                                    * weights[fy * filter_width + fx];
    #pragma unroll
    for (int ty = 0; ty < tile_size_y; ty++)
        #pragma unroll
        for (int tx = 0; tx < tile_size_x; tx++) {
            const int y = y0 + threadIdx.y + ty * block_size_y;
            const int x = x0 + threadIdx.x + tx * block_size_x;
            if (!RAGGED || (y < SIDE && x < SIDE)) out[y * SIDE + x] = sums[ty][tx];
        }
}
#endif

#ifdef PNPOLY  // Which points lie in a polygon, by the edges that a ray from each crosses.
#define EDGES 600
__constant__ float2 corners[EDGES];  // all at the origin: nobody set them in the published runs

__device__ bool between(float y, float a, float b) {
#if between_method == 0
    return (a > y) != (b > y);
#elif between_method == 1
    return (a <= y && b > y) || (a > y && b <= y);
#elif between_method == 2
    return y - a == 0.f || (y - a) * (y - b) < 0.f;
#else
    return (y - a) * (y - b) < 0.f || y - a == 0.f;
#endif
}

extern "C" __global__ void pnpoly(int *inside, const float2 *points, int n) {
    const int first = blockIdx.x * block_size_x * tile_size + threadIdx.x;
    if (first >= n) return;
    int crossed[tile_size];
    float2 mine[tile_size];
    #pragma unroll
    for (int t = 0; t < tile_size; t++) {
        crossed[t] = 0;
        if (first + t * block_size_x < n) mine[t] = points[first + t * block_size_x];
    }
    int before = EDGES - 1;
    for (int edge = 0; edge < EDGES; before = edge++) {
        const float2 a = corners[edge], b = corners[before];
        const float slope = (b.x - a.x) / (b.y - a.y);
        #pragma unroll
        for (int t = 0; t < tile_size; t++) {
            const float2 p = mine[t];
#if use_method == 0
            if (between(p.y, a.y, b.y) && p.x < slope * (p.y - a.y) + a.x) crossed[t] = !crossed[t];
#elif use_method == 1
            const int level = between(p.y, a.y, b.y);
            crossed[t] += level && p.x < a.x + slope * (p.y - a.y);
#else
            if (between(p.y, a.y, b.y) && p.x < slope * (p.y - a.y) + a.x) crossed[t] += 1;
#endif
        }
    }
    #pragma unroll
    for (int t = 0; t < tile_size; t++)
        if (first + t * block_size_x < n)
            inside[first + t * block_size_x] = use_method == 0 ? crossed[t] : crossed[t] & 1;
}
#endif

#ifdef GEMM  // C = a A B + b C, tiles of MWG x NWG by blocks of MDIMC x NDIMC threads.
template <int N> struct alignas(N < 4 ? 4 * N : 16) Floats { float at[N]; };
typedef Floats<VWM> FloatsM;
typedef Floats<VWN> FloatsN;
#define MWI (MWG / MDIMC)
#define NWI (NWG / NDIMC)
#define A_ROWS (MDIMC * NDIMC / MDIMA)
#define B_ROWS (MDIMC * NDIMC / NDIMB)

extern "C" __global__ void __launch_bounds__(MDIMC * NDIMC)
gemm(int m, int n, int k, float alpha, float beta, const FloatsM *__restrict__ a,
     const FloatsN *__restrict__ b, FloatsM *c) {
#if SA
    __shared__ FloatsM tile_a[KWG * MWG / VWM];
#endif
#if SB
    __shared__ FloatsN tile_b[KWG * NWG / VWN];
#endif
    const int thread = threadIdx.x + MDIMC * threadIdx.y;
    FloatsM sums[NWI][MWI / VWM] = {};
    for (int k0 = 0; k0 < k; k0 += KWG) {
#if SA
        #pragma unroll
        for (int i = 0; i < MWG / MDIMA / VWM; i++)
            #pragma unroll
            for (int j = 0; j < KWG / A_ROWS; j++) {
                const int x = i + thread % MDIMA * (MWG / MDIMA / VWM);
                const int y = j + thread / MDIMA * (KWG / A_ROWS);
                tile_a[y * (MWG / VWM) + x] = a[(k0 + y) * (m / VWM) + blockIdx.x * (MWG / VWM) + x];
            }
#endif
#if SB
        #pragma unroll
        for (int j = 0; j < KWG / B_ROWS; j++)
            #pragma unroll
            for (int i = 0; i < NWG / NDIMB / VWN; i++) {
                const int x = i + thread % NDIMB * (NWG / NDIMB / VWN);
                const int y = j + thread / NDIMB * (KWG / B_ROWS);
                tile_b[y * (NWG / VWN) + x] = b[(k0 + y) * (n / VWN) + blockIdx.y * (NWG / VWN) + x];
            }
#endif
#if SA || SB
        __syncthreads();
#endif
        for (int k1 = 0; k1 < KWG; k1 += KWI)
            #pragma unroll
            for (int k2 = 0; k2 < KWI; k2++) {
                const int row = k1 + k2;
                FloatsM left[MWI / VWM];
                FloatsN right[NWI / VWN];
                #pragma unroll
                for (int i = 0; i < MWI / VWM; i++) {
                    const int x = i + threadIdx.x * (MWI / VWM);
#if SA
                    left[i] = tile_a[row * (MWG / VWM) + x];
#else
                    left[i] = a[(k0 + row) * (m / VWM) + blockIdx.x * (MWG / VWM) + x];
#endif
                }
                #pragma unroll
                for (int i = 0; i < NWI / VWN; i++) {
                    const int x = i + threadIdx.y * (NWI / VWN);
#if SB
                    right[i] = tile_b[row * (NWG / VWN) + x];
#else
                    right[i] = b[(k0 + row) * (n / VWN) + blockIdx.y * (NWG / VWN) + x];
#endif
                }
                #pragma unroll
                for (int j = 0; j < NWI; j++)
                    #pragma unroll
                    for (int i = 0; i < MWI / VWM; i++)
                        #pragma unroll
                        for (int v = 0; v < VWM; v++)
                            sums[j][i].at[v] += left[i].at[v] * right[j / VWN].at[j % VWN];
            }
#if SA || SB
        __syncthreads();
#endif
    }
    #pragma unroll
    for (int j = 0; j < NWI; j++)
        #pragma unroll
        for (int i = 0; i < MWI / VWM; i++) {
            const int x = blockIdx.x * (MWG / VWM) + i + threadIdx.x * (MWI / VWM);
            const int at = (blockIdx.y * NWG + j + threadIdx.y * NWI) * (m / VWM) + x;
            FloatsM old = {}, made;
            if (beta != 0.f) old = c[at];
            #pragma unroll
            for (int v = 0; v < VWM; v++)
                made.at[v] = alpha * sums[j][i].at[v] + beta * old.at[v];
            c[at] = made;
        }
}
#endif

#ifdef DEDISPERSION  // Sums over channels, each delayed by its own shift, for many measures.
// The published kernel has no `sums` and `apart` (published.py): threads do the first sums alone, and
// data of a thread's sums is so many bytes apart.
#define SAMPLES 25000
#define MEASURES 2048
#define ROW (SAMPLES + 650)
#define STEP_X (tile_stride_x ? block_size_x : 1)
#define STEP_Y (tile_stride_y ? block_size_y : 1)

extern "C" __global__ void
dedispersion(const unsigned char *in, float *out, const float *shifts, int channels, int first,
             int sums, int apart) {
    const int x = blockIdx.x * block_size_x * tile_size_x
                  + threadIdx.x * (tile_stride_x ? 1 : tile_size_x);
    const int y = first + blockIdx.y * block_size_y * tile_size_y
                  + threadIdx.y * (tile_stride_y ? 1 : tile_size_y);
    for (int tx = 0; tx < tile_size_x; tx++) {
        const int sample = x + tx * STEP_X;
        if (sample >= SAMPLES) continue;
        for (int ty = 0; ty < tile_size_y; ty++) {
            if (tx * tile_size_y + ty >= sums) return;
            const int measure = y + ty * STEP_Y;
            if (measure >= MEASURES) continue;
            const unsigned char *rows = in + (tx * tile_size_y + ty) * apart;
            float sum = 0;
            #pragma unroll 8  // so many turns a compiler takes of the 1,536
            for (int channel = 0; channel < channels; channel++) {
                const unsigned shift = (0.f + measure * 0.02f) * shifts[channel];
                sum += rows[channel * ROW + sample + shift];
            }
            out[measure * SAMPLES + sample] = sum;
        }
    }
}
#endif
