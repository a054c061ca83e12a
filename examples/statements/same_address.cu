// All lanes of a warp store to one address: how many stores reach memory depends on the compute
// capability, and which of them lasts is undefined.
__global__ void store(int *out)
{
    *out = threadIdx.x;
}
