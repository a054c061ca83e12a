"""Emits `cost.overlap` by vector instructions. Lanes whose stretches lie close together set a bit
each of one word, which tells all; those that rise take one pass; others are compared pair by pair.

A lane is a duplicate if a lower one touches the same stretch. Lane l meets each lower lane once:
for each bit of l that is set, those lanes that have the bits above it in common with l, and not
that bit. So halves of the warp, then of each half, and so on, are compared under rotations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from warploom.cost.overlap import FURTHEST_BITS
from warploom.helpers.rising import emit_either, if_rising
from warploom.llvm.lanes import (
    I1,
    I8,
    I32,
    I64,
    LANES,
    Lanes,
    Value,
    lane_numbers,
    selection,
    splat_constant,
    vector,
)

WORDS, KEYS, BYTES = vector(I64), vector(I32), vector(I8)
WINDOW, WIDEST_GROUP = 64, 32
"""Lanes are close together in a window of 64 stretches: a word has a bit for each. It is aligned,
or begins with the group of 32, the widest that is asked for, of the lowest lane: so 32 neighbours
that rise are close together wherever they begin."""
HALF = LANES // 2


def emit_count_stretches(lanes: Lanes, arguments: Sequence[Value]) -> list[Value]:
    """Emits `count_stretches` of addresses in memory, a mask and a shift (i64). Returns its two
    numbers."""

    def count(keys: Value, on: Value) -> list[Value]:
        def compare() -> list[Value]:
            nearest = _nearest(lanes, keys)
            return [_number(lanes, _distinct(lanes, nearest, group)) for group in (1, 4)]

        def count_bits(bits: Value) -> list[Value]:
            return [lanes.b.ctpop(_group_bits(lanes, bits, size)) for size in (1, 4)]

        def count_steps() -> list[Value]:
            return if_rising(lanes, keys, on, (1, 4), compare)

        return _if_in_window(lanes, keys, on, count_bits, count_steps)

    return _count_by_keys(lanes, arguments, count, result_count=2)


def emit_count_in_columns(lanes: Lanes, arguments: Sequence[Value]) -> list[Value]:
    """Emits `count_in_columns` of addresses in memory, a mask, a shift and columns (i64). Returns
    its four numbers."""
    *accesses, columns = arguments

    def count(keys: Value, on: Value) -> list[Value]:
        b = lanes.b

        def compare() -> list[Value]:
            nearest = _nearest(lanes, keys)
            first = _distinct(lanes, nearest, 1)
            counts = [_number(lanes, _distinct(lanes, nearest, group)) for group in (1, 8, 32)]
            within = lanes.splat(b.trunc(b.sub(columns, I64(1)), I8))
            banks = b.and_(b.trunc(keys, BYTES), within)
            differing = b.or_(lane_numbers(I8), splat_constant(LANES, I8))
            own = b.select(first, banks, differing)
            return [*counts, b.zext(_greatest(lanes, _equal_lanes(lanes, own)), I64)]

        def count_bits(bits: Value) -> list[Value]:
            counts = [b.ctpop(_group_bits(lanes, bits, size)) for size in (1, 8, 32)]
            both = b.and_(bits, b.lshr(bits, I64(LANES)))
            most = b.select(b.icmp_unsigned("!=", both, I64(0)), I64(2), I64(1))
            return [*counts, most]

        in_rows = b.icmp_unsigned("==", columns, I64(LANES))
        return _if_in_window(lanes, keys, on, count_bits, compare, in_rows)

    return _count_by_keys(lanes, accesses, count, result_count=4)


def emit_count_coinciding(lanes: Lanes, arguments: Sequence[Value]) -> list[Value]:
    """Emits `count_coinciding` of addresses in memory, a mask and a shift (i64)."""

    def count(keys: Value, on: Value) -> list[Value]:
        b = lanes.b
        alike = _equal_lanes(lanes, keys)
        # Lanes that are off have the key of one that is on, and do not count for it.
        off = b.trunc(lanes.popcount(b.not_(lanes.bits(on))), I8)
        borrowed = b.icmp_unsigned("==", keys, lanes.splat(_key_of_one(lanes, keys, on)))
        own = b.sub(alike, b.select(borrowed, lanes.splat(off), splat_constant(0, I8)))
        return [b.zext(_greatest(lanes, own), I64)]

    return _count_by_keys(lanes, arguments, count, result_count=1)


def _count_by_keys(
    lanes: Lanes,
    arguments: Sequence[Value],
    count: Callable[[Value, Value], list[Value]],
    *,
    result_count: int,
) -> list[Value]:
    """Emits a count of the lanes' keys, the numbers of their stretches in 32 bits; lanes that are
    off have the key of one that is on. Returns zeros where 32 bits do not tell the lanes apart."""
    b, (at, mask, shift) = lanes.b, arguments
    on = lanes.mask(b.trunc(mask, I32))
    one = b.load(lanes.slot(at, lanes.intrinsic("llvm.cttz.i64", I64, [mask, I1(1)])), typ=I64)
    addresses = b.select(on, b.load(at, typ=WORDS, align=8), lanes.splat(one))
    differing = b.lshr(
        b.xor(addresses, lanes.splat(one)), lanes.splat(b.add(shift, I64(FURTHEST_BITS)))
    )
    far = lanes.any(b.icmp_unsigned("!=", differing, splat_constant(0, I64)))
    before, near, done = b.block, b.append_basic_block("near"), b.append_basic_block("near.done")
    b.cbranch(far, done, near)
    b.position_at_end(near)
    counted = count(b.trunc(b.lshr(addresses, lanes.splat(shift)), KEYS), on)
    counted_in = b.block
    b.branch(done)
    b.position_at_end(done)
    results: list[Value] = []
    for value in counted[:result_count]:
        result = b.phi(I64)
        result.add_incoming(I64(0), before)
        result.add_incoming(value, counted_in)
        results.append(result)
    return results


def _if_in_window(
    lanes: Lanes,
    keys: Value,
    on: Value,
    count_bits: Callable[[Value], list[Value]],
    compare: Callable[[], list[Value]],
    when: Value | None = None,
) -> list[Value]:
    """Emit `count_bits` at the bits of the touched stretches of a window where lanes are close together,
    and `when` holds, else `compare`; return what either gives.

    An aligned window comes first, for the bits then wait for no comparison."""
    b = lanes.b
    one = _key_of_one(lanes, keys, on)
    aligned, own_group = (lanes.splat(b.and_(one, I32(-size))) for size in (WINDOW, WIDEST_GROUP))

    def in_window(begin: Value, inside: Value, otherwise: Callable[[], list[Value]]) -> list[Value]:
        differing = b.icmp_unsigned(">=", b.sub(keys, begin), splat_constant(WINDOW, I32))
        close = b.not_(lanes.any(differing))
        close = close if when is None else b.and_(close, when)
        return emit_either(lanes, close, lambda: count_bits(_bits(lanes, inside, on)), otherwise)

    def further() -> list[Value]:
        return in_window(own_group, b.sub(keys, own_group), compare)

    return in_window(aligned, b.and_(keys, splat_constant(WINDOW - 1, I32)), further)


def _bits(lanes: Lanes, places: Value, on: Value) -> Value:
    """Returns a word with the bits of these places, 0 to 63, that have a lane which is on."""
    b = lanes.b
    each = b.shl(splat_constant(1, I64), b.zext(places, WORDS))
    each = b.select(on, each, splat_constant(0, I64))
    return lanes.intrinsic("llvm.vector.reduce.or.v32i64", I64, [each])


def _group_bits(lanes: Lanes, bits: Value, size: int) -> Value:
    """Return a bit for each aligned group of so many stretches of a window that has one of the
    given ones."""
    b, count_steps = lanes.b, 1
    while count_steps < size:
        bits = b.or_(bits, b.lshr(bits, I64(count_steps)))
        count_steps *= 2
    firsts = sum(1 << at for at in range(0, WINDOW, size))
    return b.and_(bits, I64(firsts))


def _key_of_one(lanes: Lanes, keys: Value, on: Value) -> Value:
    lowest = lanes.intrinsic("llvm.cttz.i32", I32, [lanes.bits(on), I1(0)])
    return lanes.lane(keys, lanes.b.and_(lowest, I32(LANES - 1)))


def _nearest(lanes: Lanes, keys: Value) -> Value:
    """Returns in each lane the least difference, bit by bit, of its key from that of a lower lane:
    0 where one has the same; less than n, a power of 2, where one is in the same group of n.
    """
    b, ones = lanes.b, splat_constant(-1, I32)
    nearest: Value = ones
    for size in (16, 8, 4, 2, 1):
        upper = [lane for lane in range(LANES) if lane & size]
        lower = [lane for lane in range(LANES) if not lane & size]
        mine = b.shuffle_vector(keys, keys, selection(upper))
        least: Value = ir.Constant(mine.type, [I32(-1)] * HALF)
        for turn in range(size):
            order = selection(lane & -size | (lane + turn) % size for lane in lower)
            differ = b.xor(mine, b.shuffle_vector(keys, keys, order))
            least = lanes.intrinsic(f"llvm.umin.v{HALF}i32", least.type, [least, differ])
        back = [upper.index(lane) if lane & size else HALF for lane in range(LANES)]
        none = ir.Constant(least.type, [I32(-1)] * HALF)
        whole = b.shuffle_vector(least, none, selection(back))
        nearest = lanes.intrinsic(f"llvm.umin.v{LANES}i32", KEYS, [nearest, whole])
    return nearest


def _distinct(lanes: Lanes, nearest: Value, group: int) -> Value:
    """Returns a mask of the lanes in whose aligned group of so many stretches no lower lane is."""
    return lanes.b.icmp_unsigned(">=", nearest, splat_constant(group, I32))


def _number(lanes: Lanes, mask: Value) -> Value:
    return lanes.popcount(lanes.bits(mask))


def _equal_lanes(lanes: Lanes, keys: Value) -> Value:
    """Returns, for each lane, how many lanes have its key, as bytes."""
    b, count = lanes.b, splat_constant(1, I8)
    for turn in range(1, LANES):
        order = [(lane + turn) % LANES for lane in range(LANES)]
        same = b.icmp_unsigned("==", keys, b.shuffle_vector(keys, keys, selection(order)))
        count = b.sub(count, b.sext(same, BYTES))
    return count


def _greatest(lanes: Lanes, counts: Value) -> Value:
    return lanes.intrinsic("llvm.vector.reduce.umax.v32i8", I8, [counts])
