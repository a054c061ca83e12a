// Blocks and warps that scan, reduce, sort and count, by CUB.
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

extern "C" __global__ void scan(const int *x, int *out) {
    using Load = cub::BlockLoad<int, 64, 4, cub::BLOCK_LOAD_TRANSPOSE>;
    using Scan = cub::BlockScan<int, 64, cub::BLOCK_SCAN_RAKING>;
    using Store = cub::BlockStore<int, 64, 4, cub::BLOCK_STORE_WARP_TRANSPOSE>;
    __shared__ union {
        Load::TempStorage load;
        Scan::TempStorage scan;
        Store::TempStorage store;
    } room;
    int v[4];
    Load(room.load).Load(x, v);
    __syncthreads();
    Scan(room.scan).ExclusiveSum(v, v);
    __syncthreads();
    Store(room.store).Store(out, v);
}

extern "C" __global__ void reduce(const int *x, int *out) {
    using Block = cub::BlockReduce<int, 96, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
    using Raking = cub::BlockReduce<int, 96, cub::BLOCK_REDUCE_RAKING>;
    using Warp = cub::WarpReduce<int>;
    using Scan = cub::WarpScan<int>;
    __shared__ Block::TempStorage block;
    __shared__ Raking::TempStorage raking;
    __shared__ Warp::TempStorage warp[3];
    __shared__ Scan::TempStorage scan[3];
    int i = threadIdx.x, v = x[i], before;
    int total = Block(block).Sum(v);
    int greatest = Raking(raking).Reduce(v, [](int a, int b) { return a > b ? a : b; }, 90);
    if (i == 0) out[0] = total, out[1] = greatest;
    int own = Warp(warp[i / 32]).Sum(v);
    if (i % 32 == 0) out[2 + i / 32] = own;
    Scan(scan[i / 32]).ExclusiveSum(v, before);
    out[5 + i] = before;
}

extern "C" __global__ void sort(unsigned *keys, int *values) {
    using Sort = cub::BlockRadixSort<unsigned, 64, 2, int>;
    __shared__ Sort::TempStorage room;
    int i = threadIdx.x;
    unsigned k[2] = {keys[2 * i], keys[2 * i + 1]};
    int v[2] = {values[2 * i], values[2 * i + 1]};
    Sort(room).Sort(k, v);
    keys[2 * i] = k[0], keys[2 * i + 1] = k[1];
    values[2 * i] = v[0], values[2 * i + 1] = v[1];
}

struct Less {
    __device__ bool operator()(int a, int b) const { return a < b; }
};

extern "C" __global__ void merge(int *x) {
    using Sort = cub::WarpMergeSort<int, 3, 32>;
    __shared__ Sort::TempStorage room;
    int v[3];
    for (int j = 0; j < 3; j++) v[j] = x[3 * threadIdx.x + j];
    Sort(room).Sort(v, Less());
    for (int j = 0; j < 3; j++) x[3 * threadIdx.x + j] = v[j];
}

extern "C" __global__ void count(const unsigned char *x, unsigned *out) {
    using Histogram = cub::BlockHistogram<unsigned char, 64, 4, 16, cub::BLOCK_HISTO_ATOMIC>;
    __shared__ Histogram::TempStorage room;
    __shared__ unsigned bins[16];
    unsigned char v[4];
    for (int j = 0; j < 4; j++) v[j] = x[4 * threadIdx.x + j];
    Histogram(room).Histogram(v, bins);
    __syncthreads();
    if (threadIdx.x < 16) out[threadIdx.x] = bins[threadIdx.x];
}
