"""Reads memory that the driver gave out: as it is, or after it was written as the argument says."""

import ctypes
import sys

PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry sum(.param .u64 from, .param .u64 to)
{
.reg .b64 %from, %to, %at; .reg .b32 %t; .reg .f32 %x;
ld.param.u64 %from, [from]; ld.param.u64 %to, [to];
mov.u32 %t, %tid.x; mul.wide.u32 %at, %t, 4; add.u64 %from, %from, %at; add.u64 %to, %to, %at;
ld.global.f32 %x, [%from]; add.f32 %x, %x, %x; st.global.f32 [%to], %x;
ret;
}
"""
cuda = ctypes.CDLL("libcuda.so.1")


def must(code):
    assert code == 0, code


context, module, kernel = (ctypes.c_void_p() for _ in range(3))
must(cuda.cuInit(0))
must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
must(cuda.cuCtxSetCurrent(context))
must(cuda.cuModuleLoadData(ctypes.byref(module), PTX))
must(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"sum"))
source, target, other = (ctypes.c_uint64() for _ in range(3))
for one in (source, target, other):
    must(cuda.cuMemAlloc_v2(ctypes.byref(one), ctypes.c_size_t(128)))
how = sys.argv[1]
if how == "copy":
    must(cuda.cuMemcpyHtoD_v2(source, bytes(128), ctypes.c_size_t(128)))
if how == "part":
    must(cuda.cuMemcpyHtoD_v2(ctypes.c_uint64(source.value + 3), bytes(61), ctypes.c_size_t(61)))
if how == "fill":
    must(cuda.cuMemsetD32_v2(source, 7, ctypes.c_size_t(32)))
if how == "device":
    must(cuda.cuMemsetD8_v2(other, 7, ctypes.c_size_t(128)))
    must(cuda.cuMemcpyDtoD_v2(source, other, ctypes.c_size_t(128)))
if how == "again":
    must(cuda.cuMemsetD8_v2(source, 7, ctypes.c_size_t(128)))
    must(cuda.cuMemFree_v2(source))
    must(cuda.cuMemAlloc_v2(ctypes.byref(source), ctypes.c_size_t(128)))
shape = 1, 1, 1, 32, 1, 1, 0
for start, end in ((source, target), (target, other)):
    given = (ctypes.c_void_p * 2)(*(ctypes.addressof(one) for one in (start, end)))
    must(cuda.cuLaunchKernel(kernel, *shape, None, given, None))
must(cuda.cuCtxSynchronize())
print("end")
