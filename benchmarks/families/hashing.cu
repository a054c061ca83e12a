// Hash tables with open addressing, checksums and hashes of records.

#define EMPTY 0xffffffffu

__device__ unsigned mixed(unsigned key)
{
    key ^= key >> 16;
    key *= 0x7feb352du;
    key ^= key >> 15;
    key *= 0x846ca68bu;
    return key ^ (key >> 16);
}

// Puts keys into a table whose capacity is a power of two.
extern "C" __global__ void insert(const unsigned *keys, unsigned *table, int n, unsigned capacity)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned key = keys[i], slot = mixed(key) & (capacity - 1);
    while (true) {
        unsigned found = atomicCAS(&table[slot], EMPTY, key);
        if (found == EMPTY || found == key)
            return;
        slot = (slot + 1) & (capacity - 1);
    }
}

extern "C" __global__ void lookup(const unsigned *table, const unsigned *values,
                                  const unsigned *keys, unsigned *found, int n, unsigned capacity)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned key = keys[i], slot = mixed(key) & (capacity - 1), value = EMPTY;
    while (table[slot] != EMPTY) {
        if (table[slot] == key) {
            value = values[slot];
            break;
        }
        slot = (slot + 1) & (capacity - 1);
    }
    found[i] = value;
}

// CRC-32 of records, with the table of bytes in shared memory.
extern "C" __global__ void crc32(const unsigned char *records, unsigned *sums, int n, int length)
{
    __shared__ unsigned table[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x) {
        unsigned c = b;
        for (int bit = 0; bit < 8; bit++)
            c = c & 1 ? (c >> 1) ^ 0xedb88320u : c >> 1;
        table[b] = c;
    }
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned crc = 0xffffffffu;
    for (int k = 0; k < length; k++)
        crc = (crc >> 8) ^ table[(crc ^ records[(size_t)i * length + k]) & 255];
    sums[i] = ~crc;
}

__constant__ unsigned K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

__device__ unsigned rotated(unsigned x, int n)
{
    return (x >> n) | (x << (32 - n));
}

// SHA-256 (FIPS 180-4) of messages of 32 bytes, one a thread.
extern "C" __global__ void sha256(const unsigned *messages, unsigned *digests, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned w[16];
    for (int k = 0; k < 8; k++)
        w[k] = __byte_perm(messages[i * 8 + k], 0, 0x0123);
    for (int k = 8; k < 16; k++)
        w[k] = 0;
    w[8] = 0x80000000u;
    w[15] = 256;
    const unsigned start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                               0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    unsigned a = start[0], b = start[1], c = start[2], d = start[3];
    unsigned e = start[4], f = start[5], g = start[6], h = start[7];
#pragma unroll 16
    for (int round = 0; round < 64; round++) {
        unsigned word = w[round % 16];
        unsigned first = h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & f) ^ (~e & g))
            + K[round] + word;
        unsigned second = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22))
            + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + first;
        d = c;
        c = b;
        b = a;
        a = first + second;
        unsigned old = w[(round + 1) % 16], late = w[(round + 14) % 16];
        w[round % 16] = word + (rotated(old, 7) ^ rotated(old, 18) ^ (old >> 3))
            + w[(round + 9) % 16] + (rotated(late, 17) ^ rotated(late, 19) ^ (late >> 10));
    }
    unsigned *out = digests + i * 8;
    const unsigned last[8] = {a, b, c, d, e, f, g, h};
    for (int k = 0; k < 8; k++)
        out[k] = __byte_perm(start[k] + last[k], 0, 0x0123);
}
