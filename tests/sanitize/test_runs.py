"""Places of runs against the sets of bytes that they stand for."""

from __future__ import annotations

from random import Random

from warploom.detector.runs import (
    bytes_of,
    covers,
    footprint_of,
    never_overlap,
    overlap_is_same_thread,
    words_of,
)

LINE = 128
ALL = (1 << 32) - 1
Run = dict[int, int]
"""The lane that reaches each byte, counted from the one that reaches the first."""


def draw_run(draw: Random) -> tuple[int, int, Run]:
    """Return a random place, its words, and which lane touches which byte."""
    size = draw.choice((1, 2, 4, 8, 16))
    stride = size * draw.choice((1, 1, 2, 3, 5))
    begin = size * draw.randrange(LINE // size)
    lanes = draw.randint(1, (LINE - begin - size) // stride + 1)
    end = begin + (lanes - 1) * stride + size
    step, there = draw.choice((1, 1, -1)), (1 << lanes) - 1
    if size >= 4 and stride == size and step > 0 and draw.random() < 0.5:
        there = draw.randrange(1, there + 1)
    touched = {
        begin + k * stride + byte: k * step
        for k in range(lanes)
        for byte in range(size)
        if there >> k & 1
    }
    place = footprint_of(size, step * stride, begin, end)
    return place, words_of(place, there), touched


def test_bytes_of_a_place_are_those_that_its_lanes_access() -> None:
    draw = Random(1)
    for _ in range(500):
        place, words, touched = draw_run(draw)
        bits = sum(bytes_of(place, words, word) << 32 * word for word in range(LINE // 32))
        assert {byte for byte in range(LINE) if bits >> byte & 1} == touched.keys()


def test_what_is_said_of_two_places_holds_for_their_bytes() -> None:
    draw, said = Random(2), [0, 0, 0]
    for _ in range(20_000):
        one, words, first = draw_run(draw)
        other, other_words, second = draw_run(draw)
        common, lanes = first.keys() & second.keys(), draw.randint(-3, 3)
        if never_overlap(one, words, other, other_words):
            assert not common
            said[0] += bool(max(first) > min(second) and max(second) > min(first))
        if covers(one, words, other, other_words):
            assert second.keys() <= first.keys()
            said[1] += 1
        if overlap_is_same_thread(one, other, lanes):
            assert all(first[byte] == second[byte] + lanes for byte in common)
            said[2] += bool(common)
    assert min(said) > 20, "each was said often enough to be tested"


def test_fields_of_structures_are_disjoint_and_alike() -> None:
    places = footprint_of(4, 12, 0, 124), footprint_of(4, 12, 4, 128), footprint_of(4, 4, 0, 128)
    x, y, whole = ((place, words_of(place, ALL)) for place in places)
    assert never_overlap(*x, *y)
    assert overlap_is_same_thread(x[0], y[0], 0)
    assert covers(*whole, *x)
    assert not covers(*x, *y)
    assert not covers(*x, *whole)


def test_words_of_lanes_that_are_there() -> None:
    for size, words in ((4, 0b1011), (8, 0b11001111), (16, 0xF0FF)):
        assert words_of(footprint_of(size, size, 0, 4 * size), 0b1011) == words
        assert words_of(footprint_of(size, size, size, 5 * size), 0b1011) == words << size // 4
