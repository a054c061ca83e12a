/* What the OpenCL library answers without Python, and how a result becomes what the function gives.
 *
 * Python gives a handle as its address, and an error as its negative code: no address is one. */

#define OPENCL_LOWEST_CODE -10000

/* The address that a function gives, with the error code written where the caller wants it. Python
 * writes a code itself where a call fails and gives an object all the same. */
static void *opencl_handle(int32_t index, const int64_t *given, int32_t *code) {
    if (code) *code = 0;
    int64_t result = bridge_call(index, given);
    int is_error = result < 0 && result > OPENCL_LOWEST_CODE;
    if (code && is_error) *code = (int32_t)result;
    return is_error ? NULL : (void *)result;
}

/* A function by its name, as loaders and programs look it up. */
static void *opencl_function(const char *name) {
    if (!name) return NULL;
    for (size_t n = 0; n < sizeof names / sizeof *names; ++n)
        if (!strcmp(name, names[n])) return functions[n];
    return NULL;
}

int32_t clIcdSetPlatformDispatchDataKHR(void *platform, void *data);
void *clIcdGetFunctionAddressForPlatformKHR(void *platform, void *name);

void *clGetExtensionFunctionAddress(void *name) {
    static const struct { const char *name; void *function; } own[] = {
        {"clIcdGetPlatformIDsKHR", (void *)clGetPlatformIDs},
        {"clIcdGetFunctionAddressForPlatformKHR", (void *)clIcdGetFunctionAddressForPlatformKHR},
        {"clIcdSetPlatformDispatchDataKHR", (void *)clIcdSetPlatformDispatchDataKHR},
        {"clGetExtensionFunctionAddress", (void *)clGetExtensionFunctionAddress},
        {"clGetExtensionFunctionAddressForPlatform",
         (void *)clGetExtensionFunctionAddressForPlatform},
    };
    for (size_t n = 0; name && n < sizeof own / sizeof *own; ++n)
        if (!strcmp(name, own[n].name)) return own[n].function;
    return opencl_function(name);
}

void *clGetExtensionFunctionAddressForPlatform(void *platform, void *name) {
    return clGetExtensionFunctionAddress(name);
}

/* cl_khr_icd 2.0: a loader has a table of its own, whose address is the second word of objects. */

#define OPENCL_INVALID_PLATFORM -32
#define OPENCL_PROFILE 0x0900

void *warploom_opencl_data; /* the second word of new objects */

static int is_platform(void *platform) {
    return platform && clGetPlatformInfo(platform, OPENCL_PROFILE, 0, NULL, NULL) == 0;
}

void *clIcdGetFunctionAddressForPlatformKHR(void *platform, void *name) {
    return is_platform(platform) ? clGetExtensionFunctionAddress(name) : NULL;
}

int32_t clIcdSetPlatformDispatchDataKHR(void *platform, void *data) {
    if (!is_platform(platform)) return OPENCL_INVALID_PLATFORM;
    warploom_opencl_data = data;
    ((void **)platform)[1] = data;
    return 0;
}

int32_t clIcdGetPlatformIDsKHR(uint32_t count, void *platforms, void *number) {
    return clGetPlatformIDs(count, platforms, number);
}
