"""Integer arithmetic and random numbers."""

from __future__ import annotations

import numpy as np

from families.base import (
    LINE,
    PLANE,
    Array,
    Case,
    LaunchShape,
    Problem,
    cover,
    integers,
)


def modular_powers(shape: LaunchShape) -> Problem:
    n, modulus = 25_000 + shape.excess, 4_294_967_291
    bases = integers(np.uint64, 0, 1 << 40, n)
    exponents = integers(np.uint32, 0, 1 << 16, n, seed=1)
    powers = [pow(b, e, modulus) for b, e in zip(bases.tolist(), exponents.tolist(), strict=True)]
    expected = np.array(powers, np.uint64)
    arguments = (bases, exponents, np.zeros_like(expected), n, modulus)
    return Problem(cover(shape.block, n), arguments, {2: expected})


def product_int8(shape: LaunchShape) -> Problem:
    m, n, words = 256 + shape.excess, 320 + shape.excess, 48
    a = integers(np.int8, -128, 128, m, 4 * words)
    b = integers(np.int8, -128, 128, n, 4 * words, seed=1)
    expected = a.astype(np.int32) @ b.astype(np.int32).T
    arguments = (a.view(np.int32), b.view(np.int32), np.zeros_like(expected), m, n, words)
    return Problem(cover(shape.block, n, m), arguments, {2: expected})


def _xorshift(state: Array) -> Array:
    state = state ^ state << 13
    state = state ^ state >> 17
    return state ^ state << 5


def monte_carlo(shape: LaunchShape) -> Problem:
    n, points = 40_000 + shape.excess, 120
    state, hits = (
        np.uint32(2654435769) * np.arange(1, n + 1, dtype=np.uint32),
        np.zeros(n, np.int64),
    )
    for _ in range(points):
        first = _xorshift(state)
        state = _xorshift(first)
        x, y = ((s >> 8).astype(np.float64) / (1 << 24) for s in (first, state))
        hits += x * x + y * y < 1
    expected = hits.astype(np.uint32)
    return Problem(cover(shape.block, n), (np.zeros_like(expected), n, points), {0: expected})


def collatz(shape: LaunchShape) -> Problem:
    n = 25_000 + shape.excess
    values, steps = np.arange(1, n + 1, dtype=np.int64), np.zeros(n, np.int32)
    while (values != 1).any():
        going = values != 1
        steps += going
        values = np.where(going, np.where(values % 2, 3 * values + 1, values // 2), values)
    return Problem(cover(shape.block, n), (np.zeros_like(steps), n), {0: steps})


def primes(shape: LaunchShape) -> Problem:
    n = 50_000 + shape.excess
    prime = np.ones(n, np.uint8)
    prime[:2] = 0
    for d in range(2, int(n**0.5) + 1):
        prime[d * d :: d] = 0
    return Problem(cover(shape.block, n), (np.zeros_like(prime), n), {0: prime})


CASES = (
    Case("modular powers, 64 bits", "arithmetic.cu", "modular_powers", LINE, modular_powers),
    Case("matrix product, int8", "arithmetic.cu", "product_int8", PLANE, product_int8),
    # A point on the circle may round to either side of it.
    Case("Monte Carlo", "arithmetic.cu", "monte_carlo", LINE, monte_carlo, differing=1e-3),
    Case("Collatz", "arithmetic.cu", "collatz", LINE, collatz),
    Case("primes by division", "arithmetic.cu", "primes", LINE, primes),
)
