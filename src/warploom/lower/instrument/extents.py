"""Emits the range of memory in which all lies that a warp reaches by an access."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warploom.llvm.lanes import I1, I32, I64, LANES, Lanes, Value


@dataclass(frozen=True, slots=True)
class AccessExtent:
    """Bounds what a warp reaches: from byte `low` to byte `high`; `is_dense`: whether its lanes that
    are on reach every byte of that together."""

    low: Value
    high: Value
    is_dense: Value


def extent_of(
    lanes: Lanes, size: int, width: int, step: Value, addresses: Value, on: Value
) -> AccessExtent:
    """Return the extent of what the lanes that are `on` reach, `size` bytes each, where in each of
    `width` runs of lanes addresses follow each other by a step."""
    b = lanes.b
    run = LANES // width
    firsts = [lanes.lane(addresses, lane) for lane in range(0, LANES, run)]
    first_on, last_on, adjoin = _active_range(lanes, on)
    low, high = _bounds(lanes, [b.add(firsts[0], b.mul(step, at)) for at in (first_on, last_on)])
    is_dense = b.and_(adjoin, b.icmp_unsigned("==", step, I64(size)))
    if width > 1:
        lasts = [b.add(first, b.mul(step, I64(run - 1))) for first in firsts]
        lowest, highest = _bounds(lanes, [*firsts, *lasts])
        follows: Value = I1(1)
        for last, first in zip(lasts, firsts[1:], strict=False):
            follows = b.and_(follows, b.icmp_unsigned("==", b.add(last, step), first))
        low, high = b.select(follows, low, lowest), b.select(follows, high, highest)
        is_dense = b.and_(is_dense, follows)
    return AccessExtent(low, b.add(high, I64(size)), is_dense)


def _active_range(lanes: Lanes, on: Value) -> tuple[Value, Value, Value]:
    """Return the first and the last lane that is on, and whether all between them are."""
    b, bits = lanes.b, lanes.bits(on)
    first = b.cttz(bits, I1(0))
    last = b.sub(I32(LANES - 1), b.ctlz(bits, I1(0)))
    count = b.add(b.sub(last, first), I32(1))
    adjoin = b.icmp_unsigned("==", b.ctpop(bits), count)
    return b.zext(first, I64), b.zext(last, I64), adjoin


def _bounds(lanes: Lanes, places: Sequence[Value]) -> tuple[Value, Value]:
    """Return the lowest and the highest of some addresses."""
    b, low, high = lanes.b, places[0], places[0]
    for place in places[1:]:
        low = b.select(b.icmp_unsigned("<", place, low), place, low)
        high = b.select(b.icmp_unsigned(">", place, high), place, high)
    return low, high
