"""`wl.testing`: assertions that pass on good kernels, and name the line of bad ones."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import warploom as wl

SOURCE = """
extern "C" __global__ void good(float* out, const float* in, int n) {
    __shared__ float t[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    t[threadIdx.x] = in[i];
    out[i] = t[threadIdx.x];
}
extern "C" __global__ void bad(float* out, const float* in, int n) {
    __shared__ float t[512];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    t[threadIdx.x * 2] = in[i * 4 % n];
    if (i % 3) { for (int k = 0; k < n; k += 512) out[i] += t[k % 512]; }
    out[i] += t[threadIdx.x * 2];
}
"""
STORE, BRANCH, LOAD = 13, 14, 15


@cache
def run(name: str) -> wl.Run:
    gpu = wl.Device("h100")
    data = gpu.to_device(np.ones(2048, np.float32))
    return gpu.compile(SOURCE, name="a.cu")[name][8, 256](gpu.zeros(2048, np.float32), data, 2048)


def failure(check: object, *args: object, **options: object) -> str:
    with pytest.raises(AssertionError) as caught:
        check(run("bad"), *args, **options)  # type: ignore[operator]
    return str(caught.value)


def test_good_kernels_pass() -> None:
    wl.testing.assert_coalesced(run("good"), max_sectors_per_request=4)
    wl.testing.assert_no_bank_conflicts(run("good"))
    wl.testing.assert_no_divergence(run("good"))
    wl.testing.assert_occupancy(run("good"), at_least=1.0)


def test_uncoalesced_lines_are_named() -> None:
    """Lanes at a stride of 16 bytes: 512 bytes a warp are 16 sectors."""
    text = failure(wl.testing.assert_coalesced)
    assert f"a.cu:{STORE}: 16.00 sectors per load (stride 16 bytes)" in text
    wl.testing.assert_coalesced(run("bad"), max_sectors_per_request=16)


def test_conflicts_are_named_with_their_lanes() -> None:
    """Every second word: lanes l and l + 16 meet, one wavefront too many for each of 64 warps."""
    text = failure(wl.testing.assert_no_bank_conflicts)
    assert f"a.cu:{STORE}: 64 extra wavefronts (lanes 0, 16 access the same bank)" in text


def test_divergence_is_named_and_can_be_asked_for_by_line() -> None:
    assert f"a.cu:{BRANCH}: 64 of " in failure(wl.testing.assert_no_divergence)
    assert f"a.cu:{BRANCH}" in failure(wl.testing.assert_no_divergence, lines=[BRANCH])
    wl.testing.assert_no_divergence(run("bad"), lines=[STORE, LOAD])


def test_occupancy_says_what_limits_it() -> None:
    gpu = wl.Device("rtx-2080-ti")
    kernel = gpu.compile(SOURCE, name="a.cu")["good"]
    out = gpu.zeros(256, np.float32)
    done = kernel[1, 32, None, 60_000](out, out, 256)  # one block of one warp an SM
    with pytest.raises(AssertionError, match=r"0\.031.*a\.cu:.*limited by shared"):
        wl.testing.assert_occupancy(done, 0.5)
    wl.testing.assert_occupancy(done, 1 / 32)
