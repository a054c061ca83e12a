"""Runs cost rules for the tests in this folder, and generates accesses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from warploom.cost.deferred_atomics import AccessCounts
from warploom.cost.fields import FIELDS

ALL = 0xFFFFFFFF
Rule = Callable[..., None]


def cost(
    rule: Rule, addresses: Sequence[int] | npt.NDArray[np.int64], mask: int, size: int
) -> dict[str, int]:
    """Returns the nonzero counters of an access by a rule, by name."""
    record = np.zeros(AccessCounts.WORDS, np.int64)
    padded = np.zeros(32, np.uint64)
    padded[: len(addresses)] = addresses
    rule(padded, mask, size, record)
    return {name: int(n) for name, n in zip(FIELDS, record, strict=False) if n}


def strided(stride: int, start: int = 0x7F00_0000_0000) -> npt.NDArray[np.int64]:
    return start + stride * np.arange(32)


@st.composite
def accesses(draw: st.DrawFn) -> tuple[list[int], int, int]:
    """Draws aligned addresses of mixed regularity, a nonempty active mask, and a size."""
    size = draw(st.sampled_from([1, 2, 4, 8, 16, 32]))
    span = draw(st.sampled_from([4, 40, 300, 1000, 5000, 8000]))
    base = draw(st.integers(0, 1 << 40)) * 256
    steps = draw(st.lists(st.integers(0, span), min_size=32, max_size=32))
    if draw(st.booleans()):
        steps.sort()
        one, other = draw(st.tuples(st.integers(0, 31), st.integers(0, 31)))
        steps[one], steps[other] = steps[other], steps[one]  # mostly, lanes in between fall or rise
    return [base + size * step for step in steps], draw(st.integers(1, ALL)), size


def active(addresses: list[int], mask: int) -> list[int]:
    return [a for lane, a in enumerate(addresses) if mask >> lane & 1]
