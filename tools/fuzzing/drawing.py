"""Draws inputs from a seed: values of hypothesis' strategies, and bytes mutated from good ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

Drawn = TypeVar("Drawn")

EXAMPLES = 3
"""Values drawn for a seed, of which the last is taken: hypothesis begins with the simplest one."""


SLOW = [
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
    HealthCheck.filter_too_much,
]
"""Programs are drawn however long that takes."""


def draw(strategy: SearchStrategy[Drawn], number: int) -> Drawn:
    """Returns the value that a strategy gives for a seed, the same each time."""
    values: list[Drawn] = []

    @seed(number)
    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        derandomize=False,
        suppress_health_check=SLOW,
    )
    @given(strategy)
    def keep(value: Drawn) -> None:
        values.append(value)

    keep()
    return values[-1]


EDGES = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 1 << 31, (1 << 31) - 1, (1 << 63) - 1, -1, -2)
"""Numbers at which sizes and offsets overflow."""


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Returns the bytes with one to eight changes."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        if changed:
            rng.choice(CHANGES)(changed, rng)
    return bytes(changed)


def _flip(data: bytearray, rng: random.Random) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _overwrite_byte(data: bytearray, rng: random.Random) -> None:
    data[rng.randrange(len(data))] = rng.randrange(256)


def _overwrite_number(data: bytearray, rng: random.Random) -> None:
    """Puts an edge, or the old number with a small change, where a number may stand."""
    size, order = rng.choice((2, 4, 8)), rng.choice(("little", "big"))
    at = rng.randrange(len(data))
    at -= at % size if rng.random() < 0.7 else 0
    old = int.from_bytes(data[at : at + size], order)
    number = rng.choice((*EDGES, old + 1, old - 1, old * 2, len(data), len(data) - at))
    data[at : at + size] = (number % (1 << 8 * size)).to_bytes(size, order)


def _cut(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)) :]


def _delete(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.choice((1, 2, 8, 64))]


def _insert(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data))
    data[at:at] = rng.choice((rng.randbytes(8), bytes(64), b"\xff" * 8))


def _repeat(data: bytearray, rng: random.Random) -> None:
    """Copies a stretch to another place."""
    start, to = rng.randrange(len(data)), rng.randrange(len(data))
    data[to:to] = data[start : start + rng.choice((4, 16, 64, 256))]


CHANGES: tuple[Callable[[bytearray, random.Random], None], ...] = (
    *(_flip, _overwrite_byte, _overwrite_number, _overwrite_number),
    *(_cut, _delete, _insert, _repeat),
)
