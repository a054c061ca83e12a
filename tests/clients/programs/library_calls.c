/* A library with machine code for GPUs in it, which is built under the names of NVIDIA's. */
#include <stdint.h>

int cuInit(unsigned flags);
int cuGetExportTable(const void **table, const void *identity);
int cudaLibraryLoadData(void **library, const void *code, void *, void *, unsigned, void *, void *,
                        unsigned);

/* An ELF header's first word, and no kernels. */
static const uint32_t machine_code[16] = {0x464c457f};

/* As a library does that has a CUDA runtime linked into it. */
int asks_for_tables(void) {
    const void *table;
    return cuInit(0) ? -1 : cuGetExportTable(&table, "0123456789abcdef");
}

/* As one does that uses the program's. */
int loads_kernels(void) {
    void *library;
    return cudaLibraryLoadData(&library, machine_code, 0, 0, 0, 0, 0, 0);
}
