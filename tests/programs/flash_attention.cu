// Attention, forward, for f16 and heads of 64 elements, in the style of FlashAttention-3: a warp
// group that copies tiles of K and V by tensor maps into two stages, and two warp groups that each
// multiply 64 rows of Q with them, with the softmax made along the way. The product of the next
// tile of K is under way while the product with the tile of V before it is.
//
// CAUSAL is 0 or 1. REGISTERS(c) and OUTPUTS stand for the 32 sums of a product, as operands of asm
// and in its text.
#include <cuda_fp16.h>

constexpr int D = 64, ROWS = 128, KEYS = 64, STAGES = 2;
constexpr int TILE = KEYS * D * sizeof(__half);
#define LEAST __int_as_float(0xff800000)  // minus infinity

struct alignas(64) Map { char bytes[128]; };
struct Storage {
    __half q[2][64 * D], k[STAGES][KEYS * D], v[STAGES][KEYS * D];
    unsigned long long full_q, full_k[STAGES], empty_k[STAGES], full_v[STAGES], empty_v[STAGES];
};

__device__ unsigned shared(const void *at) { return __cvta_generic_to_shared(at); }

__device__ void init(unsigned long long *bar, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared(bar)), "r"(count));
}
__device__ void expect(unsigned long long *bar, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 ::"r"(shared(bar)), "r"(bytes) : "memory");
}
__device__ void arrive(unsigned long long *bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared(bar)) : "memory");
}
__device__ void wait(unsigned long long *bar, int parity)
{
    asm volatile("{\n.reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}" ::"r"(shared(bar)), "r"(parity) : "memory");
}
__device__ void load(void *to, const Map &map, int row, int head, unsigned long long *bar)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4}], [%5];"
                 ::"r"(shared(to)), "l"(&map), "r"(0), "r"(row), "r"(head), "r"(shared(bar))
                 : "memory");
}

// Rows of 128 bytes, swizzled by 128 bytes: 1024 bytes from 8 rows to the next.
__device__ unsigned long long descriptor(const void *at)
{
    return shared(at) >> 4 | 64ull << 16 | 64ull << 32 | 1ull << 62;
}
__device__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// s = Q * K^T for 64 rows of Q
__device__ void scores(float (&s)[32], const __half *q, const __half *k)
{
    fence();
    for (int i = 0; i < D / 16; i++)
        asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %34, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {OUTPUTS}, "
                     "%32, %33, add, 1, 1, 0, 0;\n}"
                     : REGISTERS(s)
                     : "l"(descriptor(q) + 2 * i), "l"(descriptor(k) + 2 * i), "r"(i));
    commit();
}
// o = o + P * V, with P in registers; V has its keys along its rows, so it is transposed
__device__ void values(float (&o)[32], const unsigned (&p)[16], const __half *v)
{
    fence();
    for (int i = 0; i < KEYS / 16; i++)
        asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {OUTPUTS}, "
                     "{%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
                     : REGISTERS(o)
                     : "r"(p[4 * i]), "r"(p[4 * i + 1]), "r"(p[4 * i + 2]), "r"(p[4 * i + 3]),
                       "l"(descriptor(v) + 128 * i));
    commit();
}
template <int PENDING> __device__ void wait_products(float (&c)[32])
{
    asm volatile("wgmma.wait_group.sync.aligned %32;" : REGISTERS(c) : "n"(PENDING) : "memory");
}
// Registers that products read must keep their values until here: the compiler takes none of them
// for something else where this stands behind the wait.
__device__ void keep(unsigned (&p)[16])
{
    for (int i = 0; i < 16; i++) asm volatile("" : "+r"(p[i])::"memory");
}

// A thread has parts of two rows: of each, 16 elements of 64, as its quad's other threads do.
struct Softmax {
    float scale, greatest[2], sum[2], factor[2];

    __device__ Softmax(float scale) : scale(scale)
    {
        for (int r = 0; r < 2; r++) greatest[r] = LEAST, sum[r] = 0;
    }

    __device__ void step(float (&s)[32], unsigned (&p)[16])
    {
        for (int r = 0; r < 2; r++) {
            float most = greatest[r];
            for (int i = 0; i < 32; i++)
                if (i / 2 % 2 == r) most = fmaxf(most, s[i]);
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
            factor[r] = exp2f((greatest[r] - most) * scale);
            greatest[r] = most;
            float part = 0;
            for (int i = 0; i < 32; i++)
                if (i / 2 % 2 == r) part += s[i] = exp2f((s[i] - most) * scale);
            sum[r] = sum[r] * factor[r] + part;
        }
        for (int i = 0; i < 16; i++) {
            __half2 pair = __floats2half2_rn(s[2 * i], s[2 * i + 1]);
            p[i] = *(unsigned *)&pair;
        }
    }
    __device__ void rescale(float (&o)[32])
    {
        for (int i = 0; i < 32; i++) o[i] *= factor[i / 2 % 2];
    }
    __device__ void finish(float (&o)[32])
    {
        for (int r = 0; r < 2; r++) {
            sum[r] += __shfl_xor_sync(~0u, sum[r], 1);
            sum[r] += __shfl_xor_sync(~0u, sum[r], 2);
            factor[r] = 1 / sum[r];
        }
        rescale(o);
    }
};

__device__ void mask(float (&s)[32], int row, int key)
{
    if (!CAUSAL) return;
    row += threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    key += threadIdx.x % 4 * 2;
    for (int i = 0; i < 32; i++)
        if (key + i / 4 * 8 + i % 2 > row + i / 2 % 2 * 8) s[i] = LEAST;
}

__device__ void produce(Storage &to, const Map &q, const Map &k, const Map &v, int tiles)
{
    int first = blockIdx.x * ROWS, head = blockIdx.y;
    expect(&to.full_q, 2 * TILE);
    load(to.q[0], q, first, head, &to.full_q);
    load(to.q[1], q, first + 64, head, &to.full_q);
    for (int tile = 0; tile < tiles; tile++) {
        int stage = tile % STAGES, parity = tile / STAGES % 2 ^ 1;
        wait(&to.empty_k[stage], parity);
        expect(&to.full_k[stage], TILE);
        load(to.k[stage], k, tile * KEYS, head, &to.full_k[stage]);
        wait(&to.empty_v[stage], parity);
        expect(&to.full_v[stage], TILE);
        load(to.v[stage], v, tile * KEYS, head, &to.full_v[stage]);
    }
}

__device__ void consume(Storage &in, const Map &out, float scale, int tiles)
{
    int group = threadIdx.x / 128 - 1, lane = threadIdx.x % 32;
    int first = blockIdx.x * ROWS + group * 64;
    float s[32], o[32] = {};
    unsigned p[16];
    Softmax softmax(scale);
    wait(&in.full_q, 0);
    wait(&in.full_k[0], 0);
    scores(s, in.q[group], in.k[0]);
    wait_products<0>(s);
    if (lane == 0) arrive(&in.empty_k[0]);
    mask(s, first, 0);
    softmax.step(s, p);
    for (int tile = 1; tile < tiles; tile++) {
        int next = tile % STAGES, now = (tile - 1) % STAGES;
        wait(&in.full_k[next], tile / STAGES % 2);
        scores(s, in.q[group], in.k[next]);
        wait(&in.full_v[now], (tile - 1) / STAGES % 2);
        values(o, p, in.v[now]);
        wait_products<1>(s);
        if (lane == 0) arrive(&in.empty_k[next]);
        mask(s, first, tile * KEYS);
        unsigned following[16];
        softmax.step(s, following);
        wait_products<0>(o);
        keep(p);
        if (lane == 0) arrive(&in.empty_v[now]);
        softmax.rescale(o);
        for (int i = 0; i < 16; i++) p[i] = following[i];
    }
    int last = (tiles - 1) % STAGES;
    wait(&in.full_v[last], (tiles - 1) / STAGES % 2);
    values(o, p, in.v[last]);
    wait_products<0>(o);
    softmax.finish(o);

    // O takes the place of Q, which nobody reads any more, and goes out by a tensor map.
    __half *to = in.q[group];
    int row = threadIdx.x % 128 / 32 * 16 + lane / 4;
    for (int i = 0; i < 16; i++) {
        int line = row + i % 2 * 8, unit = i / 2 ^ line % 8;
        *(__half2 *)(to + line * D + unit * 8 + lane % 4 * 2)
            = __floats2half2_rn(o[2 * i], o[2 * i + 1]);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
    if (threadIdx.x % 128 == 0) {
        asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group "
                     "[%0, {%1, %2, %3}], [%4];"
                     ::"l"(&out), "r"(0), "r"(first), "r"((int)blockIdx.y), "r"(shared(to))
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

extern "C" __global__ void __launch_bounds__(384, 1)
attention(const __grid_constant__ Map q, const __grid_constant__ Map k,
          const __grid_constant__ Map v, const __grid_constant__ Map out, float scale, int keys)
{
    extern __shared__ __align__(1024) char memory[];
    Storage &storage = *(Storage *)memory;
    if (threadIdx.x == 0) {
        init(&storage.full_q, 1);
        for (int stage = 0; stage < STAGES; stage++) {
            init(&storage.full_k[stage], 1);
            init(&storage.full_v[stage], 1);
            init(&storage.empty_k[stage], 8);
            init(&storage.empty_v[stage], 8);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    int tiles = CAUSAL ? (blockIdx.x + 1) * ROWS / KEYS : keys / KEYS;
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) produce(storage, q, k, v, tiles);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        consume(storage, out, scale, tiles);
    }
}
