"""Memory that kernels allocate themselves, under the tools: its bounds, races in it, and who frees
it too early. Each kernel has a wrong and a right twin."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import warploom as wl
from warploom.sanitize.findings import TOOLS

SOURCE = r"""
__device__ int *p;
#define SHARED_MALLOC if (i == 0) p = (int *)malloc(256); __syncthreads();
#define FREE __syncthreads(); if (i == 0) free(p);
#define KERNEL(name) extern "C" __global__ void name(int *out)
KERNEL(race_fail) {
  int i = threadIdx.x;
  SHARED_MALLOC
  p[i & 31] = i;  // race
  FREE
}
KERNEL(race_pass) {
  int i = threadIdx.x;
  SHARED_MALLOC
  p[i] = i;
  __syncthreads();
  out[i] = p[63 - i];
  FREE
}
KERNEL(bounds_fail) {
  int *q = (int *)malloc(16);
  q[0] = 0;
  q[4 * (threadIdx.x == 3)] = 1;  // out of bounds
  out[threadIdx.x] = q[0];
  free(q);
}
KERNEL(bounds_pass) {
  int *q = (int *)malloc(16);
  q[3 * (threadIdx.x == 3)] = 1;
  free(q);
}
KERNEL(freed_fail) {
  int i = threadIdx.x;
  SHARED_MALLOC
  p[i] = i;  // race, out of bounds
  if (i == 0) free(p);  // race
}
KERNEL(freed_pass) {
  int i = threadIdx.x;
  SHARED_MALLOC
  p[i] = i;
  FREE
}
KERNEL(unwritten_fail) {
  int *q = (int *)malloc(32);
  out[threadIdx.x] = q[threadIdx.x & 7] + 1;  // uninitialized read
  free(q);
}
KERNEL(unwritten_pass) {
  int *q = (int *)malloc(32);
  for (int k = 0; k < 8; k++) q[k] = k;
  out[threadIdx.x] = q[threadIdx.x & 7] + 1;
  free(q);
}
KERNEL(used_again_pass) {
  for (int k = 0; k < 3; k++) {
    int *q = (int *)malloc(64 * (1 + (threadIdx.x + k) % 3));
    *q = threadIdx.x + k;
    out[threadIdx.x] = *q;
    free(q);
  }
}
"""
KINDS = {
    "race": {"race"},
    "bounds": {"out of bounds"},
    "freed": {"race", "out of bounds"},
    "unwritten": {"uninitialized read"},
    "used_again": set[str](),
}


@cache
def loaded(engine: str) -> tuple[wl.Device, wl.Module]:
    gpu = wl.Device(engine=engine)
    return gpu, gpu.compile(SOURCE)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("name", KINDS)
def test_memory_that_a_kernel_allocates(name: str, engine: str) -> None:
    gpu, module = loaded(engine)
    tools = [tool for tool in TOOLS if tool != "leak"]
    lines = SOURCE.splitlines()
    for twin in ("pass", "fail")[: 1 + (len(KINDS[name]) > 0)]:
        run = module[f"{name}_{twin}"][1, 64](gpu.zeros(64, np.int32), sanitize=tools)
        kinds = {one.kind for one in run.findings}
        assert kinds == (KINDS[name] if twin == "fail" else set()), "\n".join(
            map(str, run.findings)
        )
        for one in run.findings:
            for place in filter(None, (one.line, one.other_line)):
                assert one.kind in lines[int(place.rpartition(":")[2]) - 1]
            assert "malloc by thread" in one.buffer
