// Each lane adds up 1 + 2 + ... as far as its own number.
__global__ void sums(int *out)
{
    int lane = threadIdx.x;
    int sum = 0;
#pragma unroll 1
    for (int i = 1; i <= lane % 4; i++)
        sum += i * lane;
    out[lane] = sum;
}
