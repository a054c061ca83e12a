"""Tests, in machine code, that a wait for groups of asynchronous copies ends with the groups that
it names."""

from __future__ import annotations

import numpy as np
import pytest
from needs import NEEDS_PTXAS

import warploom as wl
from warploom.devices.timing import find_timing

pytestmark = NEEDS_PTXAS

COPIES = """
extern "C" __global__ void k(const float4 *in, float *out) {
    __shared__ float4 first[32], second[32];
    int lane = threadIdx.x;
    unsigned a = __cvta_generic_to_shared(&first[lane]);
    unsigned b = __cvta_generic_to_shared(&second[lane]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(a), "l"(in + lane));
    asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
    float x = first[lane].x;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(b), "l"(in + 1024 + lane));
    asm volatile("cp.async.commit_group; WAIT" ::: "memory");
#pragma unroll
    for (int i = 0; i < 250; i++) x = x * 0.5f + 1;
    if (x > 1e30f) return;
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    out[lane] = x + second[lane].x;
}
"""


def test_a_wait_for_groups_does_not_wait_for_later_ones() -> None:
    """The first group has ended when the second one begins, so that a wait in which one may be open
    is no wait. The second is in flight for less than the chain of 250 multiply-adds of 4 cycles,
    which hides it unless it is waited for before."""
    gpu = wl.Device("h100", record=True)
    spec = find_timing(gpu.spec)
    cycles: list[int] = []
    for wait in ("", "cp.async.wait_group 1;", "cp.async.wait_group 0;"):
        kernel = gpu.compile(COPIES.replace("WAIT", wait))["k"]
        data = gpu.to_device(np.ones((2048, 4), np.float32))
        timing = kernel[1, 32](data, gpu.zeros(32, np.float32)).time()
        assert timing.basis.code == "machine code"
        cycles.append(timing.cycles)
    none, others, all_groups = cycles
    assert others - none <= 10
    assert all_groups - none == pytest.approx(spec.latency_dram, rel=0.15)
