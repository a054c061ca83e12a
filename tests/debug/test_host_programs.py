"""Programs in the debugger: kernels of Numba by lines of Python, and tests that go wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly

NUMBA = """
import numpy as np
from numba import cuda

@cuda.jit
def scale(x, out, a):
    i = cuda.grid(1)
    if i < x.size:
        value = x[i] * a
        if i % 2:
            value += 1
        out[i] = value

x = cuda.to_device(np.arange(100, dtype=np.float32))
out = cuda.device_array(100, np.float32)
scale[4, 32](x, out, np.float32(3))
print(out.copy_to_host()[:4])
"""

FAILING = """
import numpy as np

def test_guard(gpu):
    source = 'extern "C" __global__ void add(float *y) { y[threadIdx.x] += 1.0f; }'
    kernel = gpu.compile(source, options=["-G"])["add"]
    kernel[1, 64](gpu.zeros(64, np.float32))
    kernel[1, 64](gpu.zeros(50, np.float32))
"""


def run(folder: Path, *command: str) -> str:
    """What a command prints."""
    made = [sys.executable, "-m", *command]
    return subprocess.run(made, cwd=folder, capture_output=True, text=True, check=False).stdout


def test_a_kernel_of_numba_is_stepped_by_lines_of_python(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(NUMBA, "utf-8")
    commands = (
        *("break program.py:12 if i == 5", "run", "print value", "print out[5]"),
        *("reverse-next", "print value", "continue", "detach"),
    )
    given = [part for command in commands for part in ("-c", command)]
    printed = run(tmp_path, "warploom.cli", "debug", *given, "program.py")
    lines = printed.splitlines()
    assert "12\t        out[i] = value" in lines
    assert "$1 = 16" in lines  # 5 * 3 + 1
    assert "$2 = 0" in lines
    assert "11\t            value += 1" in lines
    assert "$3 = 15" in lines
    assert lines[-1] == "[ 0.  4.  6. 10.]"  # the program has gone on


DEVICE_FUNCTION = """
import numpy as np
from numba import cuda

@cuda.jit(device=True)
def squared(a):
    result = a * a
    return result

@cuda.jit
def squares(out):
    i = cuda.grid(1)
    out[i] = squared(i)

out = cuda.device_array(32, np.int64)
squares[1, 32](out)
print(out.copy_to_host()[:4])
"""


def test_a_device_function_of_numba_is_stepped_into(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(DEVICE_FUNCTION, "utf-8")
    commands = ("break program.py:13 if i == 3", "run", "step", "print a", "backtrace", "detach")
    given = [part for command in commands for part in ("-c", command)]
    lines = run(tmp_path, "warploom.cli", "debug", *given, "program.py").splitlines()
    assert "7\t    result = a * a" in lines
    assert "$1 = 3" in lines
    assert any(line.startswith("#1") and "program.py:13" in line for line in lines)
    assert lines[-1] == "[0 1 4 9]"


WHOLE = """
#include <cstdio>
struct Limits { int low, high; };
template <typename T> __device__ int inside(T v, const Limits &l) {
    int found = v >= l.low && v <= l.high;
    return found;
}
template <typename T> __global__ void count(const T *x, int n, int *out, Limits l) {
    extern __shared__ int part[];
    int i = threadIdx.x;
    part[i] = i < n ? inside(x[i], l) : 0;
    __syncthreads();
    atomicAdd(out, part[i]);
}
int main() {
    int h[64], *x, *out, sum = 0;
    for (int i = 0; i < 64; i++) h[i] = i;
    cudaMalloc(&x, sizeof h); cudaMalloc(&out, 4);
    cudaMemcpy(x, h, sizeof h, cudaMemcpyHostToDevice); cudaMemset(out, 0, 4);
    count<int><<<1, 64, 256>>>(x, 64, out, {10, 19});
    cudaMemcpy(&sum, out, 4, cudaMemcpyDeviceToHost);
    printf("%d\\n", sum);
}
"""


def test_a_whole_program_of_cuda_shows_its_variables(tmp_path: Path) -> None:
    (tmp_path / "program.cu").write_text(WHOLE, "utf-8")
    commands = (
        *("break inside if v == 12", "run", "print l.high", "up", "print x[i]", "break 12"),
        *("continue", "continue", "print part", "detach"),
    )
    given = [part for command in commands for part in ("-c", command)]
    lines = run(tmp_path, "warploom.cli", "debug", *given, "program.cu").splitlines()
    assert "$1 = 19" in lines
    assert "$2 = 12" in lines
    inside = ", ".join("1" if 10 <= n <= 19 else "0" for n in range(64))
    assert f"$3 = {{{inside}}}" in lines
    assert "10" in lines


def test_a_test_stops_where_its_launch_goes_wrong(tmp_path: Path) -> None:
    (tmp_path / "test_guard.py").write_text(FAILING, "utf-8")
    option = "--warploom-debug=print threadIdx.x"
    printed = run(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", "--warploom", option)
    assert "$1 = 50" in printed
    assert "1 failed" in printed


TWO_KERNELS = """
import numpy as np
from numba import cuda

@cuda.jit
def first(x):
    x[cuda.grid(1)] += 1

@cuda.jit
def second(x):
    i = cuda.grid(1)
    x[i] *= 2

x = cuda.to_device(np.arange(32, dtype=np.float32))
first[1, 32](x)
second[1, 32](x)
second[1, 32](x)
"""


def test_a_breakpoint_of_a_later_kernel_is_pending_and_stays(tmp_path: Path) -> None:
    """Line 12 is in the second kernel, which is launched twice."""
    (tmp_path / "program.py").write_text(TWO_KERNELS, "utf-8")
    commands = ("break program.py:12 if i == 5", "continue", "continue", "continue", "continue")
    typed = "\n".join([*commands, *["continue"] * 6, "quit", ""])
    made = [sys.executable, "-m", "warploom.cli", "debug", "program.py"]
    ran = subprocess.run(
        made, cwd=tmp_path, input=typed, capture_output=True, text=True, check=False, timeout=200
    )
    assert "has no program.py:12: the breakpoint is pending" in ran.stdout
    assert ran.stdout.count("Breakpoint 1 at program.py:12") == 2
    assert ran.stdout.count("12\t    x[i] *= 2") >= 2
