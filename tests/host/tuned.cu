// Each lane stores and loads a word of its own, STRIDE words from its neighbour's.
extern "C" __global__ void strided(float *out)
{
    __shared__ volatile float words[32 * STRIDE];
    words[threadIdx.x * STRIDE] = threadIdx.x;
    out[threadIdx.x] = words[threadIdx.x * STRIDE];
}
