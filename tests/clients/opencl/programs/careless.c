/* A race in a kernel, wrong calls, and things that are never released. */
#include "begin.h"

int main(void) {
    begin();
    cl_program program = build(
        "__kernel void f(__global int *p)\n"
        "{\n"
        "    p[0] = get_local_id(0);\n"
        "}\n", NULL);
    cl_kernel kernel = clCreateKernel(program, "f", &e);
    cl_mem buffer = clCreateBuffer(context, 0, 256, NULL, &e), gone = clCreateBuffer(context, 0, 64, NULL, &e);
    size_t size = 64;
    char host[512];
    clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
    clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, &size, 0, NULL, NULL);
    clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 512, host, 0, NULL, NULL);
    clReleaseMemObject(gone);
    clReleaseMemObject(gone);
    cl_event user = clCreateUserEvent(context, &e);
    clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, 4, host, 1, &user, NULL);
    return 0;
}
