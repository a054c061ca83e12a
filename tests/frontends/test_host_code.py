"""Whole programs of CUDA C++, compiled for their kernels alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warploom as wl
from warploom.cli.verbs import verbs
from warploom.core.errors import CompileError
from warploom.frontends.host_code import without_host_functions

PROGRAM = """#include <cstdio>
#include <iostream>
#include <vector>
#include <cmath>
#include <stdint.h>
#include <cuda_runtime.h>

#define CHECK(call) do {                        \\
    cudaError_t e = (call);                     \\
    if (e) { printf("%d\\n", e); std::exit(1); } \\
  } while (0)
#define TWICE(x) \\
  ((x) * 2)
using namespace std;
void init(std::vector<float> &v);
struct Pair { float a, b; };
constexpr int side(int n) { return n + 1; }
__device__ float half_of(float x) { return x / 2; }
/* a comment with { braces */
__global__ void scale(float *x, uint32_t n) {
    __shared__ float spare[side(3)];
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = TWICE(half_of(sqrtf(x[i] * x[i])));
    spare[0] = M_PI;
    if (i >= INT32_MAX) printf("%f", spare[0]);
}
void init(std::vector<float> &v) { for (auto &x : v) x = 1; }
template <typename T> T sum(const std::vector<T> &v) { T s{}; for (auto x : v) s += x; return s; }
int main() {
    std::vector<float> v(1024);
    float *d;
    CHECK(cudaMalloc(&d, 4096));
    scale<<<4, 256>>>(d, 1024);
    std::cout << "sum " << sum(v) << "}";
}
"""


def test_the_kernels_of_a_whole_program_can_be_launched(tmp_path: Path) -> None:
    file = tmp_path / "whole.cu"
    file.write_text(PROGRAM, "utf-8")
    kernel = wl.Device().load(file)["scale"]
    x = np.arange(1024, dtype=np.float32)
    run = kernel[4, 256](x, np.uint32(1024))
    assert x.tolist() == list(range(1024))
    lines = {line.rpartition(":")[2] for line in run.counters.by_line()}
    wanted = PROGRAM.splitlines().index("    spare[0] = M_PI;")
    assert str(wanted) in lines  # the line before it, counted from 1


@pytest.mark.parametrize(
    "header", ["cstdio", "stdio.h", "iostream", "vector", "cmath", "cstdint", "chrono"]
)
def test_a_header_of_the_host_does_not_stop_a_kernel(header: str) -> None:
    text = f'#include <{header}>\nextern "C" __global__ void k(int *x) {{ *x = 3; }}'
    x = np.zeros(1, np.int32)
    wl.Device().compile(text)["k"][1, 1](x)
    assert x[0] == 3


def test_only_the_host_is_taken_out_and_lines_stay() -> None:
    kept = without_host_functions(PROGRAM)
    assert len(kept.splitlines()) == len(PROGRAM.splitlines())
    assert "main" not in kept
    assert "template" not in kept
    for line in (
        "struct Pair { float a, b; };",
        "constexpr int side(int n) { return n + 1; }",
        "    if (i < n) x[i] = TWICE(half_of(sqrtf(x[i] * x[i])));",
        "  ((x) * 2)",
        "  } while (0)",
    ):
        assert line in kept.splitlines()


def test_host_functions_of_included_files_do_not_stop_a_kernel(tmp_path: Path) -> None:
    """A header beside the program, and one that it includes from its own folder: each has functions
    of the host, and something for the kernel. Its lines keep their numbers."""
    folder = tmp_path / "common"
    folder.mkdir()
    (folder / "check.h").write_text(
        '#include <pthread.h>\n#include "twice.h"\nstatic void handle(cudaError_t e) {\n'
        "  if (e != cudaSuccess) exit(EXIT_FAILURE);\n}\npthread_t start();\n#define THREE 3\n",
        encoding="utf-8",
    )
    (folder / "twice.h").write_text(
        "__device__ int twice(int x) { return 2 * x; }\nint read() { return getchar(); }\n",
        encoding="utf-8",
    )
    program = tmp_path / "src" / "p.cu"
    program.parent.mkdir()
    text = """#include "../common/check.h"
extern "C" __global__ void k(int *x) { *x = twice(THREE); }
int main() { int *x; handle(cudaMalloc(&x, 4)); k<<<1, 1>>>(x); }
"""
    program.write_text(text, encoding="utf-8")
    x = np.zeros(1, np.int32)
    wl.Device().load(str(program))["k"][1, 1](x)
    assert x[0] == 6


def test_errors_of_kernels_name_their_own_lines() -> None:
    text = "#include <vector>\nint main() { std::vector<int> v; }\n__global__ void k() { none; }"
    with pytest.raises(CompileError, match=r"m\.cu\(3\): error: identifier \"none\""):
        wl.Device().compile(text, name="m.cu")


def test_a_header_that_no_one_has_is_still_missing() -> None:
    with pytest.raises(CompileError, match="cannot open source file"):
        wl.Device().compile('#include "mine.h"\n__global__ void k() {}')


def test_a_kernel_of_a_program_is_launched_where_it_is_named(tmp_path: Path) -> None:
    file = tmp_path / "whole.cu"
    file.write_text(PROGRAM, "utf-8")
    assert verbs(["run", str(file)])[0] == "run-program"
    assert verbs(["run", str(file), "--kernel", "scale", "--arg", "3"])[0] == "run"
    assert verbs(["run", "--", str(file), "--arg", "3"])[0] == "run-program"
