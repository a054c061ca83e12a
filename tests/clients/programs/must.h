// A call that must succeed, or the program ends.
#include <cstdio>

#define MUST(call)                                                                  \
    do {                                                                            \
        cudaError_t error = (call);                                                 \
        if (error != cudaSuccess) {                                                 \
            printf("%s: %s\n", #call, cudaGetErrorString(error));                   \
            return 1;                                                               \
        }                                                                           \
    } while (0)
