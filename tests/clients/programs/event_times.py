"""Times a kernel by two events of the driver."""

from __future__ import annotations

from cuda.bindings import driver, nvrtc


def must(answer: tuple[object, ...]) -> object:
    assert int(answer[0]) == 0, answer  # pyright: ignore[reportArgumentType]
    return answer[1] if len(answer) > 1 else None


SOURCE = b'extern "C" __global__ void k() {}'

must(driver.cuInit(0))
must(driver.cuDevicePrimaryCtxRetain(0))
must(driver.cuCtxSetCurrent(must(driver.cuDevicePrimaryCtxRetain(0))))
program = must(nvrtc.nvrtcCreateProgram(SOURCE, b"k.cu", 0, [], []))
must(nvrtc.nvrtcCompileProgram(program, 0, []))
ptx = b" " * must(nvrtc.nvrtcGetPTXSize(program))
must(nvrtc.nvrtcGetPTX(program, ptx))
kernel = must(driver.cuModuleGetFunction(must(driver.cuModuleLoadData(ptx)), b"k"))
events = [must(driver.cuEventCreate(0)) for _ in range(2)]
must(driver.cuEventRecord(events[0], 0))
must(driver.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0))
must(driver.cuEventRecord(events[1], 0))
must(driver.cuEventSynchronize(events[1]))
print(must(driver.cuEventElapsedTime(*events)) > 0)
