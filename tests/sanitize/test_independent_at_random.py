"""Random kernels whose addresses are linear, under the race detector of both machines: the compiled
one leaves out what no other thread can meet, the reference machine has every access seen."""

from __future__ import annotations

import random

import numpy as np
import pytest
from parts import some_now

import warploom as wl

THREADS, BLOCKS, WORDS = (8, 4), (2, 2), 512
INDICES = ("threadIdx.x", "threadIdx.y", "blockIdx.x", "blockIdx.y", "i")


def index(rng: random.Random) -> str:
    """Returns the sum of some indices, each with a stride, and a constant."""
    strides = {each: rng.choice((0, 1, 2, 4, 8, 32, 64)) for each in INDICES}
    return " + ".join(
        (*(f"{s} * {each}" for each, s in strides.items() if s), str(rng.randrange(9)))
    )


def condition(rng: random.Random) -> str:
    """Returns a bound of a sum of indices."""
    return f"{index(rng)} {rng.choice(('<', '<=', '>', '==', '!='))} {rng.choice((0, 1, 4, 7, 40))}"


def statement(rng: random.Random) -> str:
    """Returns an access, or one under a condition, or a barrier."""
    array = rng.choice(("x", "tile"))
    if rng.random() < 0.2:
        return "__syncthreads();"
    access = f"{array}[{index(rng)}] {rng.choice(('=', '+='))} k + i;"
    if rng.random() < 0.4:
        access = f"k += {array}[{index(rng)}];"
    return access if rng.random() < 0.5 else f"if ({condition(rng)}) {access}"


def kernel(rng: random.Random) -> str:
    """Returns a kernel, a statement a line; some of it in a loop."""
    first, looped, last = ([statement(rng) for _ in range(rng.randint(0, 3))] for _ in range(3))
    lines = [*first, "for (i = 0; i < n; ++i) {", *looped, "}", *last]
    return (
        "__global__ void made(int *x, int n, int k) { __shared__ int tile[512]; int i = 0;\n"
        + "\n".join(lines)
        + "\nx[511 - 32 * threadIdx.y - threadIdx.x] = k; }"
    )


@pytest.mark.parametrize("seed", some_now(range(40), 4))
def test_both_machines_find_the_same_races(seed: int) -> None:
    text = kernel(random.Random(seed))
    found = list[set[tuple[str, frozenset[str]]]]()
    for engine in ("compiled", "reference"):
        gpu = wl.Device("a100", engine=engine, sanitize=("race",))
        made = gpu.compile(text)["made"]
        run = made[BLOCKS, THREADS](gpu.zeros(WORDS, np.int32), np.int32(3), np.int32(1))
        found.append({(one.kind, frozenset((one.line, one.other_line))) for one in run.findings})
    assert found[0] == found[1], text
