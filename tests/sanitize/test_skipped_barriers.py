"""Threads that end without coming to a barrier that others wait at: those that leave before it are
legal (CUDA guide, "Synchronization Functions": a barrier is of all non-exited threads), those that
go on behind it have skipped it."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

SOURCE = r"""
extern "C" __global__ void leave(int *o) {
  int i = threadIdx.x;
  if (i >= 48) return;
  __syncthreads();
  o[i] = 1;
}
extern "C" __global__ void leave_the_loop(int *o) {
  int i = threadIdx.x;
  for (int k = 0; k < 3; k++) {
    if (i < 20 * k) return;
    __syncthreads();
  }
  o[i] = 1;
}
extern "C" __global__ void skip(int *o) {
  int i = threadIdx.x;
  if (i < 48) __syncthreads();
  o[i] = 1;
}
extern "C" __global__ void skip_by_a_warp(int *o) {
  int i = threadIdx.x;
  if (i < 32) __syncthreads();
  o[i] = 1;
}
extern "C" __global__ void skip_in_a_loop(int *o) {
  int i = threadIdx.x;
  for (int k = 0; k <= i / 32; k++) __syncthreads();
  o[i] = 1;
}
extern "C" __global__ void alone(int *o) {
  if (threadIdx.x < 40) __syncthreads();
}
extern "C" __global__ void alone_twice(int *o) {
  if (threadIdx.x < 32) __syncthreads(); else { __syncthreads(); __syncthreads(); }
}
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void block_group(int *o) {
  if (threadIdx.x < 16) cg::this_thread_block().sync();
}
extern "C" __global__ void leave_at_the_end(int *o) {
  if (threadIdx.x >= 48) return;
  o[threadIdx.x] = 1;
  __syncthreads();
}
extern "C" __global__ void skip_of_lanes(int *o) {
  int i = threadIdx.x;
  if (i % 32 < 16) __syncwarp();
  o[i] = 1;
}
"""
SKIPPED = {
    "leave": "",
    "leave_the_loop": "",
    "skip": "kernel.cu:18",
    "skip_by_a_warp": "kernel.cu:23",
    "skip_in_a_loop": "kernel.cu:28",
    "alone": "kernel.cu:32",
    "alone_twice": "kernel.cu:35",
    "block_group": "kernel.cu:40",
    "leave_at_the_end": "",
    "skip_of_lanes": "kernel.cu:49",
}
"""The line of the barrier that is skipped. No code follows that of `leave_at_the_end`, so threads
that skip it may as well have left; a condition around a barrier alone is meant for the barrier."""
BY_WARPS = SKIPPED | {"skip_of_lanes": ""}
"""Below 7.0 all lanes of a warp execute a barrier together (PTX ISA, "bar"); `bar.warp.sync` does
nothing."""


@pytest.mark.parametrize("cc", ["6.1", "9.0"])
@pytest.mark.parametrize("tools", [("sync",), ("sync", "race", "init", "mem")])
def test_what_threads_skip_is_reported_and_what_they_leave_is_not(
    cc: str, tools: tuple[str, ...]
) -> None:
    gpu = wl.Device(cc=cc)
    module = gpu.compile(SOURCE)
    for name, line in (BY_WARPS if cc == "6.1" else SKIPPED).items():
        found = module[name][3, 64](gpu.zeros(64, np.int32), sanitize=tools).findings
        skips = [one for one in found if one.tool == "sync"]
        places = {one.line.rpartition("/")[2] for one in skips}
        assert places == ({line} if line else set()), (name, skips)
        assert all((one.kind, one.severity) == ("skipped barrier", "error") for one in skips)


IN_EACH_ARM = r"""
extern "C" __global__ void arms(int *o, int first) {
    if (threadIdx.x < first) {
        __syncthreads();
        o[threadIdx.x] = 2;
    } else {
        __syncthreads();
        o[threadIdx.x] = 1;
    }
}
"""


@pytest.mark.parametrize("cc", ["6.1", "9.0"])
@pytest.mark.parametrize("first", [32, 40])
def test_barriers_in_both_arms_of_a_branch_are_an_error(cc: str, first: int) -> None:
    """By whole warps as within one: CUDA leaves a barrier in conditional code undefined unless all
    threads of the block take the same branch (guide, "Synchronization Functions")."""
    gpu = wl.Device(cc=cc)
    out = gpu.zeros(64, np.int32)
    found = gpu.compile(IN_EACH_ARM)["arms"][1, 64](out, first, sanitize=("sync",)).findings
    assert {(one.kind, one.severity) for one in found} == {("divergent barrier", "error")}
    assert {one.line.rpartition("/")[2] for one in found} == {"kernel.cu:7"}


@pytest.mark.parametrize(
    ("cc", "cause"), [("6.1", "some lanes of a warp"), ("9.0", "exited without")]
)
def test_the_text_names_the_cause(cc: str, cause: str) -> None:
    """Threads 0 to 47 of 64 come to the barrier of `skip`: half of the lanes of warp 1."""
    gpu = wl.Device(cc=cc)
    kernel = gpu.compile(SOURCE)["skip"]
    (found,) = kernel[1, 64](gpu.zeros(64, np.int32), sanitize=("sync",)).findings
    assert cause in found.message.splitlines()[0]


def test_a_barrier_of_the_grid_that_threads_skip_is_reported() -> None:
    source = r"""
#include <cooperative_groups.h>
extern "C" __global__ void grid_group() {
  if (threadIdx.x < 16) cooperative_groups::this_grid().sync();
}
"""
    kernel = wl.Device("h100").compile(source)["grid_group"]
    run = kernel[2, 64](cooperative=True, sanitize=("sync",))
    assert {one.line.rpartition("/")[2] for one in run.findings} == {"kernel.cu:4"}
