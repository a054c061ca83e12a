/* References: what is called when objects end, the last one first, and when that is. */
#include "begin.h"

static char order[16];

static void CL_CALLBACK memory_ends(cl_mem object, void *data) { (void)object; strcat(order, data); }
static void CL_CALLBACK context_ends(cl_context object, void *data) { (void)object; strcat(order, data); }

static void native(void *arguments) {
    struct { int *memory; int n; } *given = arguments;
    for (int i = 0; i < given->n; ++i) given->memory[i] = 3 * i;
}

int main(void) {
    begin();
    cl_uint count;
    cl_mem buffer = clCreateBuffer(context, 0, 1024, NULL, &e);
    SAME(clSetMemObjectDestructorCallback(buffer, memory_ends, "a"), 0);
    SAME(clSetMemObjectDestructorCallback(buffer, memory_ends, "b"), 0);
    SAME(clSetContextDestructorCallback(context, context_ends, "c"), 0);
    SAME(clSetContextDestructorCallback(context, context_ends, "d"), 0);
    SAME(clRetainMemObject(buffer), 0);
    SAME(clGetMemObjectInfo(buffer, CL_MEM_REFERENCE_COUNT, sizeof count, &count, NULL), 0);
    SAME(count, 2);
    SAME(clReleaseMemObject(buffer), 0);
    SAME(strcmp(order, ""), 0);

    /* A part keeps the whole. */
    cl_buffer_region region = {512, 64};
    cl_mem part = clCreateSubBuffer(buffer, CL_MEM_READ_ONLY, CL_BUFFER_CREATE_TYPE_REGION, &region, &e);
    SAME(e, 0);
    SAME(clReleaseMemObject(buffer), 0);
    SAME(strcmp(order, ""), 0);

    struct { void *memory; int n; } given = {NULL, 16};
    const void *places[] = {&given.memory};
    int host[16];
    SAME(clEnqueueNativeKernel(queue, native, &given, sizeof given, 1, &part, places, 0, NULL, NULL), 0);
    SAME(clEnqueueReadBuffer(queue, part, 1, 0, 64, host, 0, NULL, NULL), 0);
    for (int n = 0; n < 16; ++n) SAME(host[n], 3 * n);
    SAME(clReleaseMemObject(part), 0);
    SAME(strcmp(order, "ba"), 0);

    /* A queue keeps its context. */
    SAME(clReleaseContext(context), 0);
    SAME(strcmp(order, "ba"), 0);
    SAME(clReleaseCommandQueue(queue), 0);
    SAME(strcmp(order, "badc"), 0);
    return finish();
}
