// A pipeline: one thread has the Tensor Memory Accelerator bring tiles into STAGES places of shared
// memory, and four warps add up what has come, tile by tile.
__device__ unsigned in_shared(void *at) { return (unsigned)__cvta_generic_to_shared(at); }

__device__ void wait_for(unsigned long long *barrier, int parity)
{
    asm volatile("{ .reg .pred p;\n"
                 "WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@!p bra WAIT; }" ::"r"(in_shared(barrier)), "r"(parity) : "memory");
}

__device__ void begin(unsigned long long *barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(in_shared(barrier)), "r"(arrivals));
}

extern "C" __global__ void sums(const char *tiles, float *out, int count)
{
    __shared__ __align__(128) char places[STAGES * BYTES];
    __shared__ __align__(8) unsigned long long full[STAGES], empty[STAGES];
    int thread = threadIdx.x;
    if (thread == 0)
        for (int stage = 0; stage < STAGES; stage++) {
            begin(full + stage, 1);
            begin(empty + stage, 128);
        }
    __syncthreads();
    if (thread >= 128) {
        for (int tile = 0; thread == 128 && tile < count; tile++) {
            int stage = tile % STAGES, parity = tile / STAGES & 1;
            wait_for(empty + stage, parity ^ 1);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                             in_shared(full + stage)), "r"(BYTES));
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                         " [%0], [%1], %2, [%3];" ::"r"(in_shared(places + stage * BYTES)),
                         "l"(tiles + tile * BYTES), "r"(BYTES), "r"(in_shared(full + stage))
                         : "memory");
        }
        return;
    }
    float sum = 0;
    for (int tile = 0; tile < count; tile++) {
        int stage = tile % STAGES, parity = tile / STAGES & 1;
        wait_for(full + stage, parity);
        for (int at = thread; at < BYTES / 4; at += 128 * SKIP)
            sum += ((float *)(places + stage * BYTES))[at];
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(in_shared(empty + stage))
                     : "memory");
    }
    out[thread] = sum;
}
