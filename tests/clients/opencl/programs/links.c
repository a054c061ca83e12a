/* Programs of several sources: headers, libraries, kernels that call kernels, binaries. */
#include "begin.h"

static cl_program compile_one(const char *source, cl_program header, const char *name) {
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &e);
    SAME(clCompileProgram(program, 1, &device, NULL, header ? 1 : 0, header ? &header : NULL,
                          header ? &name : NULL, NULL, NULL), CL_SUCCESS);
    return program;
}

static cl_program link_all(cl_uint count, const cl_program *parts, const char *options) {
    return clLinkProgram(context, 1, &device, options, count, parts, NULL, NULL, &e);
}

static int run(cl_program program, const char *name) {
    int value = 0;
    size_t size = 1;
    cl_kernel kernel = clCreateKernel(program, name, &e);
    SAME(e, CL_SUCCESS);
    cl_mem buffer = clCreateBuffer(context, 0, 4, NULL, &e);
    SAME(clSetKernelArg(kernel, 0, sizeof buffer, &buffer), CL_SUCCESS);
    SAME(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL), CL_SUCCESS);
    SAME(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 4, &value, 0, NULL, NULL), CL_SUCCESS);
    clReleaseKernel(kernel);
    clReleaseMemObject(buffer);
    return value;
}

static cl_uint type_of(cl_program program) {
    cl_uint type = 99;
    SAME(clGetProgramBuildInfo(program, device, CL_PROGRAM_BINARY_TYPE, sizeof type, &type, NULL), 0);
    return type;
}

int main(void) {
    begin();
    const char *text = "int three(void);\n";
    cl_program header = clCreateProgramWithSource(context, 1, &text, NULL, &e);
    cl_program parts[] = {
        compile_one("#include \"sub/three.h\"\n"
                    "__kernel void first(__global int *p) { *p = three() + 10; }\n", header, "sub/three.h"),
        compile_one("int three(void) { return 3; }\n", NULL, NULL),
    };
    SAME(type_of(parts[0]), CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT);
    cl_program alone = link_all(1, parts, NULL); /* and fails, with a program for its log */
    SAME(e, CL_LINK_PROGRAM_FAILURE);
    SAME(alone != NULL, 1);
    char log[4096] = "";
    SAME(clGetProgramBuildInfo(alone, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL), 0);
    SAME(strstr(log, "three") != NULL, 1);
    cl_program both = link_all(2, parts, NULL);
    SAME(e, CL_SUCCESS);
    SAME(type_of(both), CL_PROGRAM_BINARY_TYPE_EXECUTABLE);
    SAME(run(both, "first"), 13);

    /* A library, and a kernel of it that another source calls. */
    cl_program library = link_all(2, parts, "-create-library");
    SAME(type_of(library), CL_PROGRAM_BINARY_TYPE_LIBRARY);
    cl_program last[] = {
        compile_one("extern __kernel void first(__global int *p);\n"
                    "__kernel void second(__global int *p) { first(p); *p *= 2; }\n", NULL, NULL),
        library,
    };
    cl_program whole = link_all(2, last, NULL);
    SAME(e, CL_SUCCESS);
    SAME(run(whole, "second"), 26);
    SAME(run(whole, "first"), 13);

    /* Its binary is the program again. */
    size_t size = 0;
    SAME(clGetProgramInfo(whole, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL), 0);
    unsigned char *binary = malloc(size);
    const unsigned char *given = binary;
    cl_int status = 1;
    SAME(clGetProgramInfo(whole, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL), 0);
    cl_program again = clCreateProgramWithBinary(context, 1, &device, &size, &given, &status, &e);
    SAME(status, CL_SUCCESS);
    SAME(clBuildProgram(again, 1, &device, NULL, NULL, NULL), CL_SUCCESS);
    SAME(run(again, "second"), 26);

    /* Offsets, dimensions and names of arguments. */
    const char *about = "__kernel __attribute__((vec_type_hint(uint4))) void f(__global const int *values, int n) {}\n"
                        "inline int size(void);\n"
                        "__kernel void g(__global int *p) { p[get_global_id(0) - 5] ="
                        " 1000 * get_global_offset(0) + 10 * get_work_dim() + size(); }\n"
                        /* C leaves such a function out, unless another source has it. */
                        "inline __attribute__((noinline)) int size(void) { return get_local_size(0); }\n";
    cl_program program = build(about, "-cl-kernel-arg-info");
    cl_kernel f = clCreateKernel(program, "f", &e), g = clCreateKernel(program, "g", &e);
    cl_ulong qualifiers;
    SAME(clGetKernelArgInfo(f, 0, CL_KERNEL_ARG_NAME, sizeof log, log, NULL), 0);
    SAME(strcmp(log, "values"), 0);
    SAME(clGetKernelArgInfo(f, 0, CL_KERNEL_ARG_TYPE_NAME, sizeof log, log, NULL), 0);
    SAME(strcmp(log, "int*"), 0);
    SAME(clGetKernelArgInfo(f, 0, CL_KERNEL_ARG_TYPE_QUALIFIER, 8, &qualifiers, NULL), 0);
    SAME(qualifiers, CL_KERNEL_ARG_TYPE_CONST);
    SAME(clGetKernelInfo(f, CL_KERNEL_ATTRIBUTES, sizeof log, log, NULL), 0);
    SAME(strcmp(log, "vec_type_hint(uint4)"), 0);
    size_t offset[2] = {5, 0}, sizes[2] = {4, 1}, local[2] = {2, 1};
    int values[4];
    cl_mem buffer = clCreateBuffer(context, 0, 16, NULL, &e);
    SAME(clSetKernelArg(g, 0, sizeof buffer, &buffer), 0);
    SAME(clEnqueueNDRangeKernel(queue, g, 2, offset, sizes, local, 0, NULL, NULL), 0);
    SAME(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 16, values, 0, NULL, NULL), 0);
    for (int n = 0; n < 4; ++n) SAME(values[n], 5022);
    return finish();
}
