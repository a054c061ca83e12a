"""What the launch of a small kernel costs on its way from a program to the machine.

`python benchmarks/launches.py` prints the table that docs/benchmarks.md holds: 2,000 launches of
one block of 32 threads each, the fastest of five rounds. Ways in are the API of Warploom, its
`warploom.cuda`, and, unchanged through the driver library, numba-cuda and the driver API itself.
Behind the first stands the code in which its last launch ran (`Run.tier`).
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from warploom.clients.environment import environment_for
from warploom.clients.settings import Settings

LAUNCHES, ROUNDS = 2000, 5
SETTINGS = Settings("a100")


def microseconds(launch: Callable[[], object]) -> str:
    """What one of many launches takes: of time, and of the processor's."""
    launch()
    rounds = [_round(launch) for _ in range(ROUNDS)]
    return " ".join(f"{min(times) / LAUNCHES * 1e6:9.1f}" for times in zip(*rounds, strict=True))


def _round(launch: Callable[[], object]) -> tuple[float, float]:
    started, busy = time.perf_counter(), time.process_time()
    for _ in range(LAUNCHES):
        launch()
    return time.perf_counter() - started, time.process_time() - busy


def _api() -> str:
    import warploom as wl

    gpu = wl.Device("a100")
    kernel = gpu.compile(SOURCE, language="cuda")["increment"]
    x = gpu.zeros(32, np.float32)
    measured = microseconds(lambda: kernel[1, 32](x))
    return f"{measured}  {kernel[1, 32](x).tier}"


def _numba_kernel(cuda: Any) -> str:
    @cuda.jit
    def increment(x: Any) -> None:
        x[cuda.threadIdx.x] += 1

    x = cuda.to_device(np.zeros(32, np.float32))
    return microseconds(lambda: increment[1, 32](x))


def _in_process() -> str:
    from warploom import cuda

    return _numba_kernel(cuda)


def _numba() -> str:
    from numba import cuda

    return _numba_kernel(cuda)


SOURCE = 'extern "C" __global__ void increment(float *x) { x[threadIdx.x] += 1; }'


def _driver() -> str:
    driver = importlib.import_module("cuda.bindings.driver")
    nvrtc = importlib.import_module("cuda.bindings.nvrtc")

    driver.cuInit(0)
    driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(0)[1])
    program = nvrtc.nvrtcCreateProgram(SOURCE.encode(), b"", 0, [], [])[1]
    nvrtc.nvrtcCompileProgram(program, 1, [b"-arch=compute_80"])
    text = b" " * nvrtc.nvrtcGetPTXSize(program)[1]
    nvrtc.nvrtcGetPTX(program, text)
    module = driver.cuModuleLoadData(text)[1]
    function = driver.cuModuleGetFunction(module, b"increment")[1]
    address = np.array([int(driver.cuMemAlloc(128)[1])], np.uint64)
    parameters = np.array([address.ctypes.data], np.uint64)
    at = int(parameters.ctypes.data)
    return microseconds(lambda: driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, at, 0))


WAYS = {
    "warploom's own API": _api,
    "from warploom import cuda": _in_process,
    "driver API": _driver,
    "numba-cuda": _numba,
}


def _run(way: str) -> str:
    """A way in a process of its own, in which the driver library is in place."""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, way],
        env=environment_for(SETTINGS),
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stdout


def main() -> None:
    """Print the table."""
    print(f"{'microseconds per launch':26} elapsed processor")
    for way in WAYS:
        print(f"{way:26}{_run(way)}", end="")


if __name__ == "__main__":
    if sys.argv[1:]:
        print(WAYS[sys.argv[1]]())
    else:
        main()
