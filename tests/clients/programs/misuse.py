"""What a program can do wrong with the driver API: prints the code of each call.

The first argument says what to do wrong.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time

import numpy as np
from cuda.bindings import driver, nvrtc

SOURCE = rb"""
extern "C" __global__ void add(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] += 1;
}
extern "C" __global__ void no_guard(float *x) { x[threadIdx.x] = 1; }
extern "C" __global__ void wants(char *p) { *(int *)(p + 1) = 1; }
extern "C" __global__ void stops() { __trap(); }
__device__ float ones[4] = {1, 1, 1, 1};
extern "C" __global__ void counts(float *x, long n)
{
    float sum = 0;
    for (long i = 0; i < n; ++i)
        sum = sum * 0.5f + ones[i % 4];
    x[threadIdx.x] = sum;
}
extern "C" __global__ void waits(volatile int *flag) { while (*flag == 0); }
"""


def code(result):
    return result[0].name.removeprefix("CUDA_ERROR_").removeprefix("CUDA_")


def must(result):
    assert int(result[0]) == 0, result
    return result[1] if len(result) == 2 else result[1:]


def ptx():
    program = must(nvrtc.nvrtcCreateProgram(SOURCE, b"misuse.cu", 0, [], []))
    options = [b"-arch=compute_80", b"-lineinfo"]
    assert int(nvrtc.nvrtcCompileProgram(program, 2, options)[0]) == 0
    text = b" " * must(nvrtc.nvrtcGetPTXSize(program))
    nvrtc.nvrtcGetPTX(program, text)
    return text


def launch(module, name, *values, grid=1, block=32, shared=0, stream=0):
    found = driver.cuModuleGetFunction(module, name)
    if int(found[0]):
        return found
    held = [np.array([value]) for value in values]
    pointers = np.array([one.ctypes.data for one in held], np.uint64)
    at = pointers.ctypes.data if held else 0
    return driver.cuLaunchKernel(found[1], grid, 1, 1, block, 1, 1, shared, stream, at, 0)


def begin():
    must(driver.cuInit(0))
    context = must(driver.cuDevicePrimaryCtxRetain(0))
    must(driver.cuCtxSetCurrent(context))
    return must(driver.cuModuleLoadData(ptx()))


def before_init():
    print(code(driver.cuDeviceGetCount()), code(driver.cuMemAlloc(16)))


def without_context():
    must(driver.cuInit(0))
    print(code(driver.cuMemAlloc(16)), code(driver.cuDeviceGet(1)))


def frees():
    module = begin()
    x = must(driver.cuMemAlloc(128))
    print(code(driver.cuMemFree(x)), code(driver.cuMemFree(x)), code(driver.cuMemFree(12345)))
    print(code(driver.cuMemcpyHtoD(x, np.zeros(32, np.float32), 128)))
    # A kernel that uses freed memory faults; the next calls report it.
    print(code(launch(module, b"no_guard", np.uint64(int(x)))), code(driver.cuCtxSynchronize()))


def stray():
    module = begin()
    x = must(driver.cuMemAlloc(64))
    print(code(launch(module, b"no_guard", np.uint64(int(x)))))
    print(code(driver.cuCtxSynchronize()), code(driver.cuMemAlloc(16)))
    print(code(launch(module, b"no_guard", np.uint64(int(x)))))
    # A reset makes the device usable again.
    print(code(driver.cuDevicePrimaryCtxReset(0)))
    module = begin()
    y = must(driver.cuMemAlloc(128))
    print(code(launch(module, b"no_guard", np.uint64(int(y)))), code(driver.cuCtxSynchronize()))


def nowhere():
    module = begin()
    print(code(launch(module, b"no_guard", np.uint64(0xDEAD0000))), code(driver.cuCtxSynchronize()))


def misaligned():
    module = begin()
    x = must(driver.cuMemAlloc(64))
    launch(module, b"wants", np.uint64(int(x)))
    print(code(driver.cuCtxSynchronize()))


def trap():
    module = begin()
    launch(module, b"stops")
    print(code(driver.cuCtxSynchronize()))


def deadlock():
    module = begin()
    x = must(driver.cuMemAlloc(64))
    launch(module, b"waits", np.uint64(int(x)))
    print(code(driver.cuCtxSynchronize()))


def out_of_memory():
    begin()
    _, total = must(driver.cuMemGetInfo())
    print(total, code(driver.cuMemAlloc(total + 1)), code(driver.cuMemAlloc(0)))
    blocks = []
    while int((result := driver.cuMemAlloc(total // 8))[0]) == 0:
        blocks.append(result[1])
    print(len(blocks), code(result))
    must(driver.cuMemFree(blocks[0]))
    print(code(driver.cuMemAlloc(total // 8)))


def handles():
    module = begin()
    print(code(driver.cuModuleGetFunction(module, b"nobody")))
    print(code(driver.cuStreamSynchronize(driver.CUstream(0x1234))))
    print(code(driver.cuEventQuery(driver.CUevent(0))))
    print(code(driver.cuModuleUnload(driver.CUmodule(99))))
    print(code(driver.cuCtxSetCurrent(driver.CUcontext(77))))
    print(code(driver.cuFuncGetAttribute(driver.CUfunction_attribute(4), driver.CUfunction(5))))
    print(code(launch(module, b"add", np.uint64(0), np.int32(0), block=2048)))
    print(code(launch(module, b"add", np.uint64(0), np.int32(0), shared=1 << 20)))
    print(code(driver.cuModuleLoadData(b"this is no PTX")))
    print(code(driver.cuModuleLoadData(b"\x7fELF" + bytes(60))))


def graphs():
    """A graph whose kernel faults, and one whose module is gone."""
    module = begin()
    x, stream = must(driver.cuMemAlloc(64)), must(driver.cuStreamCreate(0))
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
    runs = []
    for name, values in (
        (b"add", (np.uint64(int(x)), np.int32(16))),
        (b"no_guard", (np.uint64(int(x)),)),
    ):
        must(driver.cuStreamBeginCapture(stream, mode))
        assert int(launch(module, name, *values, stream=stream)[0]) == 0
        runs.append(must(driver.cuGraphInstantiate(must(driver.cuStreamEndCapture(stream)), 0)))
    print(code(driver.cuGraphLaunch(runs[0], stream)), code(driver.cuStreamSynchronize(stream)))
    print(code(driver.cuGraphLaunch(runs[1], stream)), code(driver.cuStreamSynchronize(stream)))
    must(driver.cuDevicePrimaryCtxReset(0))
    module = begin()
    stream = must(driver.cuStreamCreate(0))
    print(code(driver.cuGraphLaunch(runs[0], stream)), code(driver.cuStreamSynchronize(stream)))


def unload():
    module = begin()
    kernel = must(driver.cuModuleGetFunction(module, b"stops"))
    print(code(driver.cuModuleUnload(module)), code(driver.cuModuleUnload(module)))
    print(code(driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)))


def unload_while_it_runs():
    """What runs, ends as it would have; nobody can launch the kernel from then on."""
    module = begin()
    context = must(driver.cuCtxGetCurrent())
    kernel = must(driver.cuModuleGetFunction(module, b"counts"))
    x = must(driver.cuMemAlloc(128))
    launch(module, b"counts", np.uint64(int(x)), np.int64(1))
    running = threading.Event()

    def work():
        must(driver.cuCtxSetCurrent(context))
        running.set()
        print(code(launch(module, b"counts", np.uint64(int(x)), np.int64(100_000_000))))

    thread = threading.Thread(target=work)
    thread.start()
    running.wait()
    time.sleep(0.05)
    print(code(driver.cuModuleUnload(module)), thread.is_alive())
    thread.join()
    host = np.zeros(32, np.float32)
    must(driver.cuMemcpyDtoH(host, x, host.nbytes))
    print(set(host.tolist()), code(driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)))


def library_module():
    """A library's module is not one's own to unload."""
    begin()
    library = must(driver.cuLibraryLoadData(ptx(), [], [], 0, [], [], 0))
    module = must(driver.cuLibraryGetModule(library))
    print(code(driver.cuModuleUnload(module)), code(driver.cuLibraryUnload(library)))


def reset_gives_back():
    """A reset takes along the memory of modules too."""
    must(driver.cuInit(0))
    total, left = must(driver.cuDeviceTotalMem(0)), set()
    for _ in range(3):
        module = begin()
        x = must(driver.cuMemAlloc(128))
        launch(module, b"no_guard", np.uint64(int(x)))
        must((driver.cuDevicePrimaryCtxReset(0)[0], None))
        must(driver.cuCtxSetCurrent(must(driver.cuDevicePrimaryCtxRetain(0))))
        left.add(must(driver.cuMemGetInfo()) == (total, total))
    print(left)


class Garbage:
    """Memory that a finalizer frees, whenever the collector comes upon it."""

    def __init__(self):
        self.pointer, self.me = must(driver.cuMemAlloc(1024)), self

    def __del__(self):
        assert code(driver.cuMemFree(self.pointer)) == "SUCCESS"


def finalizers():
    """The collector may run finalizers in the middle of a launch, or of any other call."""
    module = begin()
    x = must(driver.cuMemAlloc(128))
    must(driver.cuMemsetD32(x, 0, 32))
    for turn in range(1000):
        Garbage()
        gc.set_threshold(2 + turn % 120)
        assert code(launch(module, b"add", np.uint64(int(x)), np.int32(32))) == "SUCCESS"
    host = np.zeros(32, np.float32)
    must(driver.cuMemcpyDtoH(host, x, host.nbytes))
    gc.collect()
    print(set(host.tolist()))


def launch_in_a_launch():
    """A handler of signals launches while its thread waits for a kernel."""
    module = begin()
    x = must(driver.cuMemAlloc(128))
    found = []

    def handler(_number, _frame):
        found.append(code(launch(module, b"add", np.uint64(int(x)), np.int32(32))))

    signal.signal(signal.SIGALRM, handler)
    launch(module, b"counts", np.uint64(int(x)), np.int64(1))
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    print(code(launch(module, b"counts", np.uint64(int(x)), np.int64(100_000_000))), found)
    print(code(launch(module, b"add", np.uint64(int(x)), np.int32(32))))


def threads():
    """Two threads share a context: one loads and unloads while the other launches."""
    module = begin()
    context = must(driver.cuCtxGetCurrent())
    x = must(driver.cuMemAlloc(4096 * 4))
    must(driver.cuMemsetD32(x, 0, 4096))

    def work():
        must(driver.cuCtxSetCurrent(context))
        for _ in range(20):
            must(driver.cuMemFree(must(driver.cuMemAlloc(1024))))
            assert code(launch(module, b"add", np.uint64(int(x)), np.int32(4096), grid=128)) == (
                "SUCCESS"
            )

    both = [threading.Thread(target=work) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    host = np.zeros(4096, np.float32)
    must(driver.cuMemcpyDtoH(host, x, host.nbytes))
    print(set(host.tolist()))


def fork():
    begin()
    child = os.fork()
    if child == 0:
        print(code(driver.cuInit(0)), code(driver.cuMemAlloc(16)), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    print(code(driver.cuMemAlloc(16)))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("end")
