"""Faults in the shared memory of other blocks of a cluster, as findings; and a histogram over it
that is right."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

TEXT = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(2) ended(int *out) {
  __shared__ int s[32];
  s[threadIdx.x] = threadIdx.x;
  cg::this_cluster().sync();
  if (blockIdx.x == 1) return;
  for (int k = 0; k < 100; ++k) __syncthreads();
  out[threadIdx.x] = *cg::this_cluster().map_shared_rank(s + threadIdx.x, 1);  // ended
}
extern "C" __global__ void __cluster_dims__(2) beyond(int *out) {
  __shared__ int s[32];
  s[threadIdx.x] = threadIdx.x;
  cg::this_cluster().sync();
  if (blockIdx.x == 0)
    out[threadIdx.x] = *cg::this_cluster().map_shared_rank(s + threadIdx.x + 1, 1);  // beyond
  cg::this_cluster().sync();
}
extern "C" __global__ void __cluster_dims__(4) histogram(const int *x, int n, int *bins) {
  __shared__ int part[64];
  cg::cluster_group cluster = cg::this_cluster();
  part[threadIdx.x] = 0;
  cluster.sync();
  int first = cluster.block_rank() * blockDim.x + threadIdx.x;
  for (int i = first; i < n; i += cluster.num_blocks() * blockDim.x)
    atomicAdd(cluster.map_shared_rank(part + x[i] % 64, x[i] / 64), 1);
  cluster.sync();
  if (blockIdx.x < cluster.num_blocks()) atomicAdd(bins + first, part[threadIdx.x]);
}
"""


def line(part: str) -> str:
    """Returns the end of the place of the line of the text that has a comment."""
    return f":{1 + next(n for n, each in enumerate(TEXT.splitlines()) if each.endswith(part))}"


@pytest.fixture(scope="module", params=("compiled", "reference"))
def module(request: pytest.FixtureRequest) -> wl.Module:
    gpu = wl.Device(cc="9.0", engine=request.param)
    return gpu.compile(TEXT, name="clusters.cu")


def test_memory_of_a_block_that_has_ended(module: wl.Module) -> None:
    run = module["ended"][2, 32](np.zeros(32, np.int32), sanitize=("mem", "race"), schedule="fair")
    (found,) = run.findings
    assert (found.tool, found.kind) == ("mem", "no such block")
    assert f"{line('// ended')} in kernel" in found.message


def test_an_access_beyond_the_memory_of_another_block(module: wl.Module) -> None:
    out = np.full(32, 7, np.int32)
    run = module["beyond"][2, 32](out, sanitize=("mem",))
    (found,) = run.findings
    assert (found.kind, found.count) == ("out of bounds", 1)
    assert found.line.endswith(line("// beyond"))
    assert found.buffer == "the shared memory of block (1, 0, 0)"
    assert out.tolist() == [*range(1, 32), 0]


def test_a_histogram_over_a_cluster_is_clean(module: wl.Module) -> None:
    x = np.random.default_rng(1).integers(0, 256, 1000, np.int32)
    bins = np.zeros(256, np.int32)
    run = module["histogram"][4, 64](x, len(x), bins, sanitize=("mem", "race", "sync", "init"))
    assert not run.findings, run.findings
    assert bins.tolist() == np.bincount(x, minlength=256).tolist()
