// What the CUDA samples use most, through the runtime: checks itself, prints what it found.
#include <cstdlib>

#include "must.h"

__constant__ int factors[2];
__device__ int total;

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void use_symbols() { atomicAdd(&total, factors[threadIdx.x % 2]); }

int main(int count, char **arguments)
{
    int n = count > 1 ? atoi(arguments[1]) : 100;
    size_t bytes = n * sizeof(float);
    int devices = 0;
    MUST(cudaGetDeviceCount(&devices));
    MUST(cudaSetDevice(0));
    cudaDeviceProp properties;
    MUST(cudaGetDeviceProperties(&properties, 0));
    if (devices != 1 || properties.warpSize != 32 || properties.major != 8) return 2;

    float *host = (float *)malloc(bytes), *x, *y;
    for (int i = 0; i < n; ++i) host[i] = 1;
    MUST(cudaMalloc(&x, bytes));
    MUST(cudaMalloc((void **)&y, bytes));
    MUST(cudaMemcpy(x, host, bytes, cudaMemcpyHostToDevice));
    MUST(cudaMemset(y, 0, bytes));

    cudaStream_t stream;
    cudaEvent_t start, end;
    MUST(cudaStreamCreate(&stream));
    MUST(cudaEventCreate(&start));
    MUST(cudaEventCreate(&end));
    MUST(cudaEventRecord(start, stream));
    saxpy<<<(n + 255) / 256, 256, 0, stream>>>(n, 2.0f, x, y);
    MUST(cudaGetLastError());
    MUST(cudaEventRecord(end, stream));
    MUST(cudaStreamSynchronize(stream));
    float milliseconds = -1;
    MUST(cudaEventElapsedTime(&milliseconds, start, end));
    if (milliseconds < 0) return 3;
    MUST(cudaMemcpyAsync(host, y, bytes, cudaMemcpyDeviceToHost, stream));
    MUST(cudaDeviceSynchronize());
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += host[i];
    printf("saxpy %g\n", sum);

    int given[2] = {1, 2}, found = 0;
    MUST(cudaMemcpyToSymbol(factors, given, sizeof given));
    use_symbols<<<1, 4>>>();
    MUST(cudaMemcpyFromSymbol(&found, total, sizeof found));
    printf("constant %d\n", found);

    cudaGraph_t graph;
    cudaGraphExec_t runs;
    int one = 1, again = 0;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    MUST(cudaMemcpyToSymbolAsync(total, &one, sizeof one, 0, cudaMemcpyHostToDevice, stream));
    use_symbols<<<1, 4, 0, stream>>>();
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaMemcpyFromSymbol(&found, total, sizeof found)); // as it was: nothing has run
    MUST(cudaGraphInstantiate(&runs, graph, 0));
    MUST(cudaGraphLaunch(runs, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpyFromSymbol(&again, total, sizeof again));
    printf("graph %d %d\n", found, again);
    MUST(cudaGraphExecDestroy(runs));
    MUST(cudaGraphDestroy(graph));

    struct { dim3 grid, block; int shared; } never[] = {
        {1, 4096, 0}, {0, 32, 0}, {dim3(1, 70000), 32, 0}, {1, dim3(1, 1, 65), 0}, {1, 32, 60000}};
    int refused = 0;
    for (auto &shape : never) {
        saxpy<<<shape.grid, shape.block, shape.shared>>>(n, 2.0f, x, y);
        refused += cudaGetLastError() == cudaErrorInvalidValue; // as CUDA 13 says on an H200
    }
    printf("error %d\n", refused);
    MUST(cudaGetLastError());
    MUST(cudaFree(x));
    MUST(cudaFree(y));
    MUST(cudaStreamDestroy(stream));
    free(host);
    return 0;
}
