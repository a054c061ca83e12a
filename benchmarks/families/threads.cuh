// The place of a thread in its block, for blocks of any number of axes.
#pragma once

__device__ inline int thread_rank()
{
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}

__device__ inline int block_threads()
{
    return blockDim.x * blockDim.y * blockDim.z;
}
