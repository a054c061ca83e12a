// The sum of lockstep.cu, right on all devices: no lane writes before all have read, or reads before
// all have written.
__global__ void sum(int *out)
{
    __shared__ int part[64];
    int lane = threadIdx.x;
    part[lane] = 1;
    part[lane + 32] = 0;
    __syncwarp();
#pragma unroll 1
    for (int step = 16; step > 0; step /= 2) {
        int both = part[lane] + part[lane + step];
        __syncwarp();
        part[lane] = both;
        __syncwarp();
    }
    if (lane == 0) *out = part[0];
}
