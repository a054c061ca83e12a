"""Implements the host API of OpenCL 3.0 on the software GPU, as a platform that ICD loaders can
find (cl_khr_icd).

A module for each kind of object, over the same memory, launches and order of streams as
`clients.driver`. Kernels are compiled by `frontends.opencl`.
"""
