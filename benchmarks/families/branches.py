"""Kernels of many short branches: edges, early exits, differences that depend on a sign."""

from __future__ import annotations

import numpy as np

from families.base import LINE, PLANE, SPACE, Array, Case, LaunchShape, Problem, cover, uniform


def census(shape: LaunchShape) -> Problem:
    height, width = 400 + shape.excess, 500 + shape.excess
    image = uniform(np.float32, height, width)
    padded = np.pad(image, 1, constant_values=-1)
    bits = np.zeros(image.shape, np.uint8)
    for place in (0, 1, 2, 3, 5, 6, 7, 8):
        y, x = divmod(place, 3)
        bits = 2 * bits + (padded[y : y + height, x : x + width] > image)
    arguments = (image, np.zeros_like(bits), width, height)
    return Problem(cover(shape.block, width, height), arguments, {1: bits})


def enter_box(shape: LaunchShape) -> Problem:
    n = 200_000 + shape.excess
    rays = 4 * uniform(np.float32, n, 6) - 2
    rays[::7, 3] = 0
    half = np.array([1, 0.5, 0.75], np.float32)
    origin, along = rays[:, :3], rays[:, 3:]
    flat = np.abs(along) < 1e-6
    outside = (flat & (np.abs(origin) > half)).any(1)
    slope = np.where(flat, np.float32(1), along)
    a, b = (-half - origin) / slope, (half - origin) / slope
    enter = np.where(flat, 0, np.minimum(a, b)).max(1, initial=0)
    leave = np.where(flat, 1e30, np.maximum(a, b)).min(1)
    expected = np.where(outside | (enter > leave), -1, enter).astype(np.float32)
    arguments = (rays, np.zeros(n, np.float32), *half, n)
    return Problem(cover(shape.block, n), arguments, {1: expected})


def upwind(shape: LaunchShape) -> Problem:
    nz, ny, nx = (side + shape.excess for side in (40, 60, 80))
    values = uniform(np.float32, nz, ny, nx)
    flows = 2 * uniform(np.float32, 3, nz, ny, nx, seed=1) - 1
    change = sum(_against(values, flows[k], axis) for k, axis in enumerate((2, 1, 0)))
    arguments = (values, *flows, np.zeros_like(values), nx, ny, nz, np.float32(0.1))
    expected = values - np.float32(0.1) * change
    return Problem(cover(shape.block, nx, ny, nz), arguments, {4: expected})


def _against(values: Array, flow: Array, axis: int) -> Array:
    """Returns the transport along an axis: the flow times the difference against it."""
    before = np.diff(values, axis=axis, prepend=np.take(values, [0], axis))
    after = np.diff(values, axis=axis, append=np.take(values, [-1], axis))
    return flow * np.where(flow > 0, before, after)


CASES = (
    Case("census transform", "branches.cu", "census", PLANE, census),
    Case("rays into a box", "branches.cu", "enter_box", LINE, enter_box, 1e-4, differing=1e-3),
    Case("upwind transport, 3-D", "branches.cu", "upwind", SPACE, upwind, 1e-5),
)
