"""Data brought from one layout to another without shared memory: transposition, channels, rows."""

from __future__ import annotations

import numpy as np

from families.base import LINE, Case, LaunchShape, Problem, cover, integers, shapes, uniform

WHOLE = shapes("32x8 8x8 16x16 64x4 8x32 128")
"""Shapes whose blocks, four times as high, cover a square matrix of 768 rows exactly."""


def transpose_plain(shape: LaunchShape) -> Problem:
    matrix = uniform(np.float32, 768, 768)
    x, y, *_ = (*shape.block, 1)
    arguments = (matrix, np.zeros_like(matrix), 768, 768)
    return Problem(cover((x, 4 * y), 768, 768), arguments, {1: matrix.T})


def interleave(shape: LaunchShape) -> Problem:
    pixels, channels = 60_000 + shape.excess, 12
    image = uniform(np.float32, channels, pixels)
    arguments = (image, np.zeros((pixels, channels), np.float32), pixels, channels)
    return Problem(cover(shape.block, pixels), arguments, {1: image.T})


def one_hot(shape: LaunchShape) -> Problem:
    n, classes = 60_000 + shape.excess, 10
    labels = integers(np.int32, 0, classes, n)
    expected = np.eye(classes, dtype=np.float32)[labels]
    arguments = (labels, np.zeros_like(expected), classes, n)
    return Problem(cover(shape.block, n), arguments, {1: expected})


def lorenz(shape: LaunchShape) -> Problem:
    n, pitch, step = 200_000 + shape.excess, 4, 0.01
    states = 10 * uniform(np.float64, n, pitch)
    x, y, z, _ = states.T
    change = [10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z, np.zeros(n)]
    expected = states + step * np.stack(change, 1)
    expected[:, 3] = 0
    arguments = (states, np.zeros_like(states), pitch, step, n)
    return Problem(cover(shape.block, n), arguments, {1: expected})


def powers(shape: LaunchShape) -> Problem:
    n, pitch = 100_000 + shape.excess, 7
    values = uniform(np.float32, n)
    expected = np.zeros((n, pitch))
    expected[:, :6] = np.vander(values.astype(np.float64), 6, increasing=True)
    arguments = (values, np.zeros((n, pitch), np.float32), pitch, n)
    return Problem(cover(shape.block, n), arguments, {1: expected})


CASES = (
    Case("transposition, plain", "layouts.cu", "transpose_plain", WHOLE, transpose_plain),
    Case("planes to pixels", "layouts.cu", "interleave", LINE, interleave),
    Case("one-hot rows", "layouts.cu", "one_hot", LINE, one_hot),
    Case("Lorenz step, doubles", "layouts.cu", "lorenz", LINE, lorenz, 1e-12),
    Case("rows of powers", "layouts.cu", "powers", LINE, powers, 1e-5),
)
