/* What a loader with a table of its own does (cl_khr_icd 2.0). */
#include "begin.h"

#define TAG 0x4F50454E434C3331

typedef struct { void **table; void *data; } head;
typedef void *(*find)(cl_platform_id, const char *);
typedef cl_int (*set)(cl_platform_id, void *);

int main(void) {
    begin();
    void **table = ((head *)platform)->table;
    SAME(table[0], TAG);  /* clGetPlatformIDs */
    SAME(table[31], TAG); /* clUnloadCompiler */
    find found = (find)clGetExtensionFunctionAddressForPlatform(
        platform, "clIcdGetFunctionAddressForPlatformKHR");
    set data = (set)clGetExtensionFunctionAddressForPlatform(
        platform, "clIcdSetPlatformDispatchDataKHR");
    SAME(found && data, 1);
    SAME(found(platform, "clGetPlatformInfo"), table[1]);
    SAME(found(platform, "clGetExtensionFunctionAddressForPlatform") != NULL, 1);
    void *unload = found(platform, "clUnloadCompiler");
    SAME(unload != NULL && unload != (void *)TAG, 1);
    SAME(found(platform, "clNothing"), 0);
    SAME(found(NULL, "clGetPlatformInfo"), 0);
    SAME(data(NULL, table), CL_INVALID_PLATFORM);

    static int own;
    SAME(data(platform, &own), CL_SUCCESS);
    SAME(((head *)platform)->data, &own);
    cl_mem buffer = clCreateBuffer(context, 0, 16, NULL, &e);
    SAME(e, CL_SUCCESS);
    SAME(((head *)buffer)->table, table);
    SAME(((head *)buffer)->data, &own);
    clReleaseMemObject(buffer);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return finish();
}
