// Groups of threads, by NVIDIA's own headers.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

extern "C" __global__ void tiles(const int *x, int *out) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    int i = block.thread_rank(), n = block.size(), v = x[i];
    out[i] = cg::reduce(tile, v, cg::plus<int>()) + 1000 * tile.meta_group_rank();
    out[n + i] = cg::inclusive_scan(tile, v);
    out[2 * n + i] = cg::exclusive_scan(tile, v, cg::plus<int>());
    out[3 * n + i] = tile.shfl_down(v, 3) + 100 * tile.shfl_xor(v, 1);
    out[4 * n + i] = tile.ballot(v & 1) | tile.match_any(v % 3) << 8;
}

extern "C" __global__ void coalesced(int *out) {
    int i = threadIdx.x, n = blockDim.x;
    if (i % 3 == 0) {
        auto group = cg::coalesced_threads();
        out[i] = group.thread_rank() + 100 * group.size();
        out[n + i] = cg::reduce(group, i, cg::greater<int>());
        out[2 * n + i] = cg::exclusive_scan(group, i);
        out[3 * n + i] = cg::invoke_one_broadcast(group, [&] { return 42 + n; });
    }
}

extern "C" __global__ void partitions(int *out) {
    int i = threadIdx.x, n = blockDim.x;
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto labeled = cg::labeled_partition(warp, i % 5);
    out[i] = labeled.size() * 100 + labeled.thread_rank();
    auto binary = cg::binary_partition(warp, i % 4 == 1);
    out[n + i] = binary.size() * 100 + binary.thread_rank();
}

extern "C" __global__ void many_warps(const int *x, int *out) {
    __shared__ cg::block_tile_memory<128> memory;
    auto block = cg::this_thread_block(memory);
    auto tile = cg::tiled_partition<64>(block);
    int i = block.thread_rank(), n = block.size();
    out[i] = cg::reduce(tile, x[i], cg::plus<int>());
    out[n + i] = cg::inclusive_scan(tile, x[i]);
    tile.sync();
    cg::invoke_one(block, [&] { out[2 * n] = 77; });
}

extern "C" __global__ void copy(const int *x, int *out, int n) {
    extern __shared__ int kept[];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, kept, x, sizeof(int) * n);
    cg::wait(block);
    for (int i = block.thread_rank(); i < n; i += block.size()) out[i] = kept[n - 1 - i];
}

extern "C" __global__ void whole_grid(int *seen, int *out) {
    auto grid = cg::this_grid();
    int i = grid.thread_rank(), total = 0;
    for (int round = 1; round <= 3; round++) {
        seen[i] = round * i;
        grid.sync();
        for (int j = 0; j < grid.size(); j += 37) total += seen[j];
        grid.sync();
    }
    out[i] = total;
}
