// Asynchronous copies of libcu++ and of the pipeline primitives.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_awbarrier.h>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;

extern "C" __global__ void staged(const int *x, int *out, int n) {
    __shared__ int stage[2][128];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int batches = n / 128, total = 0;
    auto fetch = [&](int batch) {
        pipe.producer_acquire();
        cuda::memcpy_async(block, stage[batch % 2], x + 128 * batch, sizeof(int) * 128, pipe);
        pipe.producer_commit();
    };
    fetch(0);
    for (int batch = 0; batch < batches; batch++) {
        if (batch + 1 < batches) fetch(batch + 1);
        pipe.consumer_wait();
        block.sync();
        total += stage[batch % 2][(threadIdx.x + 1) % 128];
        block.sync();
        pipe.consumer_release();
    }
    out[threadIdx.x] = total;
}

extern "C" __global__ void with_barrier(const int *x, int *out) {
    __shared__ alignas(16) int kept[256];
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    auto block = cg::this_thread_block();
    cuda::memcpy_async(block, kept, x, cuda::aligned_size_t<16>(sizeof kept), barrier);
    barrier.arrive_and_wait();
    out[threadIdx.x] = kept[255 - threadIdx.x];
}

extern "C" __global__ void by_thread(const int *x, int *out) {
    __shared__ int kept[256];
    auto pipe = cuda::make_pipeline();
    pipe.producer_acquire();
    cuda::memcpy_async(&kept[threadIdx.x], &x[threadIdx.x], cuda::aligned_size_t<4>(4), pipe);
    pipe.producer_commit();
    pipe.consumer_wait();
    __syncthreads();
    out[threadIdx.x] = kept[255 - threadIdx.x];
    pipe.consumer_release();
}

extern "C" __global__ void primitives(const int4 *x, int4 *out) {
    __shared__ int4 kept[64];
    int i = threadIdx.x;
    __pipeline_memcpy_async(&kept[i], &x[i], 16, i % 2 ? 8 : 0);  // the odd ones' last 8 are zeros
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[i] = kept[63 - i];
}
