/* What every program here begins with: a device, a context, a queue, and checks. */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong;

#define SAME(found, wanted) \
    do { \
        long long f_ = (long long)(found), w_ = (long long)(wanted); \
        if (f_ != w_) { printf("line %d: %s is %lld, not %lld\n", __LINE__, #found, f_, w_); ++wrong; } \
    } while (0)

/* An expression that writes its code to `e`. */
#define GIVES(expression, wanted) \
    do { e = 1; (void)(expression); SAME(e, wanted); } while (0)

static cl_int e;
static cl_platform_id platform;
static cl_device_id device;
static cl_context context;
static cl_command_queue queue;

static void begin(void) {
    SAME(clGetPlatformIDs(1, &platform, NULL), CL_SUCCESS);
    SAME(clGetDeviceIDs(platform, CL_DEVICE_TYPE_GPU, 1, &device, NULL), CL_SUCCESS);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &e);
    SAME(e, CL_SUCCESS);
    queue = clCreateCommandQueueWithProperties(context, device, NULL, &e);
    SAME(e, CL_SUCCESS);
}

static inline cl_program build(const char *source, const char *options) {
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &e);
    e = clBuildProgram(program, 1, &device, options, NULL, NULL);
    if (e) {
        static char log[1 << 16];
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
        printf("%s\n", log);
    }
    return program;
}

static inline int finish(void) {
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
