// What programs ask of one device: peers, preferences, the profiler, where managed memory belongs.
#include <cuda_profiler_api.h>

#include "must.h"

__global__ void fill(int *x) { x[threadIdx.x] = threadIdx.x; }

int main()
{
    int possible = -1, rank = -1, chosen = -1;
    MUST(cudaDeviceCanAccessPeer(&possible, 0, 0));
    int enabled = cudaDeviceEnablePeerAccess(0, 0), absent = cudaDeviceEnablePeerAccess(1, 0);
    int disabled = cudaDeviceDisablePeerAccess(0);
    printf("peers %d %d %d %d\n", possible, enabled == cudaErrorInvalidDevice,
           absent == cudaErrorInvalidDevice, disabled == cudaErrorPeerAccessNotEnabled);
    cudaGetLastError();
    MUST(cudaDeviceGetP2PAttribute(&rank, cudaDevP2PAttrPerformanceRank, 0, 0));
    cudaDeviceProp wanted = {};
    MUST(cudaChooseDevice(&chosen, &wanted));

    cudaSharedMemConfig banks;
    cudaFuncCache cache;
    unsigned flags;
    MUST(cudaDeviceGetSharedMemConfig(&banks));
    MUST(cudaDeviceGetCacheConfig(&cache));
    MUST(cudaGetDeviceFlags(&flags));
    printf("preferences %d %d %d\n", rank, chosen, (int)cache);

    int *x, *y, first = -1;
    cudaStream_t stream;
    MUST(cudaProfilerStart());
    MUST(cudaStreamCreate(&stream));
    MUST(cudaMallocManaged(&x, 32 * sizeof(int), cudaMemAttachHost));
    MUST(cudaMalloc(&y, 32 * sizeof(int)));
    MUST(cudaStreamAttachMemAsync(stream, x, 0, cudaMemAttachSingle));
    fill<<<1, 32, 0, stream>>>(x);
    MUST(cudaMemcpyPeerAsync(y, 0, x, 0, 32 * sizeof(int), stream));
    MUST(cudaMemcpy(&first, y + 31, sizeof first, cudaMemcpyDefault));
    MUST(cudaProfilerStop());
    printf("copied %d\n", first);
    return 0;
}
