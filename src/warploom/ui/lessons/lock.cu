// A lock that lanes of one warp take and await, as one writes it for a CPU.
__global__ void count(int *lock, int *total)
{
    while (atomicCAS(lock, 0, 1) != 0)
        ;
    *(volatile int *)total += 1;
    __threadfence();
    atomicExch(lock, 0);
}
