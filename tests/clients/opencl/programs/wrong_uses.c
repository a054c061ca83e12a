/* Wrong uses of the API, each with the code that the specification names; none ends the process. */
#include "begin.h"

static const char source[] =
    "__kernel void f(__global int *p, int n, __local int *l, float4 v) { p[get_global_id(0)] = n; }\n"
    "__kernel __attribute__((reqd_work_group_size(8, 1, 1))) void r(__global int *p) { p[0] = 1; }\n";

static void check_contexts(void) {
    cl_context_properties twice[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)platform,
                                     CL_CONTEXT_PLATFORM, (cl_context_properties)platform, 0};
    cl_uint number;
    SAME(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, NULL), CL_DEVICE_NOT_FOUND);
    SAME(clGetDeviceIDs(platform, 1 << 20, 1, &device, NULL), CL_INVALID_DEVICE_TYPE);
    SAME(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, &device, &number), CL_INVALID_VALUE);
    SAME(clGetDeviceInfo(device, 0x9999, 0, NULL, NULL), CL_INVALID_VALUE);
    SAME(clGetDeviceInfo(device, CL_DEVICE_NAME, 1, &number, NULL), CL_INVALID_VALUE);
    GIVES(clCreateContext(NULL, 0, &device, NULL, NULL, &e), CL_INVALID_VALUE);
    GIVES(clCreateContext(NULL, 1, &device, NULL, &number, &e), CL_INVALID_VALUE);
    GIVES(clCreateContext(twice, 1, &device, NULL, NULL, &e), CL_INVALID_PROPERTY);
    GIVES(clCreateContextFromType(NULL, CL_DEVICE_TYPE_CPU, NULL, NULL, &e), CL_DEVICE_NOT_FOUND);
    GIVES(clCreateCommandQueue(context, device, 1 << 10, &e), CL_INVALID_VALUE);
    GIVES(clCreateCommandQueue(context, device, CL_QUEUE_ON_DEVICE, &e), CL_INVALID_QUEUE_PROPERTIES);
}

static void check_memory(void) {
    char host[64];
    size_t most, origin[3] = {0, 0, 0}, region[3] = {8, 1, 1}, none[3] = {0, 1, 1};
    cl_buffer_region part = {8, 8}, beyond = {512, 1024}, empty = {0, 0};
    SAME(clGetDeviceInfo(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof most, &most, NULL), CL_SUCCESS);
    GIVES(clCreateBuffer(context, 0, 0, NULL, &e), CL_INVALID_BUFFER_SIZE);
    GIVES(clCreateBuffer(context, 0, most + 1, NULL, &e), CL_INVALID_BUFFER_SIZE);
    GIVES(clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 8, NULL, &e), CL_INVALID_VALUE);
    GIVES(clCreateBuffer(context, CL_MEM_USE_HOST_PTR, 8, NULL, &e), CL_INVALID_HOST_PTR);
    GIVES(clCreateBuffer(context, 0, 8, host, &e), CL_INVALID_HOST_PTR);
    GIVES(clCreateBuffer(context, CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR, 8, host, &e), CL_INVALID_VALUE);
    cl_mem buffer = clCreateBuffer(context, 0, 1024, NULL, &e);
    cl_mem unread = clCreateBuffer(context, CL_MEM_HOST_WRITE_ONLY, 64, NULL, &e);
    GIVES(clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &part, &e), CL_MISALIGNED_SUB_BUFFER_OFFSET);
    GIVES(clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &beyond, &e), CL_INVALID_VALUE);
    GIVES(clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &empty, &e), CL_INVALID_BUFFER_SIZE);
    SAME(clEnqueueReadBuffer(queue, buffer, 1, 1000, 64, host, 0, NULL, NULL), CL_INVALID_VALUE);
    SAME(clEnqueueReadBuffer(queue, buffer, 1, 0, 64, NULL, 0, NULL, NULL), CL_INVALID_VALUE);
    SAME(clEnqueueReadBuffer(queue, unread, 1, 0, 64, host, 0, NULL, NULL), CL_INVALID_OPERATION);
    SAME(clEnqueueReadBuffer(queue, (cl_mem)queue, 1, 0, 64, host, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
    SAME(clEnqueueReadBuffer(queue, buffer, 1, 0, 64, host, 1, NULL, NULL), CL_INVALID_EVENT_WAIT_LIST);
    SAME(clEnqueueCopyBuffer(queue, buffer, buffer, 0, 32, 64, 0, NULL, NULL), CL_MEM_COPY_OVERLAP);
    SAME(clEnqueueFillBuffer(queue, buffer, host, 3, 0, 12, 0, NULL, NULL), CL_INVALID_VALUE);
    SAME(clEnqueueFillBuffer(queue, buffer, host, 4, 2, 8, 0, NULL, NULL), CL_INVALID_VALUE);
    SAME(clEnqueueReadBufferRect(queue, buffer, 1, origin, origin, none, 0, 0, 0, 0, host, 0, NULL, NULL), CL_INVALID_VALUE);
    SAME(clEnqueueReadBufferRect(queue, buffer, 1, origin, origin, region, 4, 0, 0, 0, host, 0, NULL, NULL), CL_INVALID_VALUE);
    SAME(clEnqueueUnmapMemObject(queue, buffer, host, 0, NULL, NULL), CL_INVALID_VALUE);
    GIVES(clCreatePipe(context, 0, 4, 4, NULL, &e), CL_INVALID_OPERATION);
    SAME(clReleaseMemObject(unread), CL_SUCCESS);
    SAME(clRetainMemObject(unread), CL_INVALID_MEM_OBJECT);
    SAME(clReleaseMemObject(buffer), CL_SUCCESS);
}

static void check_images(void) {
    cl_image_format good = {CL_RGBA, CL_UNORM_INT8}, odd = {CL_INTENSITY, CL_SIGNED_INT32};
    cl_image_format packed = {CL_RGB, CL_UNORM_SHORT_565};
    cl_image_desc flat = {CL_MEM_OBJECT_IMAGE2D, 8, 8}, wide = {CL_MEM_OBJECT_IMAGE2D, 1 << 20, 8};
    cl_image_desc none = {CL_MEM_OBJECT_BUFFER, 8, 8};
    size_t origin[3] = {4, 0, 0}, region[3] = {8, 8, 1};
    char host[256];
    GIVES(clCreateImage(context, 0, NULL, &flat, NULL, &e), CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
    GIVES(clCreateImage(context, 0, &odd, &flat, NULL, &e), CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
    GIVES(clCreateImage(context, 0, &packed, &flat, NULL, &e), CL_IMAGE_FORMAT_NOT_SUPPORTED);
    GIVES(clCreateImage(context, 0, &good, &none, NULL, &e), CL_INVALID_IMAGE_DESCRIPTOR);
    GIVES(clCreateImage(context, 0, &good, &wide, NULL, &e), CL_INVALID_IMAGE_SIZE);
    cl_mem image = clCreateImage(context, 0, &good, &flat, NULL, &e);
    SAME(clEnqueueReadImage(queue, image, 1, origin, region, 0, 0, host, 0, NULL, NULL), CL_INVALID_VALUE);
    SAME(clEnqueueReadBuffer(queue, image, 1, 0, 64, host, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
    GIVES(clCreateSampler(context, CL_FALSE, CL_ADDRESS_REPEAT, CL_FILTER_NEAREST, &e), CL_INVALID_VALUE);
    SAME(clReleaseMemObject(image), CL_SUCCESS);
}

static void check_programs(void) {
    const char *broken = "__kernel void f( {", *undefined = "int g(int); __kernel void f(__global int *p) { *p = g(1); }";
    const char *text = source;
    const unsigned char *binary = (const unsigned char *)"no program";
    size_t length = 10;
    cl_kernel kernel;
    cl_build_status status;
    GIVES(clCreateProgramWithSource(context, 0, &text, NULL, &e), CL_INVALID_VALUE);
    GIVES(clCreateProgramWithBinary(context, 1, &device, &length, &binary, NULL, &e), CL_INVALID_BINARY);
    GIVES(clCreateProgramWithIL(context, binary, length, &e), CL_INVALID_OPERATION);
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &e);
    GIVES(clCreateKernel(program, "f", &e), CL_INVALID_PROGRAM_EXECUTABLE);
    SAME(clBuildProgram(program, 1, &device, "-nonsense", NULL, NULL), CL_INVALID_BUILD_OPTIONS);
    SAME(clCompileProgram(program, 1, &device, "-nonsense", 0, NULL, NULL, NULL, NULL), CL_INVALID_COMPILER_OPTIONS);
    GIVES(clLinkProgram(context, 1, &device, NULL, 1, &program, NULL, NULL, &e), CL_INVALID_OPERATION);
    SAME(clBuildProgram(program, 1, &device, NULL, NULL, NULL), CL_SUCCESS);
    GIVES(clCreateKernel(program, "nothing", &e), CL_INVALID_KERNEL_NAME);
    kernel = clCreateKernel(program, "f", &e);
    SAME(clBuildProgram(program, 1, &device, NULL, NULL, NULL), CL_INVALID_OPERATION);
    SAME(clGetKernelArgInfo(kernel, 0, CL_KERNEL_ARG_NAME, 0, NULL, &length), CL_KERNEL_ARG_INFO_NOT_AVAILABLE);
    clReleaseKernel(kernel);
    cl_program bad = clCreateProgramWithSource(context, 1, &broken, NULL, &e);
    SAME(clBuildProgram(bad, 1, &device, NULL, NULL, NULL), CL_BUILD_PROGRAM_FAILURE);
    SAME(clGetProgramBuildInfo(bad, device, CL_PROGRAM_BUILD_STATUS, sizeof status, &status, NULL), CL_SUCCESS);
    SAME(status, CL_BUILD_ERROR);
    cl_program open = clCreateProgramWithSource(context, 1, &undefined, NULL, &e);
    SAME(clBuildProgram(open, 1, &device, NULL, NULL, NULL), CL_BUILD_PROGRAM_FAILURE);
    clReleaseProgram(program);
    clReleaseProgram(bad);
    clReleaseProgram(open);
}

static void check_kernels(void) {
    size_t sizes[3] = {64, 1, 1}, local[3] = {32, 1, 1}, uneven[3] = {48, 1, 1}, huge[3] = {2048, 1, 1};
    int n = 1;
    cl_float4 v;
    cl_program program = build(source, NULL);
    cl_kernel f = clCreateKernel(program, "f", &e), r = clCreateKernel(program, "r", &e);
    cl_mem buffer = clCreateBuffer(context, 0, 4096, NULL, &e);
    SAME(clSetKernelArg(f, 9, 4, &n), CL_INVALID_ARG_INDEX);
    SAME(clSetKernelArg(f, 0, 4, &buffer), CL_INVALID_ARG_SIZE);
    SAME(clSetKernelArg(f, 0, 8, &queue), CL_INVALID_MEM_OBJECT);
    SAME(clSetKernelArg(f, 1, 8, &v), CL_INVALID_ARG_SIZE);
    SAME(clSetKernelArg(f, 1, 4, NULL), CL_INVALID_ARG_VALUE);
    SAME(clSetKernelArg(f, 2, 16, &n), CL_INVALID_ARG_VALUE);
    SAME(clSetKernelArg(f, 2, 0, NULL), CL_INVALID_ARG_SIZE);
    SAME(clSetKernelArg(f, 0, 8, &buffer), CL_SUCCESS);
    SAME(clEnqueueNDRangeKernel(queue, f, 1, NULL, sizes, local, 0, NULL, NULL), CL_INVALID_KERNEL_ARGS);
    SAME(clSetKernelArg(f, 1, 4, &n), CL_SUCCESS);
    SAME(clSetKernelArg(f, 2, 64, NULL), CL_SUCCESS);
    SAME(clSetKernelArg(f, 3, 16, &v), CL_SUCCESS);
    SAME(clEnqueueNDRangeKernel(queue, f, 4, NULL, sizes, local, 0, NULL, NULL), CL_INVALID_WORK_DIMENSION);
    SAME(clEnqueueNDRangeKernel(queue, f, 1, NULL, NULL, local, 0, NULL, NULL), CL_SUCCESS);
    SAME(clEnqueueNDRangeKernel(queue, f, 1, NULL, uneven, local, 0, NULL, NULL), CL_INVALID_WORK_GROUP_SIZE);
    SAME(clEnqueueNDRangeKernel(queue, f, 1, NULL, huge, huge, 0, NULL, NULL), CL_INVALID_WORK_ITEM_SIZE);
    SAME(clEnqueueNDRangeKernel(queue, f, 1, NULL, sizes, local, 0, NULL, NULL), CL_SUCCESS);
    SAME(clSetKernelArg(f, 2, 1 << 20, NULL), CL_SUCCESS);
    SAME(clEnqueueNDRangeKernel(queue, f, 1, NULL, sizes, local, 0, NULL, NULL), CL_OUT_OF_RESOURCES);
    SAME(clSetKernelArg(r, 0, 8, &buffer), CL_SUCCESS);
    SAME(clEnqueueNDRangeKernel(queue, r, 1, NULL, sizes, local, 0, NULL, NULL), CL_INVALID_WORK_GROUP_SIZE);
    SAME(clSetKernelArg(f, 2, 64, NULL), CL_SUCCESS);
    SAME(clReleaseMemObject(buffer), CL_SUCCESS);
    SAME(clEnqueueNDRangeKernel(queue, f, 1, NULL, sizes, local, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
    clReleaseKernel(f);
    clReleaseKernel(r);
    clReleaseProgram(program);
}

static void check_events(void) {
    cl_event user = clCreateUserEvent(context, &e), command;
    cl_ulong time;
    SAME(clWaitForEvents(0, NULL), CL_INVALID_VALUE);
    SAME(clSetUserEventStatus(user, CL_RUNNING), CL_INVALID_VALUE);
    SAME(clSetUserEventStatus(user, CL_COMPLETE), CL_SUCCESS);
    SAME(clSetUserEventStatus(user, CL_COMPLETE), CL_INVALID_OPERATION);
    SAME(clSetEventCallback(user, CL_COMPLETE, NULL, NULL), CL_INVALID_VALUE);
    SAME(clEnqueueMarkerWithWaitList(queue, 0, NULL, &command), CL_SUCCESS);
    SAME(clSetUserEventStatus(command, CL_COMPLETE), CL_INVALID_EVENT);
    SAME(clGetEventProfilingInfo(command, CL_PROFILING_COMMAND_START, sizeof time, &time, NULL), CL_PROFILING_INFO_NOT_AVAILABLE);
    SAME(clReleaseEvent(user), CL_SUCCESS);
    SAME(clReleaseEvent(user), CL_INVALID_EVENT);
    SAME(clReleaseEvent(command), CL_SUCCESS);
}

int main(void) {
    begin();
    check_contexts();
    check_memory();
    check_images();
    check_programs();
    check_kernels();
    check_events();
    SAME(clFinish(queue), CL_SUCCESS);
    SAME(clReleaseCommandQueue(queue), CL_SUCCESS);
    SAME(clReleaseContext(context), CL_SUCCESS);
    SAME(clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, NULL, NULL), CL_INVALID_CONTEXT);
    return finish();
}
