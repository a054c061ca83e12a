"""Checks the layouts of threads in warps by hand: 32 threads at a time, x fastest (CUDA C++
Programming Guide, "Thread Hierarchy")."""

from __future__ import annotations

import pytest

from warploom.machine.warp_layouts import thread_indices, warp_layouts


@pytest.mark.parametrize(
    ("block", "layouts"),
    [
        ((256, 1, 1), (0,) * 8),  # each warp is 32 threads along x
        ((64, 2, 1), (0,) * 4),
        ((16, 4, 1), (0, 0)),  # two rows of 16 each
        ((8, 8, 1), (0, 0)),
        # 24 + 8 threads, then 16 + 16, then 8 + 24, then as the first.
        ((24, 8, 1), (0, 1, 2, 0, 1, 2)),
        # A plane of 4 x 4 is half of a warp: each has two whole planes.
        ((4, 4, 4), (0, 0)),
        # 32 threads of a row; 8 and 24 of the next; 16 and 16; 24 and 8; 32 again.
        ((40, 4, 1), (0, 1, 2, 3, 0)),
    ],
)
def test_warps_of_one_layout_differ_by_the_same(
    block: tuple[int, int, int], layouts: tuple[int, ...]
) -> None:
    assert warp_layouts(block) == layouts


def test_indices_by_hand() -> None:
    """Expects thread 31 of 12 x 5 in row 2 at x 7, and the second warp to begin after it."""
    x, y, z = thread_indices((12, 5, 1))
    assert (x[0, 31], y[0, 31], z[0, 31]) == (7, 2, 0)
    assert (x[1, 0], y[1, 0]) == (8, 2)
