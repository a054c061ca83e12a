"""Launches a kernel on memory of the kind that the argument says."""

import ctypes
import sys

PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry negate(.param .u64 at)
{
.reg .b64 %at; .reg .s32 %x;
ld.param.u64 %at, [at];
ld.global.s32 %x, [%at]; neg.s32 %x, %x; st.global.s32 [%at], %x;
ret;
}
"""
cuda = ctypes.CDLL("libcuda.so.1")
SIZE = ctypes.c_size_t(4)


def must(code):
    assert code == 0, code


context, module, kernel = (ctypes.c_void_p() for _ in range(3))
must(cuda.cuInit(0))
must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
must(cuda.cuCtxSetCurrent(context))
must(cuda.cuModuleLoadData(ctypes.byref(module), PTX))
must(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"negate"))
memory, mapped = ctypes.c_uint64(), ctypes.c_uint64()
how = sys.argv[1]
if how == "managed":
    must(cuda.cuMemAllocManaged(ctypes.byref(memory), SIZE, 1))
elif how == "device":
    must(cuda.cuMemAlloc_v2(ctypes.byref(memory), SIZE))
else:
    must(cuda.cuMemHostAlloc(ctypes.byref(memory), SIZE, 2 if how == "mapped" else 0))
if how == "asked":
    must(cuda.cuMemHostGetDevicePointer_v2(ctypes.byref(mapped), memory, 0))
if how != "device":
    ctypes.memset(memory.value, 0, 4)
else:
    must(cuda.cuMemsetD8_v2(memory, 0, SIZE))
given = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
must(cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, given, None))
print("end")
