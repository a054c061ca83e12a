// A sum over a warp without __syncwarp() between the rounds, as if the warp ran in lockstep: right
// before compute capability 7.0, a matter of luck from then on. lockstep_fixed.cu is right on all.
__global__ void sum(int *out)
{
    __shared__ volatile int part[64];
    int lane = threadIdx.x;
    part[lane] = 1;
    part[lane + 32] = 0;
#pragma unroll 1
    for (int step = 16; step > 0; step /= 2) part[lane] = part[lane] + part[lane + step];
    if (lane == 0) *out = part[0];
}
