// Clusters through NVIDIA's headers: cooperative_groups' cluster_group, and a copy of a box of a tensor
// to all blocks of a cluster.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// Every block counts its part of the values; the blocks of a cluster share the bins between them.
extern "C" __global__ void __cluster_dims__(4, 1, 1)
histogram(const unsigned *values, int count, unsigned *bins, int per_block) {
    extern __shared__ unsigned own[];
    cg::cluster_group cluster = cg::this_cluster();
    for (int i = threadIdx.x; i < per_block; i += blockDim.x) own[i] = 0;
    cluster.sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        unsigned *there = cluster.map_shared_rank(own, values[i] / per_block);
        atomicAdd(there + values[i] % per_block, 1);
    }
    cluster.sync();
    for (int i = threadIdx.x; i < per_block; i += blockDim.x)
        atomicAdd(bins + cluster.block_rank() * per_block + i, own[i]);
}

extern "C" __global__ void ranks(unsigned *out) {
    cg::cluster_group cluster = cg::this_cluster();
    unsigned at = blockIdx.x + gridDim.x * blockIdx.y;
    cluster.barrier_wait(cluster.barrier_arrive());
    if (threadIdx.x == 0) {
        unsigned told[] = {cluster.block_rank(), cluster.num_blocks(), cluster.block_index().x,
                           cluster.block_index().y, cluster.dim_blocks().x, cluster.num_threads()};
        for (int i = 0; i < 6; ++i) out[6 * at + i] = told[i];
    }
}

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

// Block 0 of each cluster brings a box of 16 x 32 words to all blocks; each writes it out.
extern "C" __global__ void __cluster_dims__(2, 1, 1)
shared_box(const __grid_constant__ TensorMap map, unsigned *out, int x, int y) {
    __shared__ alignas(128) unsigned box[16 * 32];
    __shared__ alignas(8) unsigned long long bar;
    unsigned at = __cvta_generic_to_shared(box), barrier = __cvta_generic_to_shared(&bar);
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                     "r"((unsigned)sizeof box));
    }
    cluster.sync();
    if (threadIdx.x == 0 && cluster.block_rank() == 0)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                     ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(at),
                     "l"(&map), "r"(x), "r"(y), "r"(barrier), "h"((unsigned short)3)
                     : "memory");
    asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;"
                 " @!done bra again; }" ::"r"(barrier) : "memory");
    for (int i = threadIdx.x; i < 16 * 32; i += blockDim.x) out[blockIdx.x * 512 + i] = box[i];
    cluster.sync();
}
