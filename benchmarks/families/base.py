"""Describes what kernels.py measures: kernels, launch shapes, problems, expected results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class LaunchShape:
    """Gives the threads of a block by axis, and what the problem has beyond its natural size."""

    block: tuple[int, ...]
    excess: int = 0

    @property
    def threads(self) -> int:
        """Counts the threads of a block."""
        return math.prod(self.block)

    @property
    def label(self) -> str:
        """Writes the shape as `shapes` reads it."""
        sides = "x".join(map(str, self.block))
        return f"{sides}+{self.excess}" if self.excess else sides


def shapes(text: str) -> tuple[LaunchShape, ...]:
    """Reads shapes from words such as `16x16` or `256+7`; the first is the natural one."""
    words = [word.partition("+") for word in text.split()]
    return tuple(
        LaunchShape(tuple(map(int, sides.split("x"))), int(excess or 0))
        for sides, _, excess in words
    )


LINE = shapes("256 64 128 192 250 256+77")
LINEAR = shapes("256 8x8 24x8 8x32 4x64 8x4x4 250")
"""For kernels that linearise the index of a thread."""
PLANE = shapes("16x16 8x8 24x8 8x32 4x64 32x8 16x16+5")
WIDE = shapes("32x8 8x8 24x8 8x32 4x64 250 32x8+3")
SPACE = shapes("32x4x2 8x4x4 4x4x12 16x16 6x6x6 32x4x2+3")
POWERS = shapes("256 64 128 512 8x8 8x32 4x64 8x4x4")
"""For kernels whose blocks must have a power of two as the number of their threads."""
WARPS = shapes("256 64 192 1024 8x8 24x8 8x32 8x4x4 4x4x12")
"""For kernels whose blocks must consist of whole warps."""


@dataclass(frozen=True)
class Problem:
    """Holds one launch: grid, arguments, and the expected contents of those that the kernel writes.

    `expected` has arrays by the index of the argument. `shared_bytes` is dynamic shared memory.
    """

    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    expected: Mapping[int, Array]
    shared_bytes: int = 0


@dataclass(frozen=True)
class Case:
    """Describes a kernel of `source` (a file beside this one) and how to launch and check it.

    `build` makes the problem of a shape. A result may be off by `tolerance`, absolutely plus
    relatively, and must be exact where that is 0; a share `differing` of the elements may be
    anything. Of an `unordered` result, whose places depend on the order of threads, sorted elements
    are compared. Where the kernel reads what it writes, `in_place` restores it before each launch.
    `native` does the same computation in a compiled loop and takes the same arguments.
    """

    name: str
    source: str
    kernel: str
    shapes: Sequence[LaunchShape]
    build: Callable[[LaunchShape], Problem]
    tolerance: float = 0.0
    differing: float = 0.0
    in_place: bool = False
    unordered: bool = False
    native: Callable[..., None] | None = field(default=None, compare=False)

    @property
    def path(self) -> Path:
        """Gives the file of the CUDA source."""
        return HERE / self.source

    def check(self, shape: LaunchShape, index: int, got: Array, wanted: Array) -> None:
        """Compare what a launch left in argument `index` with the expected array.

        Raises AssertionError that names the kernel, the shape and the first wrong element.
        """
        if self.unordered:
            got, wanted = np.sort(got, None), np.sort(wanted, None)
        if self.tolerance:
            right = np.isclose(got, wanted, self.tolerance, self.tolerance)
        else:
            right = np.equal(got, wanted)
        if 1 - right.mean() > self.differing:
            first = tuple(int(at) for at in np.argwhere(~right)[0])
            raise AssertionError(
                f"{self.name}, block {shape.label}: {np.count_nonzero(~right)} of {right.size}"
                f" elements of argument {index} are wrong; element {first} is {got[first]}"
                f" instead of {wanted[first]}"
            )


def cover(block: Sequence[int], *sides: int) -> tuple[int, ...]:
    """Returns the grid of blocks that covers `sides` elements, one thread for each."""
    axes = (*block, 1, 1)
    return tuple(-(-side // axis) for side, axis in zip(sides, axes, strict=False))


def uniform(dtype: Any, *sides: int, seed: int = 0) -> Array:
    """Draws floating-point numbers from 0 to 1."""
    return np.random.default_rng(seed).random(sides).astype(dtype)


def integers(dtype: Any, low: int, high: int, *sides: int, seed: int = 0) -> Array:
    """Draws integers from `low` to `high - 1`."""
    return np.random.default_rng(seed).integers(low, high, sides).astype(dtype)
