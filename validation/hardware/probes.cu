// Probes of one device: cycles of chains of dependent instructions, of copies and of messages.
// A chain turns three times, so that the last turn's instructions are in the caches of instructions.
// Each kernel writes cycles to out[0], and whatever keeps its results alive to out[1].

#define LENGTH 64

template <typename T> __device__ void keep(unsigned *out, long long cycles, T value) {
    if (threadIdx.x == 0 && blockIdx.x == 0) out[0] = (unsigned)cycles;
    if (value == (T)123.0) out[1] = 1;
}

#define CHAIN(name, type, body)                                                                    \
    extern "C" __global__ void name(unsigned *out, type seed, type other) {                        \
        type x = seed + (type)threadIdx.x;                                                         \
        __syncthreads();                                                                           \
        long long cycles = 0;                                                                      \
        _Pragma("unroll 1") for (int round = 0; round < 3; round++) {                              \
            const long long begin = clock64();                                                     \
            _Pragma("unroll") for (int i = 0; i < LENGTH; i++) { body; }                           \
            cycles = clock64() - begin;                                                            \
        }                                                                                          \
        keep(out, cycles, x);                                                                      \
    }
#define ONE(name, type, text, how) \
    CHAIN(name, type, asm volatile(text : "+" how(x) : how(other)))

ONE(fma_f32, float, "fma.rn.f32 %0, %0, %1, %1;", "f")
ONE(add_f32, float, "add.f32 %0, %0, %1;", "f")
ONE(add_s32, int, "add.s32 %0, %0, %1;", "r")
ONE(mad_s32, int, "mad.lo.s32 %0, %0, %1, %1;", "r")
ONE(mul_hi_u32, unsigned, "mul.hi.u32 %0, %0, %1;", "r")
ONE(mad_u64, unsigned long long, "mad.lo.u64 %0, %0, %1, %1;", "l")
ONE(add_u64, unsigned long long, "add.u64 %0, %0, %1;", "l")
ONE(shf_b32, int, "shf.l.wrap.b32 %0, %0, %1, 7;", "r")
ONE(prmt_b32, int, "prmt.b32 %0, %0, %1, 0x2143;", "r")
ONE(max_s32, int, "max.s32 %0, %0, %1;", "r")
ONE(popc_b32, int, "popc.b32 %0, %0;", "r")
ONE(brev_b32, int, "brev.b32 %0, %0;", "r")
ONE(clz_b32, int, "clz.b32 %0, %0;", "r")
ONE(dp4a_s32, int, "dp4a.s32.s32 %0, %0, %1, %1;", "r")
ONE(fma_f64, double, "fma.rn.f64 %0, %0, %1, %1;", "d")
ONE(add_f64, double, "add.f64 %0, %0, %1;", "d")
ONE(fma_f16x2, int, "fma.rn.f16x2 %0, %0, %1, %1;", "r")
ONE(ex2_f32, float, "ex2.approx.ftz.f32 %0, %0;", "f")
ONE(rsqrt_f32, float, "rsqrt.approx.ftz.f32 %0, %0;", "f")
ONE(shfl_b32, int, "shfl.sync.bfly.b32 %0, %0, 1, 31, -1;", "r")
ONE(redux_s32, int, "redux.sync.add.s32 %0, %0, -1;", "r")
ONE(cvt_and_back, float, "{ .reg .s32 t; cvt.rzi.s32.f32 t, %0; cvt.rn.f32.s32 %0, t; }", "f")
ONE(cvt_f16_and_back, float, "{ .reg .f16 t; cvt.rn.f16.f32 t, %0; cvt.f32.f16 %0, t; }", "f")
ONE(cvt_f64_and_back, float, "{ .reg .f64 t; cvt.f64.f32 t, %0; cvt.rn.f32.f64 %0, t; }", "f")
ONE(setp_selp, int, "{ .reg .pred p; setp.lt.s32 p, %0, %1; selp.s32 %0, %1, %0, p; }", "r")
ONE(vote, int, "{ .reg .pred p; setp.lt.s32 p, %0, %1; vote.sync.ballot.b32 %0, p, -1; }", "r")
ONE(match_any, int, "match.any.sync.b32 %0, %0, -1;", "r")
CHAIN(empty, int, if (i == 0) x += other)
ONE(clock, int, "{ .reg .u32 t; mov.u32 t, %clock; add.s32 %0, %0, t; }", "r")
CHAIN(bar_sync, int, asm volatile("bar.sync 0;" ::: "memory"); x += other)
CHAIN(bar_warp_sync, int, asm volatile("bar.warp.sync -1;" ::: "memory"); x += other)
CHAIN(fence_block, int, asm volatile("fence.acq_rel.cta;" ::: "memory"); x += other)
CHAIN(fence_device, int, asm volatile("fence.acq_rel.gpu;" ::: "memory"); x += other)
CHAIN(fence_device_sc, int, asm volatile("fence.sc.gpu;" ::: "memory"); x += other)
CHAIN(nanosleep_0, int, asm volatile("nanosleep.u32 0;" ::: "memory"); x += other)
CHAIN(branch, int, asm volatile("{ .reg .pred p; setp.eq.s32 p, %0, 77; @p bra.uni AT%=; "
      "xor.b32 %0, %0, %1; AT%=: }" : "+r"(x) : "r"(other)))

// Loads whose address is what the load before returned.
__constant__ unsigned table[1024];
extern "C" __global__ void constant_distinct(unsigned *out, int distinct, int zero) {
    unsigned at = threadIdx.x % distinct * 8 % 1024;
    __syncthreads();
    const long long begin = clock64();
    #pragma unroll
    for (int i = 0; i < LENGTH; i++) at = (at + table[at]) & 1023;  // the table is zeros
    const long long end = clock64();
    keep(out, end - begin, at + zero);
}
extern "C" __global__ void shared_chase(unsigned *out, int stride, int zero) {
    __shared__ unsigned s[2048];
    for (int i = threadIdx.x; i < 2048; i += blockDim.x) s[i] = i;
    __syncthreads();
    unsigned at = threadIdx.x % 32 * stride & 2047;
    const long long begin = clock64();
    #pragma unroll
    for (int i = 0; i < LENGTH; i++) at = ((volatile unsigned *)s)[at];
    const long long end = clock64();
    keep(out, end - begin, at + zero);
}
extern "C" __global__ void shared_atomic(unsigned *out, int stride, int zero) {
    __shared__ unsigned s[2048];
    for (int i = threadIdx.x; i < 2048; i += blockDim.x) s[i] = 0;
    __syncthreads();
    unsigned at = threadIdx.x % 32 * stride & 2047, sum = 0;
    const long long begin = clock64();
    #pragma unroll
    for (int i = 0; i < LENGTH; i++) sum = atomicAdd(s + at, sum & zero);
    const long long end = clock64();
    keep(out, end - begin, sum);
}
extern "C" __global__ void global_atomic(unsigned *out, int stride, int zero) {
    unsigned sum = 0, *at = out + 64 + threadIdx.x % 32 * stride;
    __syncthreads();
    const long long begin = clock64();
    #pragma unroll
    for (int i = 0; i < LENGTH; i++) sum = atomicAdd(at, sum & zero);
    const long long end = clock64();
    keep(out, end - begin, sum);
}
// L1: each load of a warp reaches as many sectors as lanes, `stride` words apart, and hits L1.
extern "C" __global__ void cached_chase(unsigned *out, int stride, int zero) {
    unsigned at = 64 + threadIdx.x % 32 * stride, sum = 0;
    for (int i = 0; i < LENGTH; i++) sum += *(volatile unsigned *)(out + at) & zero;
    __syncthreads();
    const long long begin = clock64();
    #pragma unroll
    for (int i = 0; i < LENGTH; i++) {
        unsigned got;
        asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(got) : "l"(out + at));
        at += got & zero;
    }
    const long long end = clock64();
    keep(out, end - begin, at + sum);
}
// The same past L1: what L2 answers.
extern "C" __global__ void l2_chase(unsigned *out, int stride, int zero) {
    unsigned at = 64 + threadIdx.x % 32 * stride;
    __syncthreads();
    const long long begin = clock64();
    #pragma unroll
    for (int i = 0; i < LENGTH; i++) {
        unsigned got;
        asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(got) : "l"(out + at));
        at += got & zero;
    }
    const long long end = clock64();
    keep(out, end - begin, at);
}

// Throughput of the whole device: the time between two events counts.
extern "C" __global__ void stores(unsigned *out, int stride, int mask) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < LENGTH; i++)
        out[64 + ((i * gridDim.x * blockDim.x + thread) * stride & mask)] = i;
}
extern "C" __global__ void reductions(unsigned *out, int stride, int mask) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < LENGTH; i++)
        asm volatile("red.global.add.u32 [%0], 1;"
                     :: "l"(out + 64 + ((i * gridDim.x * blockDim.x + thread) * stride & mask)));
}
extern "C" __global__ void atomics(unsigned *out, int stride, int mask) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned sum = 0;
    for (int i = 0; i < LENGTH; i++)
        sum += atomicAdd(out + 64 + ((i * gridDim.x * blockDim.x + thread) * stride & mask), 1);
    keep(out, 0, sum);
}

// Bulk copies to shared memory: cycles from the first one's issue until all bytes are there; the
// second round finds them in L2.
#define SHARED(p) ((unsigned)__cvta_generic_to_shared(p))
extern "C" __global__ void bulk_copy(unsigned *out, int bytes, int copies) {
    extern __shared__ __align__(128) char to[];
    __shared__ unsigned long long bar;
    if (threadIdx.x) return;
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(SHARED(&bar)));
    asm volatile("fence.proxy.async;" ::: "memory");
    long long cycles = 0;
    for (int round = 0; round < 4; round++) {
        const long long begin = clock64();
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                     :: "r"(SHARED(&bar)), "r"(bytes * copies) : "memory");
        for (int i = 0; i < copies; i++)
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                         " [%0], [%1], %2, [%3];" :: "r"(SHARED(to + i * bytes)),
                         "l"((char *)(out + 1024) + i * bytes), "r"(bytes), "r"(SHARED(&bar))
                         : "memory");
        int done = 0;
        while (!done)
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
                         " selp.u32 %0, 1, 0, p; }" : "=r"(done)
                         : "r"(SHARED(&bar)), "r"(round & 1) : "memory");
        cycles = clock64() - begin;
    }
    keep(out, cycles, 0);
}

// Messages between the two blocks of a cluster.
extern "C" __global__ void __cluster_dims__(2) cluster_load(unsigned *out, int stride, int zero) {
    __shared__ unsigned s[2048];
    for (int i = threadIdx.x; i < 2048; i += blockDim.x) s[i] = 0;
    unsigned at = SHARED(s) + 4 * (threadIdx.x % 32 * stride & 2047), far;
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far) : "r"(at), "r"(blockIdx.x & 1 ^ 1));
    const long long begin = clock64();
    #pragma unroll
    for (int i = 0; i < LENGTH; i++) {
        unsigned got;
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(got) : "r"(far));
        far += got & zero;
    }
    const long long end = clock64();
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    keep(out, end - begin, far);
}
extern "C" __global__ void __cluster_dims__(2) cluster_barrier(unsigned *out, int stride, int x) {
    const long long begin = clock64();
    #pragma unroll
    for (int i = 0; i < LENGTH; i++)
        asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    keep(out, clock64() - begin, x);
}

// A product of tensor cores, each adding to what the one before made.
extern "C" __global__ void mma_f16(unsigned *out, int stride, int zero) {
    float a = zero, b = zero, c = zero, d = zero;
    unsigned p = zero + threadIdx.x;
    __syncthreads();
    const long long begin = clock64();
    #pragma unroll
    for (int i = 0; i < LENGTH; i++)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3},"
                     " {%4, %4, %4, %4}, {%4, %4}, {%0, %1, %2, %3};"
                     : "+f"(a), "+f"(b), "+f"(c), "+f"(d) : "r"(p));
    const long long end = clock64();
    keep(out, end - begin, a + b + c + d);
}

// Places of warps. All warps but the first of a block end at once, and the first turns for so many
// cycles: the seconds of a grid tell whether blocks come while others have one warp left.
extern "C" __global__ void lone_warps(unsigned *out, int cycles, int zero) {
    if (threadIdx.x >= 32) return;
    const long long begin = clock64();
    while (clock64() - begin < cycles)
        ;
    keep(out, clock64() - begin, zero);
}
// The multiprocessor and the slot of each warp, whose block turns longer the greater its index is.
extern "C" __global__ void warp_slots(unsigned *out, int cycles, int zero) {
    unsigned sm, slot;
    asm volatile("mov.u32 %0, %%smid; mov.u32 %1, %%warpid;" : "=r"(sm), "=r"(slot));
    const long long begin = clock64();
    while (clock64() - begin < cycles + blockIdx.x % 7 * 1000)
        ;
    if (threadIdx.x % 32 == 0)
        out[64 + blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32] = sm << 16 | slot;
    keep(out, clock64() - begin, zero);
}
