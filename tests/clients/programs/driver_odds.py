"""Calls of the driver library from a program that knows nothing but its name."""

import ctypes
import sys

cuda = ctypes.CDLL("libcuda.so.1")


def static_runtime():
    """What a CUDA runtime that is linked statically does first."""
    table = ctypes.c_void_p()
    print(cuda.cuInit(0), cuda.cuGetExportTable(ctypes.byref(table), b"0" * 16), table.value)


def not_there():
    """A function that is not implemented, twice."""
    made = ctypes.c_void_p()
    print(cuda.cuInit(0), *(cuda.cuMulticastCreate(ctypes.byref(made), 0) for _ in range(2)))


def first_versions():
    """Functions as CUDA 2 called them."""
    context = ctypes.c_void_p()
    cuda.cuInit(0)
    print(cuda.cuCtxCreate(ctypes.byref(context), 0, 0), cuda.cuCtxSynchronize(), end=" ")
    print(cuda.cuCtxDestroy(context))


def addresses():
    """cuGetProcAddress gives the newest function that a version of CUDA has."""
    found = ctypes.c_void_p()
    named = (
        (b"cuMemAlloc", 3020),
        (b"cuMemAlloc", 2000),
        (b"cuLaunchKernelEx", 11000),
        (b"nobody", 1),
    )
    for name, version in named:
        code = cuda.cuGetProcAddress(name, ctypes.byref(found), version, ctypes.c_uint64(0))
        symbol = ctypes.cast(cuda.cuMemAlloc_v2, ctypes.c_void_p).value
        print(code, found.value is not None, found.value == symbol)
    version = ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(version))
    print(version.value >= 13050)


globals()[sys.argv[1]]()
