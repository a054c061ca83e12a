// Each thread keeps what its atomicAdd returned: all additions happen, one after another, and which
// thread comes first is undefined.
__global__ void tickets(int *count, int *got)
{
    got[threadIdx.x] = atomicAdd(count, 1);
}
