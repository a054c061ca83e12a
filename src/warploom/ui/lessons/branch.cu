// Two sides of the same length: even lanes take one, odd lanes the other.
__global__ void sides(int *out)
{
    int lane = threadIdx.x, value = lane;
    if (lane % 2 == 0) {
#pragma unroll 1
        for (int i = 0; i < 8; i++)
            value = value * 3 + 1;
    } else {
#pragma unroll 1
        for (int i = 0; i < 8; i++)
            value = value * 5 + 7;
    }
    out[lane] = value;
}
