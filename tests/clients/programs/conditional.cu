// Conditional nodes of graphs: bodies that kernels choose with cudaGraphSetConditional.
#include "must.h"

__global__ void count_down(cudaGraphConditionalHandle handle, int *left, int *rounds)
{
    *rounds += 1;
    cudaGraphSetConditional(handle, --*left > 0);
}

__global__ void choose(cudaGraphConditionalHandle handle, unsigned value)
{
    cudaGraphSetConditional(handle, value);
}

__global__ void note(int *where, int value) { *where = value; }

static cudaGraphNode_t add_kernel(cudaGraph_t graph, cudaGraphNode_t *before, void *kernel,
                                  void **arguments)
{
    cudaGraphNodeParams given = {cudaGraphNodeTypeKernel};
    given.kernel.func = kernel;
    given.kernel.gridDim = given.kernel.blockDim = dim3(1);
    given.kernel.kernelParams = arguments;
    cudaGraphNode_t node = nullptr;
    cudaGraphAddNode(&node, graph, before, nullptr, before ? 1 : 0, &given);
    return node;
}

static cudaGraph_t *add_conditional(cudaGraph_t graph, cudaGraphNode_t *before,
                                    cudaGraphConditionalHandle handle,
                                    cudaGraphConditionalNodeType type, unsigned size)
{
    cudaGraphNodeParams given = {cudaGraphNodeTypeConditional};
    given.conditional.handle = handle;
    given.conditional.type = type;
    given.conditional.size = size;
    cudaGraphNode_t node;
    cudaError_t error = cudaGraphAddNode(&node, graph, before, nullptr, before ? 1 : 0, &given);
    return error ? nullptr : given.conditional.phGraph_out;
}

int main()
{
    int *left, *rounds, *taken, five = 5;
    MUST(cudaMallocManaged(&left, sizeof(int)));
    MUST(cudaMallocManaged(&rounds, sizeof(int)));
    MUST(cudaMallocManaged(&taken, sizeof(int)));
    *left = five, *rounds = 0, *taken = -1;

    // WHILE, begun by its default value; then SWITCH and IF with an else, by what a kernel sets.
    cudaGraph_t graph;
    MUST(cudaGraphCreate(&graph, 0));
    cudaGraphConditionalHandle loops, cases, either;
    MUST(cudaGraphConditionalHandleCreate(&loops, graph, 1, cudaGraphCondAssignDefault));
    MUST(cudaGraphConditionalHandleCreate(&cases, graph, 0, 0));
    MUST(cudaGraphConditionalHandleCreate(&either, graph, 0, cudaGraphCondAssignDefault));
    cudaGraph_t *body = add_conditional(graph, nullptr, loops, cudaGraphCondTypeWhile, 1);
    if (!body) return 2;
    void *counts[] = {&loops, &left, &rounds};
    add_kernel(*body, nullptr, (void *)count_down, counts);

    unsigned second = 1;
    void *chooses[] = {&cases, &second};
    cudaGraphNode_t chosen = add_kernel(graph, nullptr, (void *)choose, chooses);
    cudaGraph_t *bodies = add_conditional(graph, &chosen, cases, cudaGraphCondTypeSwitch, 3);
    if (!bodies) return 3;
    for (int i = 0; i < 3; ++i) {
        int value = 10 * i;
        void *notes[] = {&taken, &value};
        add_kernel(bodies[i], nullptr, (void *)note, notes);
    }
    int *otherwise;
    MUST(cudaMallocManaged(&otherwise, sizeof(int)));
    *otherwise = 0;
    cudaGraph_t *sides = add_conditional(graph, nullptr, either, cudaGraphCondTypeIf, 2);
    if (!sides) return 4;
    int minus = -7;
    void *notes[] = {&otherwise, &minus};
    add_kernel(sides[1], nullptr, (void *)note, notes);

    cudaGraphExec_t runs;
    MUST(cudaGraphInstantiate(&runs, graph, 0));
    MUST(cudaGraphLaunch(runs, 0));
    MUST(cudaDeviceSynchronize());
    printf("%d %d %d %d\n", *rounds, *left, *taken, *otherwise);
    *left = 2;
    MUST(cudaGraphLaunch(runs, 0)); // the default value lets the loop begin again
    MUST(cudaDeviceSynchronize());
    printf("%d\n", *rounds);
    return add_conditional(graph, nullptr, loops, cudaGraphCondTypeWhile, 2) ? 5 : 0;
}
