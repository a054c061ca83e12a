"""Atomics on shared words by a short way: they are done at once, and counted later with others.

It is gone where no pattern of the instruction comes again, all lanes are on and all in the window
of the row's list (`cost.deferred_atomics`): which one comparison of each lane says, for words that
are not aligned come out as far beyond it. Any other goes the general way, which also places the
window.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.cost.deferred_atomics import (
    DEFERRED,
    EXTENT,
    KEYS,
    LENGTH,
    WINDOW,
    WINDOW_WORDS,
    WORD_BITS,
)
from warploom.helpers.calls import call
from warploom.llvm.lanes import I8, I32, I64, LANES, Lanes, Value, splat_constant, vector
from warploom.lower.access.access_call import Call
from warploom.lower.access.access_moves import AccessMoves
from warploom.lower.access.lane_by_lane import LaneByLane, Update
from warploom.simt.lane_counts import ALL_LANES

KEYS_TYPE = vector(I8)
AT_ONCE = 8
"""Keys that are read at once."""


@dataclass(frozen=True, slots=True)
class Words:
    """Holds where lanes reach in the window of a row: their words, and whether all are in it."""

    window: Value
    keys: Value
    inside: Value


def words_of(lanes: Lanes, row: Value, addresses: Value, mask: Value) -> Words:
    """Look at the addresses of an access, lanes of 32 or 64 bits that begin at 0."""
    b, element = lanes.b, addresses.type.element
    window, extent = (b.load(lanes.slot(row, word), typ=I64) for word in (WINDOW, EXTENT))
    start, end = (
        lanes.splat(b.trunc(v, element) if element == I32 else v) for v in (window, extent)
    )
    behind = b.sub(addresses, start)
    turned = [behind, behind, splat_constant(WORD_BITS, element)]
    words = lanes.intrinsic(f"llvm.fshr.v32{element}", behind.type, turned)
    outside = lanes.any(b.icmp_unsigned(">=", words, end))
    whole = b.icmp_unsigned("==", lanes.bits(mask), I32(ALL_LANES))
    return Words(window, b.trunc(words, KEYS_TYPE), b.and_(whole, b.not_(outside)))


def emit_deferred(access: Call, update: Update, *, agreed: bool) -> None:
    """Emit the body of the function of the short way. Keys are its addresses, and its base is where
    the window begins."""
    b, lanes, row = access.lanes.b, access.lanes, access.row
    turns = LaneByLane(access, AccessMoves(access), update)
    count = b.load(lanes.slot(row, DEFERRED), typ=I64)
    keys = lanes.slot(row, b.add(b.mul(count, I64(LANES // 8)), I64(KEYS)))
    b.store(access.addresses, keys, align=8)
    following = b.add(count, I64(1))
    b.store(following, lanes.slot(row, DEFERRED))

    def places_from(lane: Value) -> list[Value]:
        # Out of memory, where LLVM would take a vector apart, which costs more.
        some = b.load_atomic(lanes.slot(keys, lane, I8), "monotonic", AT_ONCE, typ=I64)
        shifted = [b.lshr(some, I64(8 * n)) for n in range(AT_ONCE)]
        each = [b.and_(key, I64(WINDOW_WORDS - 1)) for key in shifted]
        return [b.shl(key, I64(WORD_BITS)) for key in each]

    turns.emit_whole(places_from, agreed=agreed)
    with b.if_then(b.icmp_unsigned("==", following, I64(LENGTH)), likely=False):
        call(lanes, "count_deferred_access", row, I64(ALL_LANES), I64(0), row)
    b.ret(I64(0))
