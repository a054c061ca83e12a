// 32 lanes add 1 to a counter: by a load and a store, then by an atomic.
__global__ void add(int *plain, int *atomic)
{
    *plain = *plain + 1;
    atomicAdd(atomic, 1);
}
