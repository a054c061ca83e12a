// Cooperative groups: tiles of 8 lanes add up, then blocks do, then the whole grid meets, and one
// thread reads all sums: 8 for each tile, the threads of a block, the threads of the grid.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void sums(int *tiles, int *blocks, int *total)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    int sum = 1;
    for (int by = 4; by > 0; by /= 2) sum += tile.shfl_down(sum, by);
    int first = (blockIdx.x * blockDim.x + threadIdx.x) / 8;
    if (tile.thread_rank() == 0) tiles[first] = sum;
    block.sync();
    if (block.thread_rank() == 0)
        for (int i = 0; i < block.size() / 8; i++) blocks[blockIdx.x] += tiles[first + i];
    cg::this_grid().sync();
    if (cg::this_grid().thread_rank() == 0)
        for (int i = 0; i < gridDim.x; i++) *total += blocks[i];
}
