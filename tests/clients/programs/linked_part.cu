// The other object file of linked_main.cu.
#include "must.h"

__device__ int calls;
__constant__ float factors[2];
__device__ float scaled(float x) { return factors[0] * x; }

void set_factors()
{
    float given[2] = {2, 100};
    cudaMemcpyToSymbol(factors, given, sizeof given);
}

int count_calls()
{
    int found = -1;
    cudaMemcpyFromSymbol(&found, calls, sizeof found);
    return found;
}
