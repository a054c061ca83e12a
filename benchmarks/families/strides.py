"""Arrays worked through by grid-stride loops, of a grid that is limited."""

from __future__ import annotations

import numpy as np

from families import strided_loops as loops
from families.base import LINE, Case, LaunchShape, Problem, integers, uniform

BLOCKS = 264
"""Blocks of a launch: two for each multiprocessor of an H100, whatever the problem's size."""


def scale(shape: LaunchShape) -> Problem:
    n = 4_000_000 + shape.excess
    values, factor = uniform(np.float32, n), np.float32(1.5)
    return Problem((BLOCKS,), (values, factor, n), {0: values * factor})


def axpy(shape: LaunchShape) -> Problem:
    n, a = 2_000_000 + shape.excess, 0.75
    x, y = uniform(np.float64, n), uniform(np.float64, n, seed=1)
    return Problem((BLOCKS,), (x, y, a, n), {1: a * x + y})


def triad(shape: LaunchShape) -> Problem:
    n, factor = 3_000_000 + shape.excess, np.float32(3)
    a, b = uniform(np.float32, n), uniform(np.float32, n, seed=1)
    arguments = (a, b, np.zeros_like(a), factor, n)
    return Problem((BLOCKS,), arguments, {2: a + factor * b})


def amsgrad(shape: LaunchShape) -> Problem:
    n = 1_000_000 + shape.excess
    p, g, m, v, largest = (uniform(np.float32, n, seed=seed) for seed in range(5))
    rate, beta1, beta2 = (np.float32(number) for number in (1e-3, 0.9, 0.999))
    first = beta1 * m + (1 - beta1) * g
    second = beta2 * v + (1 - beta2) * g * g
    most = np.maximum(largest, second)
    stepped = p - rate * first / (np.sqrt(most) + np.float32(1e-8))
    arguments = (p, g, m, v, largest, rate, beta1, beta2, n)
    return Problem((BLOCKS,), arguments, {0: stepped, 2: first, 3: second, 4: most})


def normalise_batch(shape: LaunchShape) -> Problem:
    batches, n = 12, 400_000 + shape.excess
    values = uniform(np.float32, batches, n)
    gains, offsets = uniform(np.float32, batches, seed=1), uniform(np.float32, batches, seed=2)
    expected = (values - offsets[:, None]) * gains[:, None]
    arguments = (values, gains, offsets, np.zeros_like(values), n)
    return Problem((BLOCKS // batches, batches), arguments, {3: expected})


def clamp_by_pointer(shape: LaunchShape) -> Problem:
    n, low, high = 4_000_000 + shape.excess, np.float32(0.25), np.float32(0.75)
    values = uniform(np.float32, n)
    arguments = (values, np.zeros_like(values), low, high, n)
    return Problem((BLOCKS,), arguments, {1: values.clip(low, high)})


def blend_64(shape: LaunchShape) -> Problem:
    n, weight = 3_000_000 + shape.excess, 77
    a, b = integers(np.uint8, 0, 256, n), integers(np.uint8, 0, 256, n, seed=1)
    mixed = a.astype(np.int32) * weight + b.astype(np.int32) * (256 - weight)
    arguments = (a, b, np.zeros_like(a), weight, n)
    return Problem((BLOCKS,), arguments, {2: (mixed >> 8).astype(np.uint8)})


def find_first(shape: LaunchShape) -> Problem:
    """One element of 100,000 matches: few threads have a match, and those stop early."""
    n, wanted = 4_000_000 + shape.excess, 99
    values = integers(np.int32, 0, 100_000, n)
    place = np.flatnonzero(values == wanted)[:1].astype(np.int32)
    arguments = (values, wanted, np.array([n], np.int32), n)
    return Problem((BLOCKS,), arguments, {2: place})


def lengths(shape: LaunchShape) -> Problem:
    n = 2_000_000 + shape.excess
    vectors = uniform(np.float32, n, 3)
    expected = np.sqrt((vectors.astype(np.float64) ** 2).sum(1))
    arguments = (vectors, np.zeros(n, np.float32), n)
    return Problem((BLOCKS,), arguments, {1: expected})


def kick(shape: LaunchShape) -> Problem:
    n, dt = 1_500_000 + shape.excess, np.float32(0.01)
    particles = uniform(np.float32, n, 4) + np.float32(0.5)
    moved = particles.copy()
    moved[:, 1] += dt * particles[:, 2] / particles[:, 3]
    moved[:, 0] += dt * moved[:, 1]
    return Problem((BLOCKS,), (particles, dt, n), {0: moved})


CASES = (
    Case("strides, scale", "strides.cu", "scale", LINE, scale, in_place=True),
    Case("strides, axpy, doubles", "strides.cu", "axpy", LINE, axpy, 1e-12, in_place=True,
           native=loops.axpy),
    Case("strides, triad", "strides.cu", "triad", LINE, triad, 1e-5, native=loops.triad),
    Case("strides, AMSGrad", "strides.cu", "amsgrad", LINE, amsgrad, 1e-5, in_place=True),
    Case("strides, batches", "strides.cu", "normalise_batch", LINE, normalise_batch, 1e-5),
    Case("strides, by pointer", "strides.cu", "clamp_by_pointer", LINE, clamp_by_pointer),
    Case("strides, 64-bit index", "strides.cu", "blend_64", LINE, blend_64),
    Case("strides, first match", "strides.cu", "find_first", LINE, find_first, in_place=True),
    Case("strides, 3-vectors", "strides.cu", "lengths", LINE, lengths, 1e-5),
    Case("strides, particles", "strides.cu", "kick", LINE, kick, 1e-5, in_place=True),
)  # fmt: skip
