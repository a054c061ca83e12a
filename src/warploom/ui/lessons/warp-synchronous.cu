// A sum over a warp that trusts in lockstep: no __syncwarp() between the rounds.
__global__ void sum(const int *in, int *out)
{
    __shared__ volatile int part[64];
    int lane = threadIdx.x;
    part[lane] = in[lane];
    part[lane + 32] = 0;
#pragma unroll 1
    for (int step = 16; step > 0; step /= 2)
        part[lane] = part[lane] + part[lane + step];
    if (lane == 0) *out = part[0];
}
