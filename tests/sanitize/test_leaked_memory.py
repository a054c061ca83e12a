"""The tool "leak": what a program leaves behind, with the places that made it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from warploom.clients.nvcc import real_nvcc
from warploom.sanitize.leaks import LiveAllocation, leaks

PROGRAM = r"""
__global__ void keeps(int **where) {
  where[threadIdx.x] = (int *)malloc(16);
  if (threadIdx.x % 2) free(where[threadIdx.x]);
}
__attribute__((noinline)) static int *helper(int n) {
  int *p;
  cudaMalloc(&p, n);
  return p;
}
int main() {
  int *freed = helper(100), *managed, *pinned, **where;
  for (int i = 0; i < 3; i++) helper(4096);
  cudaMallocManaged(&managed, 64);
  cudaMallocHost(&pinned, 32);
  cudaMalloc(&where, 8 * 32);
  keeps<<<1, 8>>>(where);
  cudaDeviceSynchronize();
  cudaFree(freed);
  cudaFreeHost(pinned);
  cudaFree(where);
  return 0;
}
"""


def test_places_that_leak_are_reported_once() -> None:
    found = leaks(
        [
            LiveAllocation("device", 8, 0x100, ("f (a.cu:3)", "main (a.cu:9)")),
            LiveAllocation("host", 4, 0x300),
            LiveAllocation("device", 16, 0x200, ("f (a.cu:3)", "main (a.cu:9)")),
        ]
    )
    assert [(one.space, one.line, one.count) for one in found] == [
        ("device", "a.cu:3", 2),
        ("host", "", 1),
    ]
    assert found[0].message.splitlines() == [
        "Leaked 24 bytes of device memory, the first at 0x100",
        "    made by f (a.cu:3)",
        "    called by main (a.cu:9)",
        "    It was not freed by the end of the program. Free it with cudaFree.",
    ]


def verb(*args: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("warploom")), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_a_kernel_that_leaves_memory_on_the_heap(tmp_path: Path) -> None:
    kernel = tmp_path / "keeps.cu"
    kernel.write_text(PROGRAM.partition("__attribute__")[0], "utf-8")
    args = ("check", kernel, "--block", "8", "--arg", "u64[8]=zeros", "--json")
    (found,) = json.loads(verb(*args).stdout)["findings"]
    assert (found["tool"], found["severity"], found["count"]) == ("leak", "warning", 4)
    assert found["line"].endswith("keeps.cu:3")
    assert verb(*args, "--tool", "mem,race").stdout.count("leak") == 0


def test_a_program_that_frees_not_all(tmp_path: Path) -> None:
    if real_nvcc(os.environ["PATH"]) is None:
        pytest.skip("nvcc compiles the program, and is not here")
    source, program = tmp_path / "leaky.cu", tmp_path / "leaky"
    source.write_text(PROGRAM, "utf-8")
    made = verb("nvcc", "-g", "-o", program, source)
    assert made.returncode == 0, made.stderr
    done = verb("check", "--tool", "leak", program)
    assert done.returncode == 0  # warnings
    output = done.stderr
    assert "Leaked 12,288 bytes of device memory, the first at" in output
    assert "made by helper(int) (leaky.cu:8)\n=========     called by main (leaky.cu:13)" in output
    assert "Leaked 64 bytes of managed memory" in output
    assert "Leaked 64 bytes of the kernels' heap" in output
    assert output.endswith("ERROR SUMMARY: 0 errors, 3 warnings, 0 notes\n")
