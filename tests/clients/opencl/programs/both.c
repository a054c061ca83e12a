/* CUDA's driver and OpenCL in one process, and what a child of it sees. */
#include "begin.h"
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    begin();
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    int (*init)(unsigned) = dlsym(cuda, "cuInit");
    int (*retain)(void **, int) = dlsym(cuda, "cuDevicePrimaryCtxRetain");
    int (*set)(void *) = dlsym(cuda, "cuCtxSetCurrent");
    int (*alloc)(unsigned long long *, size_t) = dlsym(cuda, "cuMemAlloc_v2");
    int (*to_host)(void *, unsigned long long, size_t) = dlsym(cuda, "cuMemcpyDtoH_v2");
    int (*to_device)(unsigned long long, const void *, size_t) = dlsym(cuda, "cuMemcpyHtoD_v2");
    void *primary;
    unsigned long long memory;
    int ours[4] = {1, 2, 3, 4}, back[4], cl[4];
    SAME(init(0), 0);
    SAME(retain(&primary, 0), 0);
    SAME(set(primary), 0);
    SAME(alloc(&memory, sizeof ours), 0);
    SAME(to_device(memory, ours, sizeof ours), 0);

    cl_program program = build("__kernel void f(__global int *p) { p[get_global_id(0)] += 10; }", NULL);
    cl_kernel kernel = clCreateKernel(program, "f", &e);
    cl_mem buffer = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof ours, ours, &e);
    size_t size = 4;
    SAME(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), 0);
    SAME(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL), 0);
    SAME(clEnqueueReadBuffer(queue, buffer, 1, 0, sizeof cl, cl, 0, NULL, NULL), 0);
    SAME(to_host(back, memory, sizeof back), 0);
    for (int n = 0; n < 4; ++n) {
        SAME(cl[n], ours[n] + 10);
        SAME(back[n], ours[n]);
    }

    pid_t child = fork();
    if (!child) _exit(clFinish(queue) == CL_DEVICE_NOT_AVAILABLE ? 42 : 1);
    int status;
    waitpid(child, &status, 0);
    SAME(WEXITSTATUS(status), 42);
    return finish(); /* and releases nothing */
}
