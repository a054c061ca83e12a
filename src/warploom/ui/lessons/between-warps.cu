// The same branch as before, but whole warps agree.
__global__ void sides(int *out)
{
    int thread = threadIdx.x, value = thread;
    if (thread / 32 % 2 == 0) {
#pragma unroll 1
        for (int i = 0; i < 8; i++)
            value = value * 3 + 1;
    } else {
#pragma unroll 1
        for (int i = 0; i < 8; i++)
            value = value * 5 + 7;
    }
    out[thread] = value;
}
