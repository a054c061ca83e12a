"""Says how the threads of a block lie in its warps (CUDA C++ Programming Guide, "Thread
Hierarchy")."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from warploom.machine.launch import WARP_SIZE

Indices = npt.NDArray[np.uint32]


def thread_indices(block: tuple[int, int, int]) -> Indices:
    """Returns x, y and z of every thread of a block in whole warps, shape (3, warps, 32), x
    fastest."""
    x, y, z = block
    warps = -(-x * y * z // WARP_SIZE)
    linear = np.arange(warps * WARP_SIZE, dtype=np.uint32).reshape(warps, WARP_SIZE)
    return np.stack((linear % x, linear // x % y, linear // (x * y) % z))


@lru_cache(maxsize=256)
def warp_layouts(block: tuple[int, int, int]) -> tuple[int, ...]:
    """Returns a number for each warp of a block; warps of one number are those whose lanes differ
    from their first by the same in all thread indices."""
    indices = thread_indices(block).astype(np.int64)
    steps = (indices - indices[:, :, :1]).transpose(1, 0, 2)
    numbers: dict[bytes, int] = {}
    return tuple(numbers.setdefault(one.tobytes(), len(numbers)) for one in steps)
