"""Turns sources into programs that a device can run: calls compilers, and determines the signatures
and resources of kernels.

In: CUDA C++, OpenCL C or PTX, and a device. Out: verified PTX modules, signatures, machine code as
text, resources of kernels. Compiling is left to `frontends`, making a `Program` of a kernel to
`program`.
"""
