"""The built-in functions of OpenCL C as source text: `tables` state them, `assemble` writes those
that a program calls, and clang compiles them with it (`frontends.opencl`). Mathematics is NVIDIA's
libdevice."""
