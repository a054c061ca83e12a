// Each thread reads a word of a line of its own: as many transactions as there are threads.
__global__ void stride(const float *in, float *out, int words)
{
    out[threadIdx.x] = in[threadIdx.x * words];
}
