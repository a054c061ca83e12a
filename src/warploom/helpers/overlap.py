"""Emits the functions of `cost.overlap` as vector instructions: they count how many segments of
memory (words, sectors, lines) the lanes of an access touch, and how many lanes share one.

The key of a lane is its address shifted to the number of its segment. Three methods, fastest first:

1. Keys in a window of 64 set a bit each of one 64-bit word; `ctpop` counts them (5 5 6 9 sets bits
   5, 6, 9: 3 segments). Groups of 4, 8 or 32 segments are counted by OR-ing shifted copies.
2. Keys that do not fall from lane to lane are counted by comparing neighbors (`helpers.rising`).
3. Other keys are compared pair by pair. A lane is a duplicate if a lower lane has its key. Lane l
   is compared with each lower lane once: for each set bit of l, with the lanes that share the bits
   above it and lack that bit. So the halves of the warp, then of each half, and so on, are compared
   under all rotations: 16 + 8 + 4 + 2 + 1 vector comparisons instead of 496 scalar ones.

Lanes whose keys differ above the lowest 32 bits are not handled: the result is 0, and callers use
the loop."""

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
"""The segments of a window: the bits of a word. A window is aligned to 64 segments, or begins with
the lowest lane's group of 32, the widest that is counted: so 32 consecutive segments fit a window
wherever they begin."""
HALF = LANES // 2


def emit_count_segments(lanes: Lanes, arguments: Sequence[Value]) -> list[Value]:
    """Emits `cost.overlap.count_segments` of addresses in memory, a mask that is not 0 and a shift
    (i64); returns the numbers of distinct segments (of 2^shift bytes) and of aligned groups of 4.
    Zeros if the lanes' segments differ above the lowest FURTHEST_BITS bits."""

    def count(keys: Value, on: Value) -> list[Value]:
        """Emits the two counts of `keys`: by the bits of a window if they fit one, else by the
        steps of rising keys, else by comparisons."""

        def compare() -> list[Value]:
            """Emits the counts of keys by comparison of all lanes."""
            differences = _least_differences(lanes, keys)
            return [
                _count_lanes(lanes, _first_of_groups(lanes, differences, group)) for group in (1, 4)
            ]

        def count_bits(bits: Value) -> list[Value]:
            """Emits the counts of a window in which `bits` are the segments accessed."""
            return [lanes.b.ctpop(_group_bits(lanes, bits, size)) for size in (1, 4)]

        def count_steps() -> list[Value]:
            """Emits the counts of keys that rise from lane to lane by the changes between lanes
            (`if_rising`), of others by `compare`."""
            return if_rising(lanes, keys, on, (1, 4), compare)

        return _if_in_window(lanes, keys, on, count_bits, count_steps)

    return _count_by_keys(lanes, arguments, count, result_count=2)


def emit_count_in_columns(lanes: Lanes, arguments: Sequence[Value]) -> list[Value]:
    """Emits `cost.overlap.count_in_columns` of addresses in memory, a mask that is not 0, a shift
    and a number of columns (i64), a power of 2 up to 32. Returns the numbers of distinct segments,
    and of aligned groups of 8 and of 32 segments, and the most distinct segments of one column
    (bank). The column of a segment is its number modulo `columns`. Zeros if the lanes' segments
    differ above the lowest FURTHEST_BITS bits."""
    *accesses, columns = arguments

    def count(keys: Value, on: Value) -> list[Value]:
        """Emits the four counts of `keys`: by the bits of a window if they fit one and there are 32
        columns, else by comparisons."""
        b = lanes.b

        def compare() -> list[Value]:
            """Emits the counts of keys by comparison of all lanes."""
            differences = _least_differences(lanes, keys)
            first = _first_of_groups(lanes, differences, 1)
            counts = [
                _count_lanes(lanes, _first_of_groups(lanes, differences, group))
                for group in (1, 8, 32)
            ]
            within = lanes.splat(b.trunc(b.sub(columns, I64(1)), I8))
            banks = b.and_(b.trunc(keys, BYTES), within)
            differing = b.or_(lane_numbers(I8), splat_constant(LANES, I8))
            # A duplicate gets a number of its own (32 + lane), above all banks, which are below 32,
            # so that it counts for none.
            own = b.select(first, banks, differing)
            return [*counts, b.zext(_highest_byte(lanes, _count_equal_lanes(lanes, own)), I64)]

        def count_bits(bits: Value) -> list[Value]:
            """Emits the counts of a window in which `bits` are the words accessed."""
            counts = [b.ctpop(_group_bits(lanes, bits, size)) for size in (1, 8, 32)]
            # A window of 64 words has two words of each of 32 banks: both are touched, or one.
            both = b.and_(bits, b.lshr(bits, I64(LANES)))
            most = b.select(b.icmp_unsigned("!=", both, I64(0)), I64(2), I64(1))
            return [*counts, most]

        in_rows = b.icmp_unsigned("==", columns, I64(LANES))
        return _if_in_window(lanes, keys, on, count_bits, compare, in_rows)

    return _count_by_keys(lanes, accesses, count, result_count=4)


def emit_count_coinciding(lanes: Lanes, arguments: Sequence[Value]) -> list[Value]:
    """Emits `cost.overlap.count_coinciding` of addresses in memory, a mask that is not 0 and a
    shift (i64); returns the most active lanes on one segment; 0 if the lanes' segments differ
    above the lowest FURTHEST_BITS bits."""

    def count(keys: Value, on: Value) -> list[Value]:
        """Emits the most lanes of `on` that have one key."""
        b = lanes.b
        alike = _count_equal_lanes(lanes, keys)
        # Inactive lanes have the key of an active lane; they are subtracted from its count.
        off = b.trunc(lanes.popcount(b.not_(lanes.bits(on))), I8)
        borrowed = b.icmp_unsigned("==", keys, lanes.splat(_lowest_key(lanes, keys, on)))
        own = b.sub(alike, b.select(borrowed, lanes.splat(off), splat_constant(0, I8)))
        return [b.zext(_highest_byte(lanes, own), I64)]

    return _count_by_keys(lanes, arguments, count, result_count=1)


def _count_by_keys(
    lanes: Lanes,
    arguments: Sequence[Value],
    count: Callable[[Value, Value], list[Value]],
    *,
    result_count: int,
) -> list[Value]:
    """Emits `count` of the lanes' keys (numbers of segments, cut to 32 bits) and active mask;
    inactive lanes have the key of the lowest active lane. `arguments`: addresses in memory, mask
    (not 0: the lowest active lane would be undefined), shift.

    Returns `result_count` results, zeros if the segments differ above the lowest FURTHEST_BITS
    bits."""
    b, (at, mask, shift) = lanes.b, arguments
    on = lanes.mask(b.trunc(mask, I32))
    # Inactive lanes may hold anything; with an active lane's address they add no segment.
    lowest = b.load(lanes.slot(at, lanes.intrinsic("llvm.cttz.i64", I64, [mask, I1(1)])), typ=I64)
    addresses = b.select(on, b.load(at, typ=WORDS, align=8), lanes.splat(lowest))
    differing = b.lshr(
        b.xor(addresses, lanes.splat(lowest)), lanes.splat(b.add(shift, I64(FURTHEST_BITS)))
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
    """Emits `count_bits` of the bits of touched segments, for keys that fit a window if `when` (an
    i1; None: true) holds, else `compare`; returns the results of the path that runs.

    A window is WINDOW segments from an aligned number on, or, tried next, from the lowest active
    lane's key, aligned to WIDEST_GROUP, on.
    """
    b = lanes.b
    lowest = _lowest_key(lanes, keys, on)
    aligned, own_group = (
        lanes.splat(b.and_(lowest, I32(-size))) for size in (WINDOW, WIDEST_GROUP)
    )

    def in_window(begin: Value, inside: Value, otherwise: Callable[[], list[Value]]) -> list[Value]:
        """Emits a test that the window from `begin` on has all keys and that `when` holds: if so,
        `count_bits` of the active lanes' offsets in the window, `inside`, else `otherwise`. Returns
        the results of the path that runs."""
        differing = b.icmp_unsigned(">=", b.sub(keys, begin), splat_constant(WINDOW, I32))
        close = b.not_(lanes.any(differing))
        close = close if when is None else b.and_(close, when)
        return emit_either(lanes, close, lambda: count_bits(_bits(lanes, inside, on)), otherwise)

    def further() -> list[Value]:
        """Emits the test of the window from the lowest active lane's key on, aligned to
        WIDEST_GROUP, with `compare` for keys that do not fit it."""
        return in_window(own_group, b.sub(keys, own_group), compare)

    return in_window(aligned, b.and_(keys, splat_constant(WINDOW - 1, I32)), further)


def _bits(lanes: Lanes, numbers: Value, on: Value) -> Value:
    """Returns an i64 in which the bits are set that active lanes (`on`) name in `numbers` by their
    numbers, 0 to 63."""
    b = lanes.b
    each = b.shl(splat_constant(1, I64), b.zext(numbers, WORDS))
    each = b.select(on, each, splat_constant(0, I64))
    return lanes.intrinsic("llvm.vector.reduce.or.v32i64", I64, [each])


def _group_bits(lanes: Lanes, bits: Value, size: int) -> Value:
    """Returns a word (i64) with the first bit of each aligned group of `size` bits (a power of 2)
    of `bits` that has a bit set."""
    b, width = lanes.b, 1
    while width < size:
        bits = b.or_(bits, b.lshr(bits, I64(width)))
        width *= 2
    firsts = sum(1 << at for at in range(0, WINDOW, size))
    return b.and_(bits, I64(firsts))


def _lowest_key(lanes: Lanes, keys: Value, on: Value) -> Value:
    """Returns the key of the lowest active lane, of lane 0 if none is active."""
    lowest = lanes.intrinsic("llvm.cttz.i32", I32, [lanes.bits(on), I1(0)])
    return lanes.lane(keys, lanes.b.and_(lowest, I32(LANES - 1)))


def _least_differences(lanes: Lanes, keys: Value) -> Value:
    """Returns in each lane the least XOR of its key with a lower lane's key: 0 if a lower lane has
    the same key; less than n, a power of 2, if a lower lane is in the same aligned group of n.
    Lane 0, without a lower lane, gets -1 (all bits)."""
    b, ones = lanes.b, splat_constant(-1, I32)
    differences: Value = ones
    for size in (16, 8, 4, 2, 1):
        upper = [lane for lane in range(LANES) if lane & size]
        lower = [lane for lane in range(LANES) if not lane & size]
        mine = b.shuffle_vector(keys, keys, selection(upper))
        least: Value = ir.Constant(mine.type, [I32(-1)] * HALF)
        # Each upper lane meets each of the `size` lower lanes of its group once.
        for turn in range(size):
            order = selection(lane & -size | (lane + turn) % size for lane in lower)
            differ = b.xor(mine, b.shuffle_vector(keys, keys, order))
            least = lanes.intrinsic(f"llvm.umin.v{HALF}i32", least.type, [least, differ])
        # Back to their lanes; lower lanes get the greatest number, by index HALF into `none`.
        back = [upper.index(lane) if lane & size else HALF for lane in range(LANES)]
        none = ir.Constant(least.type, [I32(-1)] * HALF)
        whole = b.shuffle_vector(least, none, selection(back))
        differences = lanes.intrinsic(f"llvm.umin.v{LANES}i32", KEYS, [differences, whole])
    return differences


def _first_of_groups(lanes: Lanes, differences: Value, group: int) -> Value:
    """Returns a mask of the lanes in whose aligned group of `group` segments no lower lane is;
    `differences` are those of `_least_differences`."""
    return lanes.b.icmp_unsigned(">=", differences, splat_constant(group, I32))


def _count_lanes(lanes: Lanes, mask: Value) -> Value:
    """Returns the number of set lanes of a mask, as an i64."""
    return lanes.popcount(lanes.bits(mask))


def _count_equal_lanes(lanes: Lanes, keys: Value) -> Value:
    """Returns, for each lane, the number of lanes with its key, itself included, as bytes."""
    b, count = lanes.b, splat_constant(1, I8)
    for turn in range(1, LANES):
        order = [(lane + turn) % LANES for lane in range(LANES)]
        same = b.icmp_unsigned("==", keys, b.shuffle_vector(keys, keys, selection(order)))
        # A true lane extends to -1: subtracting it counts one.
        count = b.sub(count, b.sext(same, BYTES))
    return count


def _highest_byte(lanes: Lanes, counts: Value) -> Value:
    """Returns the greatest byte of a vector, an i8."""
    return lanes.intrinsic("llvm.vector.reduce.umax.v32i8", I8, [counts])
