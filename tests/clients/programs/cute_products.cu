// D = A * B^T by CuTe's C++: A is M x K and B is N x K, of f16 with rows along K; D is M x N of f32.
// A block computes a tile of 128 x 128 in steps of 64 along K.
#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>
#include <cutlass/arch/reg_reconfig.h>
#include <cutlass/pipeline/sm90_pipeline.hpp>

using namespace cute;
using Block = Shape<_128, _128, _64>;

template <class T> __device__ auto matrix(T *at, int rows, int columns)
{
    return make_tensor(make_gmem_ptr(at), make_shape(rows, columns), make_stride(columns, _1{}));
}

// Ampere: cp.async into three stages, ldmatrix, mma.sync.
extern "C" __global__ void __launch_bounds__(128)
by_warps(const half_t *a, const half_t *b, float *d, int m, int n, int k)
{
    constexpr int STAGES = 3;
    using Atom = decltype(composition(
        Swizzle<3, 3, 3>{}, Layout<Shape<_8, _64>, Stride<_64, _1>>{}));
    using Stages = decltype(tile_to_shape(Atom{}, Shape<_128, _64, Int<STAGES>>{}));
    auto where = make_coord(blockIdx.x, blockIdx.y, _);
    auto tile_a = local_tile(matrix(a, m, k), Block{}, where, Step<_1, X, _1>{});
    auto tile_b = local_tile(matrix(b, n, k), Block{}, where, Step<X, _1, _1>{});
    auto tile_d = local_tile(matrix(d, m, n), Block{}, where, Step<_1, _1, X>{});

    extern __shared__ __align__(1024) char memory[];
    auto shared_a = make_tensor(make_smem_ptr((half_t *)memory), Stages{});
    auto shared_b = make_tensor(make_smem_ptr((half_t *)memory + cosize_v<Stages>), Stages{});

    auto copy_in = make_tiled_copy(
        Copy_Atom<SM80_CP_ASYNC_CACHEALWAYS<uint128_t>, half_t>{},
        Layout<Shape<_16, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, _8>>{});
    auto mine = copy_in.get_slice(threadIdx.x);
    auto from_a = mine.partition_S(tile_a), from_b = mine.partition_S(tile_b);
    auto to_a = mine.partition_D(shared_a), to_b = mine.partition_D(shared_b);

    auto products = make_tiled_mma(
        SM80_16x8x16_F32F16F16F32_TN{}, Layout<Shape<_2, _2>>{}, Tile<_32, _32, _16>{});
    auto part = products.get_slice(threadIdx.x);
    auto held_a = part.partition_fragment_A(shared_a(_, _, 0));
    auto held_b = part.partition_fragment_B(shared_b(_, _, 0));
    auto to_d = part.partition_C(tile_d);
    auto sums = part.make_fragment_C(to_d);
    clear(sums);
    auto load_a = make_tiled_copy_A(Copy_Atom<SM75_U32x4_LDSM_N, half_t>{}, products);
    auto load_b = make_tiled_copy_B(Copy_Atom<SM75_U32x4_LDSM_N, half_t>{}, products);
    auto read_a = load_a.get_slice(threadIdx.x).partition_S(shared_a);
    auto read_b = load_b.get_slice(threadIdx.x).partition_S(shared_b);
    auto view_a = load_a.get_slice(threadIdx.x).retile_D(held_a);
    auto view_b = load_b.get_slice(threadIdx.x).retile_D(held_b);

    int tiles = size<3>(from_a);
    for (int tile = 0; tile < STAGES - 1; tile++) {
        if (tile < tiles) {
            copy(copy_in, from_a(_, _, _, tile), to_a(_, _, _, tile));
            copy(copy_in, from_b(_, _, _, tile), to_b(_, _, _, tile));
        }
        cp_async_fence();
    }
    for (int tile = 0; tile < tiles; tile++) {
        cp_async_wait<STAGES - 2>();
        __syncthreads();
        int next = tile + STAGES - 1;
        if (next < tiles) {
            copy(copy_in, from_a(_, _, _, next), to_a(_, _, _, next % STAGES));
            copy(copy_in, from_b(_, _, _, next), to_b(_, _, _, next % STAGES));
        }
        cp_async_fence();
        copy(load_a, read_a(_, _, _, tile % STAGES), view_a);
        copy(load_b, read_b(_, _, _, tile % STAGES), view_b);
        gemm(products, held_a, held_b, sums);
    }
    copy(sums, to_d);
}

using Shared = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{}, Shape<_128, _64>{}));

// Hopper: tiles that threads copy, and products of a warp group.
extern "C" __global__ void __launch_bounds__(128)
by_a_group(const half_t *a, const half_t *b, float *d, int m, int n, int k)
{
    auto where = make_coord(blockIdx.x, blockIdx.y, _);
    auto tile_a = local_tile(matrix(a, m, k), Block{}, where, Step<_1, X, _1>{});
    auto tile_b = local_tile(matrix(b, n, k), Block{}, where, Step<X, _1, _1>{});
    auto tile_d = local_tile(matrix(d, m, n), Block{}, where, Step<_1, _1, X>{});
    extern __shared__ __align__(1024) char memory[];
    auto shared_a = make_tensor(make_smem_ptr((half_t *)memory), Shared{});
    auto shared_b = make_tensor(make_smem_ptr((half_t *)memory + cosize_v<Shared>), Shared{});
    auto copy_in = make_tiled_copy(
        Copy_Atom<UniversalCopy<uint128_t>, half_t>{},
        Layout<Shape<_16, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, _8>>{});
    auto mine = copy_in.get_slice(threadIdx.x);
    auto from_a = mine.partition_S(tile_a), from_b = mine.partition_S(tile_b);
    auto to_a = mine.partition_D(shared_a), to_b = mine.partition_D(shared_b);

    auto products = make_tiled_mma(
        SM90_64x128x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>{});
    auto part = products.get_slice(threadIdx.x);
    auto left = part.make_fragment_A(part.partition_A(shared_a));
    auto right = part.make_fragment_B(part.partition_B(shared_b));
    auto to_d = part.partition_C(tile_d);
    auto sums = part.make_fragment_C(to_d);
    clear(sums);
    for (int tile = 0; tile < size<3>(from_a); tile++) {
        copy(copy_in, from_a(_, _, _, tile), to_a);
        copy(copy_in, from_b(_, _, _, tile), to_b);
        cutlass::arch::fence_view_async_shared();
        __syncthreads();
        warpgroup_fence_operand(sums);
        warpgroup_arrive();
        gemm(products, left, right, sums);
        warpgroup_commit_batch();
        warpgroup_wait<0>();
        warpgroup_fence_operand(sums);
        __syncthreads();
    }
    copy(sums, to_d);
}

// Hopper: a warp group that copies by tensor maps, and two that multiply, with four stages of
// CUTLASS's pipeline between them.
struct alignas(64) Map { char bytes[128]; };

extern "C" __global__ void __launch_bounds__(384)
by_groups(const __grid_constant__ Map a, const __grid_constant__ Map b, float *d, int m, int n,
          int k)
{
    constexpr int STAGES = 4, BYTES = 2 * cosize_v<Shared> * sizeof(half_t);
    using Pipeline = cutlass::PipelineTmaAsync<STAGES>;
    using Stages = decltype(tile_to_shape(
        GMMA::Layout_K_SW128_Atom<half_t>{}, Shape<_128, _64, Int<STAGES>>{}));
    struct Storage {
        alignas(1024) half_t a[cosize_v<Stages>];
        alignas(1024) half_t b[cosize_v<Stages>];
        Pipeline::SharedStorage pipeline;
    };
    extern __shared__ __align__(1024) char memory[];
    Storage &storage = *(Storage *)memory;
    int group = threadIdx.x / 128;

    Pipeline::Params params;
    params.transaction_bytes = BYTES;
    params.role = group == 0 ? Pipeline::ThreadCategory::Producer
                             : Pipeline::ThreadCategory::Consumer;
    params.is_leader = threadIdx.x % 128 == 0;
    params.num_consumers = 256;
    Pipeline pipeline(storage.pipeline, params, Shape<_1, _1, _1>{});
    __syncthreads();
    int tiles = k / 64;
    if (group == 0) {
        cutlass::arch::warpgroup_reg_dealloc<40>();
        if (threadIdx.x == 0) {
            auto state = cutlass::make_producer_start_state<Pipeline>();
            for (int tile = 0; tile < tiles; tile++, ++state) {
                pipeline.producer_acquire(state);
                auto *barrier = pipeline.producer_get_barrier(state);
                auto hint = (uint64_t)TMA::CacheHintSm90::EVICT_NORMAL;
                int stage = state.index() * cosize_v<Shared>;
                SM90_TMA_LOAD_2D::copy(
                    &a, barrier, hint, storage.a + stage, tile * 64, blockIdx.x * 128);
                SM90_TMA_LOAD_2D::copy(
                    &b, barrier, hint, storage.b + stage, tile * 64, blockIdx.y * 128);
            }
            pipeline.producer_tail(state);
        }
    } else {
        cutlass::arch::warpgroup_reg_alloc<232>();
        auto products = make_tiled_mma(
            SM90_64x128x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>{},
            Layout<Shape<_2, _1, _1>>{});
        auto part = products.get_slice(threadIdx.x - 128);
        auto shared_a = make_tensor(make_smem_ptr(storage.a), Stages{});
        auto shared_b = make_tensor(make_smem_ptr(storage.b), Stages{});
        auto left = part.make_fragment_A(part.partition_A(shared_a));
        auto right = part.make_fragment_B(part.partition_B(shared_b));
        auto where = make_coord(blockIdx.x, blockIdx.y, _);
        auto tile_d = local_tile(matrix(d, m, n), Block{}, where, Step<_1, _1, X>{});
        auto to_d = part.partition_C(tile_d);
        auto sums = part.make_fragment_C(to_d);
        clear(sums);
        cutlass::PipelineState<STAGES> state, released;
        for (int tile = 0; tile < tiles; tile++, ++state) {
            pipeline.consumer_wait(state);
            warpgroup_fence_operand(sums);
            warpgroup_arrive();
            gemm(products, left(_, _, _, state.index()), right(_, _, _, state.index()), sums);
            warpgroup_commit_batch();
            warpgroup_wait<1>();  // the product before this one is complete
            warpgroup_fence_operand(sums);
            if (tile > 0) pipeline.consumer_release(released), ++released;
        }
        warpgroup_wait<0>();
        warpgroup_fence_operand(sums);
        pipeline.consumer_release(released);
        copy(sums, to_d);
    }
}
