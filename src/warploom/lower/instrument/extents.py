"""Emits the range of memory that a warp accesses, from affine addresses, for checks of whole ranges
instead of lanes (`lower.instrument.sanitizing`).

    4-byte elements at 0x100 + 4l, lanes 0..15 active: [0x100, 0x140), dense
    4-byte elements at 0x100 + 8l, all active:         [0x100, 0x1fc), not dense
    4-byte elements at 0x100 - 4l, all active:         [0x84, 0x104), dense"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warploom.llvm.lanes import I1, I32, I64, LANES, Lanes, Value


@dataclass(frozen=True, slots=True)
class AccessExtent:
    """Holds the range of bytes that a warp accesses, from `low` up to, without, `high`; `is_dense`
    (an i1) is true if its active lanes together access every byte of it."""

    low: Value
    high: Value
    is_dense: Value


def extent_of(
    lanes: Lanes, size: int, width: int, step: Value, addresses: Value, on: Value
) -> AccessExtent:
    """Returns the extent of the lanes `on` (a mask with some lane), of `size` bytes each, whose
    addresses have a stride of `step` (an i64, negative too) in each of `width` lane runs. It has
    the lowest byte, the end of the highest, and whether every byte between is accessed
    (`is_dense`). If runs do not continue each other, the bounds are those of all lanes, active or
    not, and `is_dense` is false."""
    b = lanes.b
    run = LANES // width
    firsts = [lanes.lane(addresses, lane) for lane in range(0, LANES, run)]
    first_on, last_on, adjoin = _active_range(lanes, on)
    low, high = _bounds(lanes, [b.add(firsts[0], b.mul(step, at)) for at in (first_on, last_on)])
    follow_each_other = (b.icmp_unsigned("==", step, I64(distance)) for distance in (size, -size))
    is_dense = b.and_(adjoin, b.or_(*follow_each_other))
    if width > 1:
        lasts = [b.add(start, b.mul(step, I64(run - 1))) for start in firsts]
        lowest, highest = _bounds(lanes, [*firsts, *lasts])
        # If each run continues the one before, the active lanes bound the range. Else its bounds
        # are those of all runs, active or not.
        follows: Value = I1(1)
        for last, next_start in zip(lasts, firsts[1:], strict=False):
            follows = b.and_(follows, b.icmp_unsigned("==", b.add(last, step), next_start))
        low, high = b.select(follows, low, lowest), b.select(follows, high, highest)
        is_dense = b.and_(is_dense, follows)
    return AccessExtent(low, b.add(high, I64(size)), is_dense)


def _active_range(lanes: Lanes, on: Value) -> tuple[Value, Value, Value]:
    """Returns the numbers of the first and the last active lane (i64), and true (an i1) if all
    lanes between are active."""
    b, bits = lanes.b, lanes.bits(on)
    first_lane = b.cttz(bits, I1(0))
    last = b.sub(I32(LANES - 1), b.ctlz(bits, I1(0)))
    count = b.add(b.sub(last, first_lane), I32(1))
    adjoin = b.icmp_unsigned("==", b.ctpop(bits), count)
    return b.zext(first_lane, I64), b.zext(last, I64), adjoin


def _bounds(lanes: Lanes, addresses: Sequence[Value]) -> tuple[Value, Value]:
    """Returns the lowest and the highest of some addresses, compared without sign."""
    b, low, high = lanes.b, addresses[0], addresses[0]
    for address in addresses[1:]:
        low = b.select(b.icmp_unsigned("<", address, low), address, low)
        high = b.select(b.icmp_unsigned(">", address, high), address, high)
    return low, high
