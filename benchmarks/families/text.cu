// Strings and bytes.
#include "threads.cuh"

__constant__ char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Three bytes a thread become four letters.
extern "C" __global__ void base64(const unsigned char *in, char *out, int triples)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= triples)
        return;
    unsigned bits = in[3 * i] << 16 | in[3 * i + 1] << 8 | in[3 * i + 2];
    out[4 * i] = alphabet[bits >> 18];
    out[4 * i + 1] = alphabet[bits >> 12 & 63];
    out[4 * i + 2] = alphabet[bits >> 6 & 63];
    out[4 * i + 3] = alphabet[bits & 63];
}

extern "C" __global__ void substitute(const unsigned char *in, unsigned char *out,
                                      const unsigned char *table, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = table[in[i]];
}

// Marks the places where a pattern begins.
extern "C" __global__ void search(const char *text, int n, const char *pattern, int length,
                                  unsigned char *begins)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    bool same = i + length <= n;
    for (int k = 0; same && k < length; k++)
        same = text[i + k] == pattern[k];
    begins[i] = same;
}

// The edit distance of two strings of the same length, one pair a block, along diagonals.
extern "C" __global__ void edit_distance(const char *first, const char *second, int *distances,
                                         int length)
{
    extern __shared__ int diagonals[];
    int t = thread_rank();
    int threads = block_threads();
    const char *a = first + blockIdx.x * length, *b = second + blockIdx.x * length;
    int *older = diagonals, *old = older + length + 1, *now = old + length + 1;
    for (int d = 0; d <= 2 * length; d++) {
        int low = max(0, d - length), high = min(d, length);
        for (int i = low + t; i <= high; i += threads) {
            int j = d - i;
            if (i == 0 || j == 0)
                now[i] = d;
            else
                now[i] = min(min(old[i - 1], old[i]) + 1, older[i - 1] + (a[i - 1] != b[j - 1]));
        }
        __syncthreads();
        int *free = older;
        older = old;
        old = now;
        now = free;
    }
    if (t == 0)
        distances[blockIdx.x] = old[length];
}
