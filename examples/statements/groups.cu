// Cooperative groups: tiles of 8 lanes add up, then the whole grid meets, and reads all sums.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void sums(int *tiles, int *total)
{
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(cg::this_thread_block());
    int sum = 1;
    for (int by = 4; by > 0; by /= 2) sum += tile.shfl_down(sum, by);
    int first = (blockIdx.x * blockDim.x + threadIdx.x) / 8;
    if (tile.thread_rank() == 0) tiles[first] = sum;
    cg::this_grid().sync();
    if (cg::this_grid().thread_rank() == 0)
        for (int i = 0; i < gridDim.x * blockDim.x / 8; i++) *total += tiles[i];
}
