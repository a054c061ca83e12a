// Kernels such as everyone writes, on integers: what both machines make of them must be the same.

// The threads of a block are numbered one by one, whatever its shape; the blocks as well.
#define IN_BLOCK (threadIdx.y * blockDim.x + threadIdx.x)
#define THREADS (blockDim.x * blockDim.y)
#define BLOCK (blockIdx.y * gridDim.x + blockIdx.x)
#define KERNEL extern "C" __global__ void

KERNEL life(const int* from, int* to, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
        near = 0;
    if (x >= width || y >= height) return;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            if (dx || dy)
                near += from[(y + dy + height) % height * width + (x + dx + width) % width] & 1;
    to[y * width + x] = near == 3 || (near == 2 && (from[y * width + x] & 1));
}

KERNEL borders(const int* from, int* to, int width, int height) {
    __shared__ int part[34][34];
    int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * blockDim.x + tx,
        y = blockIdx.y * blockDim.y + ty;
    bool inside = x < width && y < height;
    part[ty + 1][tx + 1] = inside ? from[y * width + x] : 0;
    if (ty == 0) part[0][tx + 1] = y > 0 && x < width ? from[(y - 1) * width + x] : 0;
    if (ty == blockDim.y - 1)
        part[ty + 2][tx + 1] = y + 1 < height && x < width ? from[(y + 1) * width + x] : 0;
    if (tx == 0) part[ty + 1][0] = x > 0 && y < height ? from[y * width + x - 1] : 0;
    if (tx == blockDim.x - 1)
        part[ty + 1][tx + 2] = x + 1 < width && y < height ? from[y * width + x + 1] : 0;
    __syncthreads();
    int beside = part[ty + 1][tx] + part[ty + 1][tx + 2];
    if (inside)
        to[y * width + x] =
            part[ty][tx + 1] + part[ty + 2][tx + 1] + beside - 4 * part[ty + 1][tx + 1];
}

KERNEL transpose(const int* from, int* to, int width, int height) {
    __shared__ int part[32][33];
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) part[threadIdx.y][threadIdx.x] = from[y * width + x];
    __syncthreads();
    if (x < width && y < height) to[x * height + y] = part[threadIdx.y][threadIdx.x];
}

KERNEL bitonic_sort(const int* from, int* to, int n) {
    __shared__ int part[512];
    int t = IN_BLOCK, i = BLOCK * THREADS + t;
    part[t] = i < n ? from[i] : 0x7fffffff;
    __syncthreads();
    for (int k = 2; k <= THREADS; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            int other = t ^ j;
            if (other > t && other < THREADS) {
                int a = part[t], b = part[other];
                if ((a > b) == ((t & k) == 0)) {
                    part[t] = b;
                    part[other] = a;
                }
            }
            __syncthreads();
        }
    if (i < n) to[i] = part[t];
}

KERNEL row_maximum(const int* from, int* to, int width, int height) {
    __shared__ int part[512];
    int t = IN_BLOCK, row = BLOCK, most = -2147483647;
    if (row < height)
        for (int i = t; i < width; i += THREADS) most = max(most, from[row * width + i]);
    part[t] = most;
    __syncthreads();
    for (int k = THREADS / 2; k > 0; k /= 2) {
        if (t < k) part[t] = max(part[t], part[t + k]);
        __syncthreads();
    }
    if (t == 0 && row < height) to[row] = part[0];
}

KERNEL warp_sums(const int* from, int* to, int n) {
    __shared__ int part[32];
    int t = IN_BLOCK, i = BLOCK * THREADS + t, sum = i < n ? from[i] : 0;
    for (int k = 16; k > 0; k /= 2) sum += __shfl_down_sync(~0u, sum, k);
    if (t % 32 == 0) part[t / 32] = sum;
    __syncthreads();
    if (t >= 32) return;
    sum = t < (THREADS + 31) / 32 ? part[t] : 0;
    for (int k = 16; k > 0; k /= 2) sum += __shfl_down_sync(~0u, sum, k);
    if (t == 0) to[BLOCK] = sum;
}

KERNEL histogram(const int* from, int* to, int n) {
    __shared__ int bins[64];
    int t = IN_BLOCK;
    for (int i = t; i < 64; i += THREADS) bins[i] = 0;
    __syncthreads();
    for (int i = BLOCK * THREADS + t; i < n; i += gridDim.x * gridDim.y * THREADS)
        atomicAdd(&bins[from[i] & 63], 1);
    __syncthreads();
    for (int i = t; i < 64; i += THREADS) atomicAdd(&to[i], bins[i]);
}

KERNEL neighbours(const int* from, int* to, int n) {
    __shared__ int part[512];
    int t = IN_BLOCK, i = BLOCK * THREADS + t;
    part[t] = i < n ? from[i] : 0;
    __syncthreads();
    int own = part[t];
    if (t > 0) own -= part[t - 1];
    if (t < THREADS - 1) own -= part[t + 1];
    __syncthreads();
    part[THREADS - 1 - t] = own;
    __syncthreads();
    if (i < n) to[i] = part[t];
}

KERNEL last_threads(const int* from, int* to, int n) {
    __shared__ int part[520];
    int t = IN_BLOCK, i = BLOCK * THREADS + t;
    part[t] = t;
    if (t >= THREADS - 3) part[t + 3] = from[BLOCK];
    __syncthreads();
    if (t >= 5) part[t - 5] += part[t];
    __syncthreads();
    if (t >= THREADS / 2) part[t] = part[t - THREADS / 2];
    __syncthreads();
    if (i < n) to[i] = part[t] + part[t + 3];
}

KERNEL pairs_swap(const int* from, int* to, int n) {
    __shared__ int part[512];
    int t = IN_BLOCK, i = BLOCK * THREADS + t;
    part[t] = i < n ? from[i] : 0;
    __syncthreads();
    for (int k = 0; k < 8; k++) {
        int at = 2 * t + (k & 1);
        if (at + 1 < THREADS && part[at] > part[at + 1]) {
            int a = part[at];
            part[at] = part[at + 1];
            part[at + 1] = a;
        }
        __syncthreads();
    }
    if (i < n) to[i] = part[t];
}

KERNEL collatz(const int* from, int* to, int n) {
    int i = BLOCK * THREADS + IN_BLOCK, steps = 0;
    if (i >= n) return;
    for (unsigned v = (from[i] & 1023) + 1; v != 1 && steps <= 200; steps++)
        v = v & 1 ? 3 * v + 1 : v / 2;
    to[i] = steps;
}

KERNEL bytes_turned(const unsigned char* from, unsigned char* to, int n) {
    __shared__ unsigned char part[512];
    int t = IN_BLOCK, i = BLOCK * THREADS + t;
    part[t] = i < n ? from[i] : 0;
    __syncthreads();
    if (i < n) to[i] = part[THREADS - 1 - t] + (t ? part[t - 1] : 0);
}
