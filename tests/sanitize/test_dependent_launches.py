"""Programmatic dependent launches: what one accesses before it has waited for the launch ahead of
it is not ordered behind that.

PTX ISA, "griddepcontrol": where the prerequisite grid executes `launch_dependents`, the dependent
one has to execute `wait` to run correctly.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import warploom as wl
from warploom.clients.nvcc import real_nvcc
from warploom.host.run import Run
from warploom.sanitize.stream_order import HOST, StreamOrder

TEXT = r"""
__device__ void launch_dependents() { asm volatile("griddepcontrol.launch_dependents;"); }
__device__ void wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
extern "C" __global__ void quiet(int *x) { x[threadIdx.x] = threadIdx.x; }
extern "C" __global__ void first(int *x) {
  launch_dependents();
  x[threadIdx.x] = threadIdx.x;  // first writes
}
extern "C" __global__ void reads(const int *x, int *y) { y[threadIdx.x] = x[threadIdx.x]; }
extern "C" __global__ void early(const int *x, int *y) {
  int mine = x[threadIdx.x];  // early reads
  wait();
  y[threadIdx.x] = mine;
}
extern "C" __global__ void right(const int *x, int *y) {
  wait();
  y[threadIdx.x] = x[threadIdx.x];
}
extern "C" __global__ void barrier(const int *x, int *y) {
  if (threadIdx.x == 32) wait();
  __syncthreads();
  y[threadIdx.x] = x[threadIdx.x];
}
extern "C" __global__ void alone(const int *x, int *y) {
  if (threadIdx.x == 32) wait();
  if (threadIdx.x / 32 == 1) y[threadIdx.x] = x[threadIdx.x];  // lane 0 alone has waited
}
extern "C" __global__ void flag(const int *x, int *y, int *flag) {
  if (threadIdx.x == 0) {
    wait();
    asm volatile("st.release.gpu.global.s32 [%0], 1;" :: "l"(flag) : "memory");
  } else if (threadIdx.x == 32) {
    for (int seen = 0; !seen;)
      asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    y[32] = x[32];
  }
}
extern "C" __global__ void counts(int *x) {
  launch_dependents();
  atomicAdd(x + threadIdx.x, 1);
}
extern "C" __global__ void over(int *x) { x[threadIdx.x] = 7; }  // over writes
extern "C" __global__ void passes(const int *x, int *z) {
  launch_dependents();
  wait();
  z[threadIdx.x] = 1;
}
extern "C" __global__ void holds(const int *x, int *z) {
  wait();
  launch_dependents();
  z[threadIdx.x] = 1;
}
"""

N = 64


def line(part: str) -> str:
    """Returns the end of the place of the line of the text that has a comment."""
    return f":{1 + next(n for n, each in enumerate(TEXT.splitlines()) if each.endswith(part))}"


Compiled = tuple[wl.Device, wl.Module]


@pytest.fixture(scope="module", params=("compiled", "reference"))
def compiled(request: pytest.FixtureRequest) -> Compiled:
    gpu = wl.Device(cc="9.0", engine=request.param, sanitize=("race",))
    return gpu, gpu.compile(TEXT, name="dependent.cu")


class Pair:
    """Buffers and a stream, in which kernels are launched one behind the other."""

    def __init__(self, gpu: wl.Device, module: wl.Module) -> None:
        self.gpu, self.module, self.stream = gpu, module, wl.Stream()
        self.x, self.y, self.z = (self.zeros(N) for _ in range(3))

    def zeros(self, count: int) -> wl.Buffer:
        return self.gpu.to_device(np.zeros(count, np.int32))

    def launch(self, kernel: str, *more: wl.Buffer, programmatic: bool = True) -> Run:
        """Launch a kernel. Who looks at what was found waits for it, and orders what follows."""
        return self.module[kernel][1, N, self.stream](self.x, *more, programmatic=programmatic)


@pytest.fixture
def pair(compiled: Compiled) -> Pair:
    return Pair(*compiled)


def test_reads_before_the_wait(pair: Pair) -> None:
    first, second = pair.launch("first"), pair.launch("early", pair.y)
    (found,) = second.findings
    assert first.findings == ()
    assert (found.tool, found.kind, found.severity) == ("race", "dependent launch", "error")
    assert found.line.endswith(line("// early reads"))
    assert found.other_line.endswith(line("// first writes"))
    assert "Call cudaGridDependencySynchronize() (griddepcontrol.wait)" in found.message
    assert "kernel early" in found.message
    assert "kernel first" in found.message


@pytest.mark.parametrize("kernel", ["reads", "over"])
def test_kernels_without_a_wait(pair: Pair, kernel: str) -> None:
    pair.launch("first")
    (found,) = pair.launch(kernel, *([pair.y] if kernel == "reads" else [])).findings
    assert found.kind == "dependent launch"
    assert found.other_line.endswith(line("// first writes"))


def test_a_wait_orders_what_is_behind_it(pair: Pair) -> None:
    pair.launch("first")
    assert pair.launch("right", pair.y).findings == ()
    pair.stream.synchronize()
    assert np.array_equal(pair.y.copy_to_host(), np.arange(N))


def test_launches_that_are_not_programmatic(pair: Pair) -> None:
    pair.launch("first")
    assert pair.launch("early", pair.y, programmatic=False).findings == ()


def test_a_launch_that_lets_none_begin(pair: Pair) -> None:
    pair.launch("quiet")
    assert pair.launch("early", pair.y).findings == ()


def test_a_host_that_waits_between(pair: Pair) -> None:
    pair.launch("first")
    pair.stream.synchronize()
    assert pair.launch("early", pair.y).findings == ()


def test_barriers_publish_the_wait_of_one_thread(pair: Pair) -> None:
    pair.launch("first")
    assert pair.launch("barrier", pair.y).findings == ()


def test_release_and_acquire_publish_the_wait_of_one_thread(pair: Pair) -> None:
    flag = pair.zeros(1)
    pair.launch("first")
    assert pair.launch("flag", pair.y, flag).findings == ()


def test_the_wait_of_one_thread_is_its_own(pair: Pair) -> None:
    pair.launch("first")
    (found,) = pair.launch("alone", pair.y).findings
    assert found.line.endswith(line("// lane 0 alone has waited"))
    assert found.offset == 4 * 33, "lane 0 of the second warp has waited, lane 1 has not"


def test_writes_before_the_wait_of_what_the_first_still_uses(pair: Pair) -> None:
    pair.launch("counts")
    (found,) = pair.launch("over").findings
    assert found.line.endswith(line("// over writes"))


@pytest.mark.parametrize(("middle", "ordered"), [("passes", False), ("holds", True)])
def test_the_launch_before_the_last_one(pair: Pair, middle: str, *, ordered: bool) -> None:
    pair.launch("first")
    between = pair.launch(middle, pair.y)
    found = pair.launch("early", pair.z).findings
    assert between.findings == ()
    assert [each.kind for each in found] == [] if ordered else ["dependent launch"]


def test_a_later_launch_waits_for_the_whole_of_those_before(pair: Pair) -> None:
    pair.launch("first")
    pair.launch("passes", pair.y)
    assert pair.launch("reads", pair.y, programmatic=False).findings == ()


# ---- clocks --------------------------------------------------------------------------------------


def test_a_launch_begins_early_only_right_behind_another() -> None:
    order = StreamOrder()
    assert order.issue_launch("a", programmatic=True).begin is None
    assert order.issue_launch("a", programmatic=False).begin is None
    assert order.issue_launch("a", programmatic=True).begin == {}
    order.issue("a")  # a copy
    assert order.issue_launch("a", programmatic=True).begin is None
    order.wait("a", order.recorded("b"))
    assert order.issue_launch("a", programmatic=True).begin is None


def test_a_launch_that_begins_early_knows_what_the_host_knows() -> None:
    order = StreamOrder()
    first = order.issue_launch("a", programmatic=False)
    order.synchronize("a")
    behind = order.issue_launch("a", programmatic=True)
    assert behind.begin == {"a": first.number}
    assert HOST not in (behind.begin or {})


# ---- the attribute of a launch -------------------------------------------------------------------

PROGRAM = r"""
#include <cstdio>
__global__ void first(int *x) {
  cudaTriggerProgrammaticLaunchCompletion();
  x[threadIdx.x] = threadIdx.x;  // first writes
}
__global__ void early(const int *x, int *y) {
  y[threadIdx.x] = x[threadIdx.x];  // early reads
  cudaGridDependencySynchronize();
}
__global__ void right(const int *x, int *y) {
  cudaGridDependencySynchronize();
  y[threadIdx.x] = x[threadIdx.x];
}
int main() {
  int *x, *y;
  cudaMalloc(&x, 4 * 64);
  cudaMalloc(&y, 4 * 64);
  cudaLaunchAttribute attribute[1];
  attribute[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute[0].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {1, 64, 0, 0, attribute, 1};
  first<<<1, 64>>>(x);
  cudaLaunchKernelEx(&config, early, (const int *)x, y);
  cudaDeviceSynchronize();
  first<<<1, 64>>>(x);
  cudaLaunchKernelEx(&config, right, (const int *)x, y);
  cudaDeviceSynchronize();
  first<<<1, 64>>>(x);
  config.numAttrs = 0;
  cudaLaunchKernelEx(&config, early, (const int *)x, y);
  puts(cudaGetErrorString(cudaDeviceSynchronize()));
}
"""


def test_a_program_with_the_attribute(tmp_path: Path) -> None:
    if real_nvcc(os.environ["PATH"]) is None:
        pytest.skip("nvcc compiles the program, and is not here")
    source, program = tmp_path / "dependent.cu", tmp_path / "dependent"
    source.write_text(PROGRAM, "utf-8")
    verb = str(Path(sys.executable).with_name("warploom"))
    compiler = [verb, "nvcc", "-arch=sm_90", "-lineinfo", "-o", str(program), str(source)]
    subprocess.run(compiler, check=True)
    command = [verb, "check", "--tool", "race", "--device", "h100", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout == "no error\n"
    numbers = {each: 1 + n for n, each in enumerate(PROGRAM.splitlines())}
    expected = [
        n for part in ("early reads", "first writes") for e, n in numbers.items() if part in e
    ]
    lines = [each for each in done.stderr.splitlines() if " at " in each]
    assert [int(each.rpartition(":")[2]) for each in lines] == expected
    assert "Race between dependent launches: kernel early" in done.stderr
    assert done.stderr.endswith("ERROR SUMMARY: 1 error, 0 warnings, 0 notes\n")
