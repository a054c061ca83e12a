"""Stencils: each element of a grid from its neighbours."""

from __future__ import annotations

from itertools import product

import numpy as np

from families import loops
from families.base import (
    PLANE,
    SPACE,
    WIDE,
    Array,
    Case,
    LaunchShape,
    Problem,
    cover,
    integers,
    uniform,
)


def _around(grid: Array, dy: int, dx: int) -> Array:
    """Returns the inner elements' neighbours at an offset."""
    height, width = grid.shape
    return grid[1 + dy : height - 1 + dy, 1 + dx : width - 1 + dx]


def _inner(image: Array, inner: Array) -> Array:
    """Returns zeros like `image` with `inner` inside of a border of one element."""
    result = np.zeros_like(image)
    result[1:-1, 1:-1] = inner
    return result


def _plane(shape: LaunchShape, image: Array, expected: Array, *more: float) -> Problem:
    height, width = image.shape
    arguments = (image, np.zeros_like(expected), width, height, *more)
    return Problem(cover(shape.block, width, height), arguments, {1: expected})


def max3x3(shape: LaunchShape) -> Problem:
    image = integers(np.uint8, 0, 256, 512 + shape.excess, 640 + shape.excess)
    padded = np.pad(image, 1, "edge")
    offsets = product((-1, 0, 1), repeat=2)
    return _plane(shape, image, np.max([_around(padded, *offset) for offset in offsets], axis=0))


def cross_half(shape: LaunchShape) -> Problem:
    image = uniform(np.float16, 768 + shape.excess, 768 + shape.excess)
    wide = image.astype(np.float32)
    sides = sum(_around(wide, *at) for at in ((0, -1), (0, 1), (-1, 0), (1, 0)))
    inner = np.float32(0.25) * sides - np.float32(0.5) * _around(wide, 0, 0)
    return _plane(shape, image, _inner(image, inner))


def nine_point(shape: LaunchShape) -> Problem:
    image = uniform(np.float32, 1000 + shape.excess, 1000 + shape.excess)
    wide = image.astype(np.float64)
    corners = sum(_around(wide, *at) for at in product((-1, 1), repeat=2))
    edges = sum(_around(wide, *at) for at in ((0, -1), (0, 1), (-1, 0), (1, 0)))
    return _plane(shape, image, _inner(image, (4 * edges + corners - 20 * _around(wide, 0, 0)) / 6))


def heat(shape: LaunchShape) -> Problem:
    image = uniform(np.float64, 1000 + shape.excess, 1000 + shape.excess)
    padded = np.pad(image, 1, "edge")
    sides = sum(_around(padded, *at) for at in ((0, -1), (0, 1), (-1, 0), (1, 0)))
    return _plane(shape, image, image + 0.2 * (sides - 4 * image), 0.2)


def seven_point(shape: LaunchShape) -> Problem:
    side = 96 + shape.excess
    cube = uniform(np.float32, side, side, side)
    inner = -6 * cube[1:-1, 1:-1, 1:-1].astype(np.float64)
    for axis, step in product(range(3), (-1, 1)):
        inner += np.roll(cube, step, axis)[1:-1, 1:-1, 1:-1]
    result = np.zeros_like(cube)
    result[1:-1, 1:-1, 1:-1] = inner
    arguments = (cube, np.zeros_like(cube), side, side, side)
    return Problem(cover((*shape.block, 1), side, side, side), arguments, {1: result})


def blur_tiled(shape: LaunchShape) -> Problem:
    image = uniform(np.float32, 500 + shape.excess, 700 + shape.excess)
    padded = np.pad(image, 1)
    blurred = sum(_around(padded, *at) for at in product((-1, 0, 1), repeat=2)) / np.float32(9)
    made = _plane(shape, image, np.asarray(blurred))
    width, height = (*shape.block, 1)[:2]
    return Problem(made.grid, made.arguments, made.expected, 4 * (width + 2) * (height + 2))


def life(shape: LaunchShape) -> Problem:
    cells = integers(np.uint8, 0, 2, 512 + shape.excess, 512 + shape.excess)
    offsets = [at for at in product((-1, 0, 1), repeat=2) if any(at)]
    count = sum(np.roll(cells, at, (0, 1)) for at in offsets)
    alive = (count == 3) | ((count == 2) & (cells == 1))
    return _plane(shape, cells, alive.astype(np.uint8))


CASES = (
    Case("3x3 maximum, bytes", "stencils.cu", "max3x3", WIDE, max3x3),
    Case("5-point, halves", "stencils.cu", "cross_half", PLANE, cross_half, 4e-3),
    Case("9-point, floats", "stencils.cu", "nine_point", PLANE, nine_point, 1e-5,
           native=loops.nine_point),
    Case("heat, doubles", "stencils.cu", "heat", WIDE, heat, 1e-12, native=loops.heat),
    Case("7-point, 3-D", "stencils.cu", "seven_point", SPACE, seven_point, 1e-5),
    Case("blur in tiles", "stencils.cu", "blur_tiled", PLANE, blur_tiled, 1e-5),
    Case("game of life", "stencils.cu", "life", WIDE, life, native=loops.life),
)  # fmt: skip
