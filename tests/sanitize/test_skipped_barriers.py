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
    "alone": "",
    "skip_of_lanes": "kernel.cu:36",
}
"""The line of the barrier that is skipped. Nothing is behind that of the last kernel, so threads
that do not come to it may as well have left."""
BY_WARPS = SKIPPED | {"skip": "", "skip_of_lanes": ""}
"""Below 7.0 a warp comes to a barrier as a whole, if some of its lanes do (PTX ISA, "bar")."""


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
        assert all((one.kind, one.severity) == ("skipped barrier", "warning") for one in skips)
