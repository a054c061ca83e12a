/* Two queues without an event between them, and a buffer that nothing has written. */
#include "begin.h"

int main(int count, char **arguments) {
    begin();
    int ordered = count > 1;
    (void)arguments;
    cl_program program = build(
        "__kernel void fill(__global int *p) { p[get_global_id(0)] = 1; }\n"
        "__kernel void copy(__global const int *p, __global int *q)\n"
        "{\n"
        "    q[get_global_id(0)] = p[get_global_id(0)];\n"
        "}\n", NULL);
    cl_kernel fill = clCreateKernel(program, "fill", &e), copy = clCreateKernel(program, "copy", &e);
    cl_command_queue other = clCreateCommandQueueWithProperties(context, device, NULL, &e);
    cl_mem p = clCreateBuffer(context, 0, 256, NULL, &e), q = clCreateBuffer(context, 0, 256, NULL, &e);
    size_t size = 64;
    cl_event event;
    clSetKernelArg(fill, 0, sizeof p, &p);
    clSetKernelArg(copy, 0, sizeof p, &p);
    clSetKernelArg(copy, 1, sizeof q, &q);
    if (!ordered) /* reads what nothing has written */
        clEnqueueNDRangeKernel(queue, copy, 1, NULL, &size, NULL, 0, NULL, NULL);
    clEnqueueNDRangeKernel(queue, fill, 1, NULL, &size, NULL, 0, NULL, &event);
    clEnqueueNDRangeKernel(other, copy, 1, NULL, &size, NULL, ordered, ordered ? &event : NULL, NULL);
    clFinish(queue), clFinish(other);
    clReleaseEvent(event), clReleaseKernel(fill), clReleaseKernel(copy), clReleaseProgram(program);
    clReleaseMemObject(p), clReleaseMemObject(q);
    clReleaseCommandQueue(queue), clReleaseCommandQueue(other), clReleaseContext(context);
    return 0;
}
