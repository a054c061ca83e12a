"""Checks how a block's threads form warps: by their linear id, x fastest, 32 at a time, on both
machines (CUDA C++ Programming Guide, "Thread Hierarchy" and "SIMT Architecture")."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

SOURCE = """
__device__ unsigned lane() { unsigned l; asm("mov.u32 %0, %%laneid;" : "=r"(l)); return l; }
__device__ unsigned warp() { unsigned w; asm("mov.u32 %0, %%warpid;" : "=r"(w)); return w; }
__device__ unsigned warps() { unsigned w; asm("mov.u32 %0, %%nwarpid;" : "=r"(w)); return w; }

extern "C" __global__ void whoami(uint3* ids, uint3* places) {
    int at = warp() * 32 + lane();
    ids[at] = make_uint3(threadIdx.x, threadIdx.y, threadIdx.z);
    places[at] = make_uint3(warp(), lane(), warps());
}
extern "C" __global__ void parts(unsigned* active) {
    if (lane() < 16) active[lane()] = __activemask();
    else if (lane() < 24) active[lane()] = __activemask();
    else active[lane()] = __activemask();
}
"""
NOBODY = 0xFFFFFFFF


@pytest.fixture(scope="module", params=["reference", "compiled"])
def made(request: pytest.FixtureRequest) -> tuple[wl.Device, wl.Module]:
    gpu = wl.Device("h100", engine=request.param)
    return gpu, gpu.compile(SOURCE)


@pytest.mark.parametrize(
    ("block", "known"),
    [
        # (warp, lane): thread; worked out as x + y * width + z * width * height = 32 * warp + lane.
        ((70, 1, 1), {(0, 31): (31, 0, 0), (1, 0): (32, 0, 0), (2, 5): (69, 0, 0), (2, 6): None}),
        ((10, 7, 1), {(0, 9): (9, 0, 0), (0, 10): (0, 1, 0), (1, 0): (2, 3, 0), (2, 5): (9, 6, 0)}),
        (
            (4, 3, 6),
            {
                (0, 4): (0, 1, 0),
                (0, 12): (0, 0, 1),
                (0, 31): (3, 1, 2),
                (1, 0): (0, 2, 2),
                (2, 0): (0, 1, 5),
                (2, 7): (3, 2, 5),
                (2, 8): None,
            },
        ),
        ((1, 1, 33), {(0, 31): (0, 0, 31), (1, 0): (0, 0, 32), (1, 1): None}),
    ],
)
def test_threads_fill_warps_x_fastest(
    made: tuple[wl.Device, wl.Module],
    block: tuple[int, int, int],
    known: dict[tuple[int, int], tuple[int, int, int] | None],
) -> None:
    gpu, module = made
    size = block[0] * block[1] * block[2]
    warps = -(-size // 32)
    empty = np.full((warps * 32, 3), NOBODY, np.uint32)
    ids, places = gpu.to_device(empty), gpu.to_device(empty)
    module["whoami"][1, block](ids, places)
    found, where = ids.copy_to_host(), places.copy_to_host()
    for (warp, lane), thread in known.items():
        got = found[warp * 32 + lane].tolist()
        assert got == ([NOBODY] * 3 if thread is None else list(thread))
    assert np.all(where[:size] == [[i // 32, i % 32, warps] for i in range(size)])
    assert np.all(found[size:] == NOBODY)


def test_halves_and_quarters_are_neighbouring_lanes(made: tuple[wl.Device, wl.Module]) -> None:
    """Expects the lower half-warp to be lanes 0 to 15, and the quarters of the upper one 16 to 23
    and 24 to 31."""
    gpu, module = made
    active = gpu.zeros(32, np.uint32)
    module["parts"][1, 32](active)
    expected = [0xFFFF] * 16 + [0xFF0000] * 8 + [0xFF000000] * 8
    assert active.copy_to_host().tolist() == expected
