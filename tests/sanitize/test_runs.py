"""Places of runs against the sets of bytes that they stand for."""

from __future__ import annotations

from random import Random

from warploom.rules.happens_before.runs import (
    are_apart,
    are_lanes_own,
    bytes_of,
    covers,
    place_of,
)

LINE = 128
Run = dict[int, int]
"""The lane that reaches each byte, counted from the one that reaches the first."""


def draw_run(draw: Random) -> tuple[int, Run]:
    """Return a random place, and which lane reaches which byte."""
    size = draw.choice((1, 2, 4, 8, 16))
    stride = size * draw.choice((1, 1, 2, 3, 5))
    begin = size * draw.randrange(LINE // size)
    lanes = draw.randint(1, (LINE - begin - size) // stride + 1)
    end = begin + (lanes - 1) * stride + size
    step = draw.choice((1, 1, -1))
    reached = {begin + k * stride + byte: k * step for k in range(lanes) for byte in range(size)}
    return place_of(size, step * stride, begin, end), reached


def test_bytes_of_a_place_are_those_that_its_lanes_reach() -> None:
    draw = Random(1)
    for _ in range(500):
        place, reached = draw_run(draw)
        bits = sum(bytes_of(place, word) << 32 * word for word in range(LINE // 32))
        assert {byte for byte in range(LINE) if bits >> byte & 1} == reached.keys()


def test_what_is_said_of_two_places_holds_for_their_bytes() -> None:
    draw, said = Random(2), [0, 0, 0]
    for _ in range(20_000):
        (one, first), (other, second) = draw_run(draw), draw_run(draw)
        common, lanes = first.keys() & second.keys(), draw.randint(-3, 3)
        if are_apart(one, other):
            assert not common
            said[0] += bool(max(first) > min(second) and max(second) > min(first))
        if covers(one, other):
            assert second.keys() <= first.keys()
            said[1] += 1
        if are_lanes_own(one, other, lanes):
            assert all(first[byte] == second[byte] + lanes for byte in common)
            said[2] += bool(common)
    assert min(said) > 20, "each was said often enough to be tested"


def test_fields_of_structures_are_apart_and_alike() -> None:
    x, y, whole = place_of(4, 12, 0, 124), place_of(4, 12, 4, 128), place_of(4, 4, 0, 128)
    assert are_apart(x, y)
    assert are_lanes_own(x, y, 0)
    assert covers(whole, x)
    assert not covers(x, y)
    assert not covers(x, whole)
