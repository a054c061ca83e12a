// Memory pools, and memory that belongs to a graph.
#include <cstdint>

#include "must.h"

__global__ void fill(int *x, int value) { x[threadIdx.x] = value; }

__global__ void add(const int *x, int *y) { y[threadIdx.x] += x[threadIdx.x]; }

int main()
{
    enum { COUNT = 32, BYTES = COUNT * sizeof(int) };
    cudaStream_t stream;
    MUST(cudaStreamCreate(&stream));

    cudaMemPool_t standard, own;
    uint64_t most = UINT64_MAX, told = 0, used = 0;
    MUST(cudaDeviceGetDefaultMemPool(&standard, 0));
    MUST(cudaMemPoolSetAttribute(standard, cudaMemPoolAttrReleaseThreshold, &most));
    MUST(cudaMemPoolGetAttribute(standard, cudaMemPoolAttrReleaseThreshold, &told));
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, {0}};
    MUST(cudaMemPoolCreate(&own, &properties));
    int *x, *y, result[COUNT];
    MUST(cudaMallocFromPoolAsync(&x, BYTES, own, stream));
    MUST(cudaMemPoolGetAttribute(own, cudaMemPoolAttrUsedMemCurrent, &used));
    fill<<<1, COUNT, 0, stream>>>(x, 7);
    MUST(cudaMemcpyAsync(result, x, BYTES, cudaMemcpyDeviceToHost, stream));
    MUST(cudaFreeAsync(x, stream));
    MUST(cudaStreamSynchronize(stream));
    printf("pool %d %d %d\n", told == most, (int)used, result[31]);
    MUST(cudaMemPoolTrimTo(own, 0));
    MUST(cudaMemPoolDestroy(own));

    MUST(cudaMalloc(&y, BYTES));
    MUST(cudaMemset(y, 0, BYTES));
    cudaGraph_t graph;
    cudaGraphExec_t runs;
    cudaGraphNode_t allocation, filling, adding, release;
    MUST(cudaGraphCreate(&graph, 0));
    cudaMemAllocNodeParams wanted = {};
    wanted.poolProps = properties;
    wanted.bytesize = BYTES;
    MUST(cudaGraphAddMemAllocNode(&allocation, graph, nullptr, 0, &wanted));
    int value = 3;
    void *fills[] = {&wanted.dptr, &value}, *adds[] = {&wanted.dptr, &y};
    cudaKernelNodeParams kernel = {(void *)fill, 1, COUNT, 0, fills, nullptr};
    MUST(cudaGraphAddKernelNode(&filling, graph, &allocation, 1, &kernel));
    kernel.func = (void *)add;
    kernel.kernelParams = adds;
    MUST(cudaGraphAddKernelNode(&adding, graph, &filling, 1, &kernel));
    MUST(cudaGraphAddMemFreeNode(&release, graph, &adding, 1, wanted.dptr));
    MUST(cudaGraphInstantiate(&runs, graph, 0));
    uint64_t held = 0;
    MUST(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &held));
    for (int i = 0; i < 2; ++i) MUST(cudaGraphLaunch(runs, stream));
    MUST(cudaMemcpy(result, y, BYTES, cudaMemcpyDeviceToHost));
    printf("graph %d %d\n", (int)held, result[0]);
    MUST(cudaGraphExecDestroy(runs));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaDeviceGraphMemTrim(0));
    MUST(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &held));
    printf("trimmed %d\n", (int)held);
    return 0;
}
