/* What libcudart answers without Python: the names of errors, what a texel is, where the driver's
 * functions are, and what nvcc's code registers. */

#include <ctype.h>

#include "registration.h"

const char *cudaGetErrorName(cudaError_t code) {
    for (size_t n = 0; n < sizeof results / sizeof *results; ++n)
        if (results[n].code == (int)code) return results[n].name;
    return "unrecognized error code";
}

/* Descriptions are the names in words; these are those that say more than their names. */
static const struct { int code; const char *text; } described[] = {
    {0, "no error"},
    {1, "invalid argument"},
    {2, "out of memory"},
    {3, "initialization error"},
    {9, "invalid configuration argument"},
    {98, "invalid device function"},
    {100, "no CUDA-capable device is detected"},
    {101, "invalid device ordinal"},
    {209, "no kernel image is available for execution on the device"},
    {218, "a PTX JIT compilation failed"},
    {400, "invalid resource handle"},
    {500, "named symbol not found"},
    {700, "an illegal memory access was encountered"},
    {701, "too many resources requested for launch"},
    {702, "the launch timed out and was terminated"},
    {710, "device-side assert triggered"},
    {716, "misaligned address"},
    {719, "unspecified launch failure"},
    {720, "too many blocks in cooperative launch"},
    {801, "operation not supported"},
};

/* "cudaErrorMissingConfiguration" as "missing configuration". */
static void put_in_words(const char *name, char *words, size_t room) {
    static const char prefix[] = "cudaError";
    if (!strncmp(name, prefix, sizeof prefix - 1)) name += sizeof prefix - 1;
    size_t n = 0;
    for (; *name && n + 2 < room; ++name) {
        if (n && isupper((unsigned char)*name)) words[n++] = ' ';
        words[n++] = (char)tolower((unsigned char)*name);
    }
    words[n] = 0;
}

const char *cudaGetErrorString(cudaError_t code) {
    static char words[sizeof results / sizeof *results][80];
    for (size_t n = 0; n < sizeof described / sizeof *described; ++n)
        if (described[n].code == (int)code) return described[n].text;
    for (size_t n = 0; n < sizeof results / sizeof *results; ++n)
        if (results[n].code == (int)code) {
            put_in_words(results[n].name, words[n], sizeof words[n]);
            return words[n];
        }
    return "unrecognized error code";
}

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                   enum cudaChannelFormatKind kind) {
    struct cudaChannelFormatDesc made = {x, y, z, w, kind};
    return made;
}

/* There is one device, which programs ask for at each step. */
cudaError_t cudaGetDevice(int *device) {
    if (atomic_load(&bridge_is_child)) return cudaErrorInitializationError;
    if (!device) return cudaErrorInvalidValue;
    *device = 0;
    return cudaSuccess;
}

/* Where a function of the driver is; the driver's flags and states have the runtime's numbers. */
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *status) {
    typedef int (*get_address)(const char *, void **, int, uint64_t, int *);
    if (!symbol || !function) return cudaErrorInvalidValue;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    get_address get = driver ? (get_address)dlsym(driver, "cuGetProcAddress_v2") : NULL;
    if (!get) return cudaErrorInsufficientDriver;
    int state = 0;
    int code = get(symbol, function, (int)version, flags, &state);
    if (status) *status = (enum cudaDriverEntryPointQueryResult)state;
    return (cudaError_t)code;
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status) {
    return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, status);
}

/* In a program whose threads have default streams of their own, so have the driver's functions. */
static unsigned long long per_thread(unsigned long long flags) {
    return flags == cudaEnableDefault ? cudaEnablePerThreadDefaultStream : flags;
}

cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function,
                                                  unsigned version, unsigned long long flags,
                                                  enum cudaDriverEntryPointQueryResult *status) {
    return cudaGetDriverEntryPointByVersion(symbol, function, version, per_thread(flags), status);
}

cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function,
                                         unsigned long long flags,
                                         enum cudaDriverEntryPointQueryResult *status) {
    return cudaGetDriverEntryPoint(symbol, function, per_thread(flags), status);
}
