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
    (tmp_path / "program.py").write_text(NUMBA)
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


def test_a_test_stops_where_its_launch_goes_wrong(tmp_path: Path) -> None:
    (tmp_path / "test_guard.py").write_text(FAILING)
    option = "--warploom-debug=print threadIdx.x"
    printed = run(tmp_path, "pytest", "-q", "-p", "no:cacheprovider", "--warploom", option)
    assert "$1 = 50" in printed
    assert "1 failed" in printed
