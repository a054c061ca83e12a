// The same branch as a SIMT machine runs it, and as one writes it for SIMD: the mask by hand.
__global__ void both(int *simt, int *simd)
{
    int lane = threadIdx.x;
    int value = lane;
    if (lane < 12) {
#pragma unroll 1
        for (int i = 0; i < 4; i++)
            value = 3 * value + i;
    }
    simt[lane] = value;

    int other = lane;
    int mask = -(lane < 12);
#pragma unroll 1
    for (int i = 0; i < 4; i++)
        other = (other & ~mask) | ((3 * other + i) & mask);
    simd[lane] = other;
}
