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

void *clGetExtensionFunctionAddress(void *name) {
    if (name && !strcmp(name, "clIcdGetPlatformIDsKHR")) return (void *)clGetPlatformIDs;
    return opencl_function(name);
}

void *clGetExtensionFunctionAddressForPlatform(void *platform, void *name) {
    return clGetExtensionFunctionAddress(name);
}

int32_t clIcdGetPlatformIDsKHR(uint32_t count, void *platforms, void *number) {
    return clGetPlatformIDs(count, platforms, number);
}
