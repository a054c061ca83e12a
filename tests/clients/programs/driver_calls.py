"""Calls of the driver API by cuda.bindings: what each part says and does, printed."""

from __future__ import annotations

import ctypes
import gc
import struct
import sys

import numpy as np
from cuda.bindings import driver, nvrtc

CODE = """
__device__ int counter = 5;
extern "C" __global__ void mix(double *out, char a, double b)
{
    __shared__ double kept[8];
    kept[threadIdx.x] = a + b;
    __syncthreads();
    out[threadIdx.x] = kept[7 - threadIdx.x] + counter;
}
"""


def must(given: tuple) -> object:
    error, *rest = given
    assert int(error) == 0, error
    return rest[0] if len(rest) == 1 else rest


def compiled() -> bytes:
    program = must(nvrtc.nvrtcCreateProgram(CODE.encode(), b"calls.cu", 0, [], []))
    must(nvrtc.nvrtcCompileProgram(program, 1, [b"-arch=compute_80"]))
    text = b" " * must(nvrtc.nvrtcGetPTXSize(program))
    must(nvrtc.nvrtcGetPTX(program, text))
    return text


must(driver.cuInit(0))
device = must(driver.cuDeviceGet(0))
must(driver.cuCtxSetCurrent(must(driver.cuDevicePrimaryCtxRetain(device))))


def attributes() -> None:
    """Of the device, as the catalog has them."""
    names = "MULTIPROCESSOR_COUNT COMPUTE_CAPABILITY_MAJOR WARP_SIZE MAX_THREADS_PER_BLOCK"
    names += " MAX_SHARED_MEMORY_PER_BLOCK_OPTIN MAX_REGISTERS_PER_MULTIPROCESSOR"
    of = driver.CUdevice_attribute
    numbers = [getattr(of, f"CU_DEVICE_ATTRIBUTE_{name}") for name in names.split()]
    print(*(must(driver.cuDeviceGetAttribute(number, device)) for number in numbers))
    print(must(driver.cuGetErrorName(driver.CUresult(700))).decode())


def rows() -> None:
    """Three rows of 20 bytes: filled, then the middle of two copied out."""
    address, pitch = must(driver.cuMemAllocPitch(20, 3, 4))
    must(driver.cuMemsetD2D8(address, pitch, 7, 20, 3))
    source = np.arange(40, dtype=np.uint8)
    copy = driver.CUDA_MEMCPY2D()
    copy.srcMemoryType, copy.srcHost = driver.CUmemorytype.CU_MEMORYTYPE_HOST, source.ctypes.data
    copy.srcPitch, copy.WidthInBytes, copy.Height = 20, 4, 2
    copy.dstMemoryType, copy.dstDevice = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE, address
    copy.dstPitch, copy.dstXInBytes, copy.dstY = pitch, 8, 1
    must(driver.cuMemcpy2D(copy))
    last = np.zeros(20, np.uint8)
    must(driver.cuMemcpyDtoH(last, int(address) + 2 * pitch, 20))
    print(pitch >= 20, *last[6:14])


def boxes() -> None:
    """The corner of 2 bytes by 2 rows by 2 slices of a box of 4 by 3 by 2, on the device."""
    box = must(driver.cuMemAlloc(24))
    must(driver.cuMemcpyHtoD(box, np.arange(24, dtype=np.uint8), 24))
    corner = np.zeros(8, np.uint8)
    copy = driver.CUDA_MEMCPY3D()
    copy.srcMemoryType, copy.srcDevice = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE, box
    copy.srcPitch, copy.srcHeight, copy.srcXInBytes, copy.srcY = 4, 3, 2, 1
    copy.dstMemoryType, copy.dstHost = driver.CUmemorytype.CU_MEMORYTYPE_HOST, corner.ctypes.data
    copy.dstPitch, copy.dstHeight = 2, 2
    copy.WidthInBytes, copy.Height, copy.Depth = 2, 2, 2
    must(driver.cuMemcpy3D(copy))
    print(*corner)


def kernels() -> None:
    """Parameters as one buffer; what the driver says of the kernel and of a variable."""
    module = must(driver.cuModuleLoadData(compiled()))
    kernel = must(driver.cuModuleGetFunction(module, b"mix"))
    out = must(driver.cuMemAlloc(64))
    data = ctypes.create_string_buffer(struct.pack("<Qb7xd", int(out), 3, 0.5))
    size = ctypes.c_size_t(24)
    pointers = [1, ctypes.addressof(data), 2, ctypes.addressof(size), 0]
    extra = (ctypes.c_void_p * 5)(*pointers)
    must(driver.cuLaunchKernel(kernel, 1, 1, 1, 8, 1, 1, 0, 0, 0, ctypes.addressof(extra)))
    seen = np.zeros(8)
    must(driver.cuMemcpyDtoH(seen, out, 64))
    print(*seen)
    of = driver.CUfunction_attribute
    registers = must(driver.cuFuncGetAttribute(of.CU_FUNC_ATTRIBUTE_NUM_REGS, kernel))
    shared = must(driver.cuFuncGetAttribute(of.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel))
    version = must(driver.cuFuncGetAttribute(of.CU_FUNC_ATTRIBUTE_PTX_VERSION, kernel))
    _, length = must(driver.cuModuleGetGlobal(module, b"counter"))
    print(8 <= registers <= 64, shared, version, length)
    blocks = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor
    print(*(must(blocks(kernel, *shape)) for shape in ((1024, 0), (32, 0), (128, 80 << 10))))


def memory() -> None:
    """What pointers and pools say."""
    of = driver.CUpointer_attribute
    plain, kind = must(driver.cuMemAlloc(100)), of.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    host = must(driver.cuMemHostAlloc(100, 0))
    managed = must(driver.cuMemAllocManaged(100, 1))
    is_managed = of.CU_POINTER_ATTRIBUTE_IS_MANAGED
    inside = int(plain) + 40
    print(*(int(must(driver.cuPointerGetAttribute(kind, at))) for at in (plain, host, managed)))
    print(*(bool(must(driver.cuPointerGetAttribute(is_managed, at))) for at in (plain, managed)))
    base, size = must(driver.cuMemGetAddressRange(inside))
    print(int(base) == int(plain), size)
    pool = must(driver.cuDeviceGetDefaultMemPool(device))
    used = driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT
    stream = must(driver.cuStreamCreate(0))
    taken = must(driver.cuMemAllocAsync(1000, stream))
    before = int(must(driver.cuMemPoolGetAttribute(pool, used)))
    must(driver.cuMemFreeAsync(taken, stream))
    print(before, int(must(driver.cuMemPoolGetAttribute(pool, used))))
    sizes = (1, 100, 1000, 5000, 1 << 20, (1 << 20) + 1, 1 << 21, 1 << 24)
    addresses = [int(must(driver.cuMemAlloc(size))) for size in sizes]
    print([a % (512 if s <= 1 << 20 else 2 << 20) for a, s in zip(addresses, sizes, strict=True)])


def streams() -> None:
    """Functions of the host stand in their order; time goes forward."""
    stream = must(driver.cuStreamCreate(0))
    target = must(driver.cuMemHostAlloc(4, 0))
    word = ctypes.c_uint32.from_address(int(target))
    seen: list[int] = []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: seen.append(word.value))
    call = ctypes.cast(callback, ctypes.c_void_p).value
    events = [must(driver.cuEventCreate(0)) for _ in range(2)]
    must(driver.cuEventRecord(events[0], stream))
    for value in (1, 2):
        must(driver.cuMemsetD32Async(int(target), value, 1, stream))
        must(driver.cuLaunchHostFunc(stream, call, None))
    must(driver.cuEventRecord(events[1], stream))
    must(driver.cuStreamSynchronize(stream))
    print(*seen, must(driver.cuEventElapsedTime(*events)) > 0)


def graph_memory() -> None:
    """What a graph allocates is at one address, and goes with what can launch it."""
    stream, seen = must(driver.cuStreamCreate(0)), np.zeros(4, np.uint32)
    free, _ = must(driver.cuMemGetInfo())
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
    must(driver.cuStreamBeginCapture(stream, mode))
    taken = must(driver.cuMemAllocAsync(16, stream))
    must(driver.cuMemsetD32Async(taken, 9, 4, stream))
    must(driver.cuMemcpyDtoHAsync(seen, taken, 16, stream))
    must(driver.cuMemFreeAsync(taken, stream))
    graph = must(driver.cuStreamEndCapture(stream))
    nodes, count = must(driver.cuGraphGetNodes(graph, 4))
    print(count, *(int(must(driver.cuGraphNodeGetType(node))) for node in nodes))
    runs = must(driver.cuGraphInstantiate(graph, 0))
    must(driver.cuGraphDestroy(graph))
    for _ in range(2):
        seen[:] = 0
        must(driver.cuGraphLaunch(runs, stream))
        print(*seen)
    must(driver.cuGraphExecDestroy(runs))
    gc.collect()
    print(int(must(driver.cuMemGetInfo())[0]) == int(free))


def kept() -> None:
    """A user object lives as long as the last of the graphs that keep it."""
    seen: list[str] = []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: seen.append("gone"))
    end = ctypes.cast(callback, ctypes.c_void_p).value
    made = must(driver.cuUserObjectCreate(0, end, 1, 1))
    graph = must(driver.cuGraphCreate(0))
    must(driver.cuGraphRetainUserObject(graph, made, 1, 1))
    runs = must(driver.cuGraphInstantiate(graph, 0))
    must(driver.cuGraphDestroy(graph))
    print(len(seen), end=" ")
    must(driver.cuGraphExecDestroy(runs))
    print(*seen)


def logs() -> None:
    """A callback gets each error's explanation; a dump has it, and comes once."""
    library, seen = ctypes.CDLL("libcuda.so.1"), []
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)
    callback = kind(lambda _data, level, text, length: seen.append((level, text, length)))
    handle, after = ctypes.c_void_p(), ctypes.c_uint()
    must((library.cuLogsRegisterCallback(callback, None, ctypes.byref(handle)),))
    must((library.cuLogsCurrent(ctypes.byref(after), 0),))
    driver.cuModuleLoadData(b"this is no PTX\0")
    must((library.cuLogsUnregisterCallback(handle),))
    [(level, text, length)] = seen
    print(level, len(text) == length)
    buffer, size = ctypes.create_string_buffer(1000), ctypes.c_size_t(1000)
    must((library.cuLogsDumpToMemory(ctypes.byref(after), buffer, ctypes.byref(size), 0),))
    print(buffer.value == text + b"\n", size.value == length + 1)
    must((library.cuLogsDumpToMemory(ctypes.byref(after), buffer, ctypes.byref(size), 0),))
    print(size.value)


def entry_points() -> None:
    """The runtime gives addresses of the driver's functions, by the version that is asked for."""
    runtime, symbol = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p()
    status, count = ctypes.c_int(-1), ctypes.c_int(-1)
    places = ctypes.byref(symbol), ctypes.c_uint(12000), ctypes.c_ulonglong(0), ctypes.byref(status)
    must((runtime.cudaGetDriverEntryPointByVersion(b"cuDeviceGetCount", *places),))
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(symbol.value)
    must((function(ctypes.addressof(count)),))
    print(status.value, count.value)
    must((runtime.cudaGetDriverEntryPointByVersion(b"cuNoSuchThing", *places),))
    print(status.value, symbol.value)


globals()[sys.argv[1]]()
