"""Emits the fast path of atomics on shared words, which are performed at once and counted later, in
batches (`cost.deferred_atomics`).

It is for instructions with random addresses, such as histograms, whose patterns never repeat. All
lanes must be active, and all words inside of the record's window of 1 KiB. One rotation and
comparison of each lane checks bounds and alignment together, for window 0x400:

    address 0x408: fshr(0x8, 2) = 2            inside
    address 0x40a: fshr(0xa, 2) = 0x80000002   misaligned: outside
    address 0x3fc: fshr(-4, 2)  = 0x3fffffff   below: outside

Other accesses use the general path, which also moves the window.
"""

from __future__ import annotations

from dataclasses import dataclass

from warploom.cost.deferred_atomics import LENGTH, WINDOW_WORDS, WORD_BITS, AccessCounts
from warploom.helpers.calls import call
from warploom.llvm.lanes import I8, I32, I64, LANES, Lanes, Value, splat_constant, vector
from warploom.lower.access.access_call import AccessCall
from warploom.lower.access.access_moves import AccessMoves
from warploom.lower.access.lane_by_lane import AtomicUpdate, LaneByLane
from warploom.simt.lane_counts import ALL_LANES

KEYS_TYPE = vector(I8)
KEYS_AT_ONCE = 8
"""Keys that one 64-bit load reads."""


@dataclass(frozen=True, slots=True)
class WindowKeys:
    """Holds the words of an access in the window of its record: the window's start, the lanes' word
    numbers (`keys`, 8 bits each), and whether all lanes are in it (`inside`, an i1)."""

    window: Value
    keys: Value
    inside: Value


def window_keys(lanes: Lanes, record: Value, addresses: Value, mask: Value) -> WindowKeys:
    """Emits the word numbers of an access's addresses, counted from the start of its record's
    window, and an i1 that states whether they are valid: all 32 lanes are active, aligned to 4
    bytes and inside of the window. Returns both with the window's start, a byte offset in shared
    memory. `addresses` are lanes of 32 or 64 bits, offsets in shared memory."""
    b, element = lanes.b, addresses.type.element
    window, extent = (
        b.load(lanes.slot(record, word), typ=I64)
        for word in (AccessCounts.window, AccessCounts.extent)
    )
    start, end = (
        lanes.splat(b.trunc(v, element) if element == I32 else v) for v in (window, extent)
    )
    # The rotation moves the low two bits of a misaligned offset to the top, which the unsigned
    # comparison finds to be outside, like an offset below the window.
    offsets = b.sub(addresses, start)
    arguments = [offsets, offsets, splat_constant(WORD_BITS, element)]
    words = lanes.intrinsic(f"llvm.fshr.v32{element}", offsets.type, arguments)
    outside = lanes.any(b.icmp_unsigned(">=", words, end))
    whole = b.icmp_unsigned("==", lanes.bits(mask), I32(ALL_LANES))
    return WindowKeys(window, b.trunc(words, KEYS_TYPE), b.and_(whole, b.not_(outside)))


def emit_deferred(access: AccessCall, update: AtomicUpdate, *, uniform: bool) -> None:
    """Emits the body of a function for deferred counting: its addresses are window keys, and its
    base is the host address of the window. It appends the keys to the record's list, updates memory
    lane by lane, counts and empties the list if it is full (LENGTH accesses), and returns 0.
    `uniform`: one operand serves all lanes."""
    b, lanes, record = access.lanes.b, access.lanes, access.record
    turns = LaneByLane(access, AccessMoves(access), update)
    count = b.load(lanes.slot(record, AccessCounts.deferred), typ=I64)
    keys = lanes.slot(record, b.add(b.mul(count, I64(LANES // 8)), I64(AccessCounts.keys)))
    b.store(access.addresses, keys, align=8)
    following = b.add(count, I64(1))
    b.store(following, lanes.slot(record, AccessCounts.deferred))

    def offsets_from(lane: Value) -> list[Value]:
        """Returns the byte offsets in the window of the 8 lanes from `lane` on, as eight i64."""
        # Reads the stored keys again: extracting lanes from the vector costs more. The load is
        # atomic so that LLVM does not turn it into extractions.
        packed = b.load_atomic(lanes.slot(keys, lane, I8), "monotonic", KEYS_AT_ONCE, typ=I64)
        shifted = [b.lshr(packed, I64(8 * n)) for n in range(KEYS_AT_ONCE)]
        # Bits of the next lanes' keys remain after the shift.
        keys_of_lanes = [b.and_(key, I64(WINDOW_WORDS - 1)) for key in shifted]
        return [b.shl(key, I64(WORD_BITS)) for key in keys_of_lanes]

    turns.emit_whole(offsets_from, uniform=uniform)
    with b.if_then(b.icmp_unsigned("==", following, I64(LENGTH)), likely=False):
        call(lanes, "count_deferred_access", record, I64(ALL_LANES), I64(0), record)
    b.ret(I64(0))
