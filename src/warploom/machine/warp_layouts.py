"""Computes the thread indices of the lanes of each warp, and which warps have the same lane layout
(CUDA C++ Programming Guide, "Thread Hierarchy")."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from warploom.machine.launch import WARP_SIZE

Indices = npt.NDArray[np.uint32]


def thread_indices(block: tuple[int, int, int]) -> Indices:
    """Returns x, y and z of every thread of a block of these extents, shape (3, warps, 32), x
    fastest; lanes of the last warp without a thread begin at (0, 0, 0) again."""
    x, y, z = block
    warps = -(-x * y * z // WARP_SIZE)
    linear = np.arange(warps * WARP_SIZE, dtype=np.uint32).reshape(warps, WARP_SIZE)
    return np.stack((linear % x, linear // x % y, linear // (x * y) % z))


@lru_cache(maxsize=256)
def warp_layouts(block: tuple[int, int, int]) -> tuple[int, ...]:
    """Returns a layout number for each warp of a block, from 0 in order of first occurrence. Warps
    have the same number if the thread indices of their lanes differ from those of lane 0 by the
    same amounts: (48, 2) gives (0, 1, 0), as warp 1 wraps around in the middle; (64, 2) all 0.
    Lanes without a thread count (`thread_indices`), so the last warp may have another number."""
    # Signed, since a thread index may be smaller than that of lane 0.
    indices = thread_indices(block).astype(np.int64)
    steps = (indices - indices[:, :, :1]).transpose(1, 0, 2)
    layouts: dict[bytes, int] = {}
    return tuple(layouts.setdefault(step.tobytes(), len(layouts)) for step in steps)
