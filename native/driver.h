/* What libcuda answers without Python: the names of errors, where functions are, and that the process
 * is to end. */

#include <ctype.h>
#include <signal.h>

static int termination_pipe = -1;
static pid_t termination_process;

/* In a forked child, whose parent reads the pipe, the signal does what it does by default. */
static void on_termination(int number) {
    char byte = 0;
    if (getpid() != termination_process || write(termination_pipe, &byte, 1) != 1) {
        signal(number, SIG_DFL);
        raise(number);
    }
}

/* Let SIGTERM write a byte to a pipe, if the program has not said itself what it does; 1 if so. */
int warploom_report_termination(int pipe) {
    struct sigaction now, ours = {.sa_handler = on_termination, .sa_flags = SA_RESTART};
    if (sigaction(SIGTERM, NULL, &now) || now.sa_handler != SIG_DFL) return 0;
    termination_pipe = pipe;
    termination_process = getpid();
    sigemptyset(&ours.sa_mask);
    return sigaction(SIGTERM, &ours, NULL) == 0;
}

static const char *result_name(CUresult code) {
    for (size_t n = 0; n < sizeof results / sizeof *results; ++n)
        if (results[n].code == (int)code) return results[n].name;
    return NULL;
}

CUresult cuGetErrorName(CUresult code, const char **text) {
    if (!text) return CUDA_ERROR_INVALID_VALUE;
    *text = result_name(code);
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Descriptions are the names in words; these are those that say more than their names. */
static const struct { CUresult code; const char *text; } described[] = {
    {CUDA_SUCCESS, "no error"},
    {CUDA_ERROR_INVALID_VALUE, "invalid argument"},
    {CUDA_ERROR_INVALID_CONTEXT, "invalid device context"},
    {CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"},
    {CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"},
    {CUDA_ERROR_NOT_FOUND, "named symbol not found"},
    {CUDA_ERROR_NOT_INITIALIZED, "initialization error"},
    {CUDA_ERROR_DEINITIALIZED, "driver shutting down"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"},
    {CUDA_ERROR_ASSERT, "device-side assert triggered"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"},
    {CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"},
    {CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch"},
    {CUDA_ERROR_NOT_SUPPORTED, "operation not supported"},
    {CUDA_ERROR_NOT_READY, "device not ready"},
    {CUDA_ERROR_UNKNOWN, "unknown error"},
};

/* "CUDA_ERROR_OUT_OF_MEMORY" as "out of memory". */
static void put_in_words(const char *name, char *words, size_t room) {
    static const char prefix[] = "CUDA_ERROR_";
    if (!strncmp(name, prefix, sizeof prefix - 1)) name += sizeof prefix - 1;
    size_t n = 0;
    for (; name[n] && n + 1 < room; ++n)
        words[n] = name[n] == '_' ? ' ' : (char)tolower((unsigned char)name[n]);
    words[n] = 0;
}

CUresult cuGetErrorString(CUresult code, const char **text) {
    static char words[sizeof results / sizeof *results][80];
    if (!text) return CUDA_ERROR_INVALID_VALUE;
    *text = NULL;
    for (size_t n = 0; n < sizeof described / sizeof *described; ++n)
        if (described[n].code == code) {
            *text = described[n].text;
            return CUDA_SUCCESS;
        }
    for (size_t n = 0; n < sizeof results / sizeof *results; ++n)
        if (results[n].code == (int)code) {
            put_in_words(results[n].name, words[n], sizeof words[n]);
            *text = words[n];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

/* The newest function of that name which `version` has, as the CUDA driver chooses. */
static const entry *address_of(const char *name, int version, int per_thread) {
    const entry *best = NULL;
    for (size_t n = 0; n < sizeof addresses / sizeof *addresses; ++n) {
        const entry *one = &addresses[n];
        if (one->version > version || one->per_thread > per_thread || strcmp(one->name, name))
            continue;
        if (!best || one->per_thread > best->per_thread ||
            (one->per_thread == best->per_thread && one->version > best->version))
            best = one;
    }
    return best;
}

static int is_known(const char *name) {
    return address_of(name, 1 << 30, 1) != NULL;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status) {
    if (!symbol || !function) return CUDA_ERROR_INVALID_VALUE;
    int per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    const entry *found = address_of(symbol, version, per_thread);
    /* A function that came with a later version is no error: there is none for this one. */
    int newer = !found && is_known(symbol);
    *function = found ? found->address : NULL;
    if (status)
        *status = found ? CU_GET_PROC_ADDRESS_SUCCESS
                  : newer ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                          : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return found || newer || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags) {
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
