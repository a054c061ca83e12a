// Each thread has a call stack of its own: lane n > 0 is at most n calls deep (see Calls in the Warp view).
__device__ __noinline__ int fib(int n)
{
    if (n < 2) return n;
    return fib(n - 1) + fib(n - 2);
}

__global__ void numbers(int *out)
{
    out[threadIdx.x] = fib(threadIdx.x);
}
