/* A kernel that reaches beyond its buffer ends its context, and no more. */
#include "begin.h"

static int heard;

static void CL_CALLBACK hear(const char *text, const void *data, size_t size, void *user) {
    (void)data, (void)size, (void)user;
    heard += strstr(text, "beyond") != NULL || strlen(text) > 0;
}

int main(void) {
    begin();
    cl_context other = clCreateContext(NULL, 1, &device, hear, NULL, &e);
    cl_command_queue in_other = clCreateCommandQueueWithProperties(other, device, NULL, &e);
    cl_context kept = context;
    context = other;
    cl_program program = build("__kernel void f(__global int *p, int n) { p[n] = 1; }", NULL);
    context = kept;
    cl_kernel kernel = clCreateKernel(program, "f", &e);
    cl_mem buffer = clCreateBuffer(other, 0, 64, NULL, &e);
    size_t size = 1;
    int n = 16;
    cl_event event;
    SAME(clSetKernelArg(kernel, 0, 8, &buffer), 0);
    SAME(clSetKernelArg(kernel, 1, 4, &n), 0);
    SAME(clEnqueueNDRangeKernel(in_other, kernel, 1, NULL, &size, NULL, 0, NULL, &event), 0);
    SAME(clFinish(in_other), CL_OUT_OF_RESOURCES);
    SAME(clEnqueueReadBuffer(in_other, buffer, 1, 0, 4, &n, 0, NULL, NULL), CL_OUT_OF_RESOURCES);
    SAME(clWaitForEvents(1, &event) < 0, 1);
    SAME(heard, 1);
    buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, 4, &n, &e);
    int back = 0;
    SAME(clEnqueueReadBuffer(queue, buffer, 1, 0, 4, &back, 0, NULL, NULL), 0);
    SAME(back, 16);
    return finish();
}
