// A barrier that only some threads reach.
__global__ void meet(int *out)
{
    int thread = threadIdx.x;
    if (thread < 48)
        __syncthreads();
    out[thread] = thread;
}
