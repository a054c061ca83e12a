// Two kernels of about 10,000 PTX instructions, whose loops are unrolled; a macro of its name chooses
// one. Blocks may have any size; SALT changes a constant.
#ifndef SALT
#define SALT 0
#endif

#ifdef CONVOLUTION  // Each thread makes RESULTS results of a convolution by a filter of 21 x 21.
#define SIDE 21
#define RESULTS 20
#define WIDTH 1024
__constant__ float weights[SIDE * SIDE];

extern "C" __global__ void convolution(float *out, const float *image)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    float sums[RESULTS] = {};
    #pragma unroll
    for (int fy = 0; fy < SIDE; fy++) {
        float row[SIDE + RESULTS - 1];
        #pragma unroll
        for (int i = 0; i < SIDE + RESULTS - 1; i++)
            row[i] = image[fy * WIDTH + x + i];
        #pragma unroll
        for (int fx = 0; fx < SIDE; fx++)
            #pragma unroll
            for (int i = 0; i < RESULTS; i++)
                sums[i] += row[i + fx] * (weights[fy * SIDE + fx] + SALT);
    }
    float sum = 0;
    #pragma unroll
    for (int i = 0; i < RESULTS; i++)
        sum += sums[i] * i;
    out[x] = sum;
}
#endif

#ifdef SHA256  // SHA-256 (FIPS 180-4) of four blocks of 64 bytes.
__constant__ unsigned constants[64];

__device__ unsigned turned(unsigned x, int by) { return x >> by | x << (32 - by); }

extern "C" __global__ void sha256(unsigned *digests, unsigned first)
{
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 + SALT};
    #pragma unroll
    for (int chunk = 0; chunk < 4; chunk++) {
        unsigned w[64], s[8];
        #pragma unroll
        for (int i = 0; i < 16; i++)
            w[i] = first + thread * 64 + chunk * 16 + i;
        #pragma unroll
        for (int i = 16; i < 64; i++)
            w[i] = w[i - 16] + w[i - 7]
                 + (turned(w[i - 15], 7) ^ turned(w[i - 15], 18) ^ w[i - 15] >> 3)
                 + (turned(w[i - 2], 17) ^ turned(w[i - 2], 19) ^ w[i - 2] >> 10);
        #pragma unroll
        for (int i = 0; i < 8; i++)
            s[i] = h[i];
        #pragma unroll
        for (int i = 0; i < 64; i++) {
            const unsigned e = turned(s[4], 6) ^ turned(s[4], 11) ^ turned(s[4], 25);
            const unsigned a = turned(s[0], 2) ^ turned(s[0], 13) ^ turned(s[0], 22);
            const unsigned one = s[7] + e + (s[4] & s[5] ^ ~s[4] & s[6]) + constants[i] + w[i];
            const unsigned two = a + (s[0] & s[1] ^ s[0] & s[2] ^ s[1] & s[2]);
            #pragma unroll
            for (int j = 7; j; j--)
                s[j] = s[j - 1];
            s[4] += one;
            s[0] = one + two;
        }
        #pragma unroll
        for (int i = 0; i < 8; i++)
            h[i] += s[i];
    }
    #pragma unroll
    for (int i = 0; i < 8; i++)
        digests[thread * 8 + i] = h[i];
}
#endif
