"""The memory that loading needs grows with a text's length, whatever the text has many of."""

from __future__ import annotations

import tracemalloc

import growth
import pytest

from warploom.program.build import build
from warploom.ptx.parser import parse


def peak(text: str) -> int:
    """Returns the most bytes of Python objects while a text is parsed and its kernel built."""
    tracemalloc.start()
    try:
        program = build(parse(growth.HEAD + text), "k")
        assert program.live_in[0] == frozenset()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", growth.KINDS)
def test_memory_grows_with_the_text(kind: str) -> None:
    least, make = growth.KINDS[kind]
    peak(make(least))  # what is made once
    small, large = (make(least * factor) for factor in (1, 8))
    # Dicts and lists grow by doubling: twice as much is linear, too. A quadratic part gives 64.
    assert peak(large) < 16 * peak(small)


def test_a_declared_range_costs_nothing() -> None:
    _, make = growth.KINDS["registers declared by a range"]
    assert peak(make(1_000_000)) < 1.1 * peak(make(1000)) + 10_000
