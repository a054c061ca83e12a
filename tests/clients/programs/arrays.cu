// Copies to, from and between CUDA arrays: stretches that cross rows, and rows; boxes, in a graph.
#include <cstring>

#include "must.h"

enum { WIDTH = 8, HEIGHT = 4, COUNT = WIDTH * HEIGHT };

// Adds a copy of a row of COUNT floats behind another node, if there is one.
static cudaGraphNode_t add_copy(cudaGraph_t graph, cudaGraphNode_t *before, void *from, void *to)
{
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(from, COUNT * sizeof(float), COUNT, 1);
    copy.dstPtr = make_cudaPitchedPtr(to, COUNT * sizeof(float), COUNT, 1);
    copy.extent = make_cudaExtent(COUNT * sizeof(float), 1, 1);
    copy.kind = cudaMemcpyDefault;
    cudaGraphNode_t node = nullptr;
    cudaGraphAddMemcpyNode(&node, graph, before, before ? 1 : 0, &copy);
    return node;
}

int main()
{
    float given[COUNT], found[COUNT];
    for (int i = 0; i < COUNT; ++i) given[i] = i;
    cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>(), told;
    cudaArray_t first, second;
    MUST(cudaMallocArray(&first, &floats, WIDTH, HEIGHT));
    MUST(cudaMallocArray(&second, &floats, WIDTH, HEIGHT));
    cudaExtent extent;
    unsigned flags;
    MUST(cudaArrayGetInfo(&told, &extent, &flags, first));
    printf("info %d %d %zu %zu %zu %u\n", told.x, told.f == cudaChannelFormatKindFloat,
           extent.width, extent.height, extent.depth, flags);

    MUST(cudaMemcpyToArray(first, 0, 0, given, sizeof given, cudaMemcpyHostToDevice));
    MUST(cudaMemcpyFromArray(found, first, 4 * sizeof(float), 1, 8 * sizeof(float),
                             cudaMemcpyDeviceToHost)); // ends in the middle of row 2
    printf("stretch %g %g\n", found[0], found[7]);
    int past = cudaMemcpyFromArray(found, first, 4, 3, 8 * sizeof(float), cudaMemcpyDeviceToHost);
    printf("past the end %d\n", past == cudaErrorInvalidValue);
    cudaGetLastError();

    cudaStream_t stream;
    MUST(cudaStreamCreate(&stream));
    MUST(cudaMemcpyArrayToArray(second, 0, 0, first, 0, 1, 3 * WIDTH * sizeof(float)));
    MUST(cudaMemcpy2DArrayToArray(second, 4, 3, first, 8, 0, 2 * sizeof(float), 1));
    memset(found, 0, sizeof found);
    MUST(cudaMemcpyFromArrayAsync(found, second, 0, 0, sizeof found, cudaMemcpyDeviceToHost,
                                  stream));
    MUST(cudaStreamSynchronize(stream));
    printf("arrays %g %g %g %g\n", found[0], found[3 * WIDTH - 1], found[3 * WIDTH + 1],
           found[3 * WIDTH + 2]);

    float column[HEIGHT];
    MUST(cudaMemcpy2DFromArray(column, sizeof(float), first, 2 * sizeof(float), 0, sizeof(float),
                               HEIGHT, cudaMemcpyDeviceToHost));
    printf("column %g %g\n", column[0], column[3]);

    float *there, *again;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    MUST(cudaMalloc(&there, sizeof given));
    MUST(cudaMalloc(&again, sizeof given));
    MUST(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t in = add_copy(graph, nullptr, given, there);
    cudaGraphNode_t on = add_copy(graph, &in, there, again);
    cudaGraphNode_t out = add_copy(graph, &on, again, found);
    MUST(out ? cudaGraphInstantiate(&ready, graph, 0) : cudaGetLastError());
    for (int round = 1; round < 3; ++round) {
        given[0] = round, found[0] = found[COUNT - 1] = -1;
        MUST(cudaGraphLaunch(ready, stream));
        MUST(cudaStreamSynchronize(stream));
        printf("graph %g %g\n", found[0], found[COUNT - 1]);
    }
    MUST(cudaFreeArray(first));
    MUST(cudaFreeArray(second));
    return 0;
}
