"""Particles, prices, clusters: a record or a few for each thread."""

from __future__ import annotations

import math

import numpy as np

from families import loops
from families.base import LINE, Case, LaunchShape, Problem, cover, uniform


def nbody(shape: LaunchShape) -> Problem:
    n = 2000 + shape.excess
    bodies = uniform(np.float32, n, 4)
    delta = bodies[None, :, :3].astype(np.float64) - bodies[:, None, :3]
    pull = bodies[None, :, 3] * ((delta**2).sum(2) + 0.01) ** -1.5
    expected = (pull[:, :, None] * delta).sum(1)
    arguments = (bodies, np.zeros((n, 3), np.float32), n)
    return Problem(cover(shape.block, n), arguments, {1: expected}, 16 * shape.threads)


def move(shape: LaunchShape) -> Problem:
    n, time = 200_000 + shape.excess, np.float32(0.25)
    places, speeds = uniform(np.float32, n, 3), uniform(np.float32, n, 3, seed=1) - np.float32(0.5)
    moved = places.astype(np.float64) + speeds.astype(np.float64) * 0.25
    turned = np.where((moved < 0) | (moved > 1), -speeds, speeds)
    arguments = (places, speeds, np.zeros_like(places), np.zeros_like(places), n, time)
    return Problem(cover(shape.block, n), arguments, {2: moved, 3: turned})


def normalise(shape: LaunchShape) -> Problem:
    n = 400_000 + shape.excess
    vectors = uniform(np.float32, n, 4)
    expected = vectors / np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return Problem(cover(shape.block, n), (vectors, np.zeros_like(vectors), n), {1: expected})


def black_scholes(shape: LaunchShape) -> Problem:
    n, rate, volatility = 100_000 + shape.excess, 0.02, 0.3
    s, k = 5 + 25 * uniform(np.float32, n), 1 + 99 * uniform(np.float32, n, seed=1)
    t = np.float32(0.25) + 9 * uniform(np.float32, n, seed=2)
    root = np.sqrt(t.astype(np.float64))
    d1 = (np.log(s.astype(np.float64) / k) + (rate + 0.5 * volatility**2) * t) / volatility / root
    d2, discounted = d1 - volatility * root, k * np.exp(-rate * t.astype(np.float64))
    below = np.vectorize(lambda d: 0.5 * math.erfc(-d / math.sqrt(2)))
    call = s * below(d1) - discounted * below(d2)
    put = call + discounted - s
    none = np.zeros(n, np.float32)
    arguments = (s, k, t, none, none.copy(), n, rate, volatility)
    return Problem((100,), arguments, {3: call, 4: put})


def nearest(shape: LaunchShape) -> Problem:
    n, count = 150_000 + shape.excess, 12
    points, centres = uniform(np.float32, n, 6), uniform(np.float32, count, 6, seed=1)
    distances = ((points[:, None].astype(np.float64) - centres) ** 2).sum(2)
    expected = distances.argmin(1).astype(np.int32)
    arguments = (points, centres, np.zeros_like(expected), n, count)
    return Problem(cover(shape.block, n), arguments, {2: expected}, 24 * count)


def polynomial(shape: LaunchShape) -> Problem:
    n, degree = 900_000 + shape.excess, 20
    x, coefficients = uniform(np.float64, n), uniform(np.float64, degree + 1, seed=1)
    expected = np.polynomial.polynomial.polyval(x, coefficients)
    arguments = (x, coefficients, np.zeros_like(x), n, degree)
    return Problem(cover(shape.block, n), arguments, {2: expected})


CASES = (
    Case("n-body in tiles", "simulation.cu", "nbody", LINE, nbody, 1e-3),
    # A particle that comes to rest at a wall may round to either side of it.
    Case("particles of 12 bytes", "simulation.cu", "move", LINE, move, 1e-5, differing=1e-4),
    Case("normalisation, float4", "simulation.cu", "normalise", LINE, normalise, 1e-5),
    Case("Black-Scholes", "simulation.cu", "black_scholes", LINE, black_scholes, 1e-3),
    # Two centres may be equally near but for rounding.
    Case("k-means assignment", "simulation.cu", "nearest", LINE, nearest, differing=1e-4,
           native=loops.nearest),
    Case("polynomial, doubles", "simulation.cu", "polynomial", LINE, polynomial, 1e-12),
)  # fmt: skip
