// Each kind of memory once: constant and global memory are read, shared and local memory written and
// read, global memory written. What fits into registers needs none of them.
__constant__ float factors[4] = {1, 2, 3, 4};

__global__ void memories(const float *in, float *out, int n)
{
    __shared__ float tile[32];
    float own[32];  // indexed by a value that the compiler does not know: in local memory
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    for (int i = 0; i < n; i++) own[i] = factors[i % 4] * tile[31 - threadIdx.x];
    out[threadIdx.x] = own[n - 1 - threadIdx.x % n];
}
