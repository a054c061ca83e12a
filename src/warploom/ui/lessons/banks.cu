// Transpose a tile: rows go in, columns come out. PAD more words in a row change everything.
__global__ void columns(const float *in, float *out)
{
    __shared__ float plain[32][32];
    __shared__ float padded[32][33];
    int lane = threadIdx.x;
#pragma unroll 1
    for (int row = 0; row < 32; row++) {
        plain[row][lane] = in[32 * row + lane];
        padded[row][lane] = in[32 * row + lane];
    }
    __syncwarp();
    float conflicting = plain[lane][0];
    float free = padded[lane][0];
    float shared = plain[0][threadIdx.x / 4];
    out[lane] = conflicting + free + shared;
}
