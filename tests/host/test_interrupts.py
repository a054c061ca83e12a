"""Exploration that interrupts warps: lost updates are found, and reports repeat them."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

SOURCE = r"""
__global__ void lost_blocks(int *x) { if (threadIdx.x == 0) x[0] = x[0] + 1; }
__global__ void lost_warps(int *x) { if (threadIdx.x % 32 == 0) x[0] = x[0] + 1; }
__global__ void lost_lanes(int *x) { x[0] = x[0] + 1; }
"""


@pytest.fixture(scope="module")
def loaded() -> wl.Module:
    return wl.Device().compile(SOURCE)


@pytest.mark.parametrize(
    ("name", "grid", "block"),
    [("lost_blocks", 8, 1), ("lost_warps", 1, 256), ("lost_lanes", 1, 32)],
)
def test_a_lost_update_is_found_in_ten_runs(
    loaded: wl.Module, name: str, grid: int, block: int
) -> None:
    found = wl.explore(loaded[name][grid, block], np.zeros(1, np.int32), runs=10)
    assert found.differs
    assert found.causes


def test_an_order_with_interrupts_can_be_run_again(loaded: wl.Module) -> None:
    found = wl.explore(loaded["lost_blocks"][8, 1], np.zeros(1, np.int32), runs=10)
    assert found.second is not None
    order, x = found.second.order, np.zeros(1, np.int32)
    loaded["lost_blocks"][8, 1](x, schedule=order.schedule, interrupts=order.interrupts)
    assert x[0] < 8


def test_sanitizers_see_the_order_that_is_asked_for(loaded: wl.Module) -> None:
    """Eight blocks of one thread each load 0 before any of them stores."""
    order = wl.explore(loaded["lost_blocks"][8, 1], np.zeros(1, np.int32), runs=10).second
    assert order is not None
    points = order.order.interrupts
    x, turns = np.zeros(1, np.int32), [(block, 0) for _ in points for block in range(8)]
    run = loaded["lost_blocks"][8, 1](x, interrupts=points, turns=turns, sanitize=("race",))
    assert x[0] == 1
    assert "race" in {one.kind for one in run.findings}


def test_a_turn_that_names_no_warp_is_an_error(loaded: wl.Module) -> None:
    with pytest.raises(wl.LaunchError, match=r"the index of a warp in that block.*\(0, 1, 2\)"):
        loaded["lost_blocks"][8, 1](np.zeros(1, np.int32), turns=[(0, 1, 2)])


def test_exploring_says_why_warps_were_not_interrupted() -> None:
    """The threads of two blocks write one word by 65 instructions, none of which is ordered."""
    stores = "".join(f"x[0] = {number};" for number in range(65))
    source = f'extern "C" __global__ void k(volatile int *x) {{ {stores} }}'
    gpu = wl.Device()
    found = wl.explore(gpu.compile(source)["k"][2, 32], np.zeros(1, np.int32), runs=2)
    assert found.uninterrupted == (
        "65 instructions make conflicting memory accesses, but the search supports at most 64"
    )
