"""Emits what is known of lanes that reach rising addresses, whatever lanes are off: how many
stretches of memory they touch, and by which step they rise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from warploom.cost.pattern_table import ANY_STEP, NO_STEP
from warploom.llvm.lanes import (
    I1,
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

Emit = Callable[[], list[Value]]
"""Emits something, and returns its values."""


def either(lanes: Lanes, condition: Value, then: Emit, otherwise: Emit) -> list[Value]:
    """Emit two ways of which the condition chooses one; return what that one gives, i64s."""
    b = lanes.b
    ways = [b.append_basic_block(name) for name in ("then", "otherwise")]
    b.cbranch(condition, *ways)
    return _emit_ways(lanes, dict(zip(ways, (then, otherwise), strict=True)))


def _emit_ways(lanes: Lanes, ways: Mapping[Value, Emit]) -> list[Value]:
    """Emit what each block is to have, and where they meet; return what they give, i64s."""
    b, done = lanes.b, lanes.b.append_basic_block("done")
    found: list[tuple[list[Value], Value]] = []
    for way, emit in ways.items():
        b.position_at_end(way)
        found.append((emit(), b.block))
        b.branch(done)
    b.position_at_end(done)
    results = [b.phi(I64) for _ in found[0][0]]
    for values, behind in found:
        for result, value in zip(results, values, strict=True):
            result.add_incoming(value, behind)
    return results


def if_rising(
    lanes: Lanes,
    keys: Value,
    on: Value,
    groups: Sequence[int],
    otherwise: Emit,
) -> list[Value]:
    """Emit the number of aligned groups of so many stretches (powers of 2) that have one, for each
    of `groups`, where the keys of the lanes that are on do not fall; else what `otherwise` emits.

    `keys`: the numbers of the lanes' stretches, 32 bits; a lane that is off has that of the lowest
    lane that is on. Neighbours are looked at first: where lanes go anywhere, they mostly tell.
    """
    b = lanes.b
    look, rising, other = map(b.append_basic_block, ("look", "rising", "otherwise"))
    falls = b.icmp_unsigned("<", keys, _moved_up(lanes, keys, 1))
    b.cbranch(_none(lanes, falls, on), look, other)
    b.position_at_end(look)
    highest = _highest_so_far(lanes, keys)
    b.cbranch(_none(lanes, b.icmp_unsigned("<", keys, highest), on), rising, other)

    def steps() -> list[Value]:
        return [_steps(lanes, highest, group) for group in groups]

    return _emit_ways(lanes, {rising: steps, other: otherwise})


def emit_step(lanes: Lanes, given: Sequence[Value]) -> list[Value]:
    """Emits `cost.pattern_table.step_of` of places in memory and a mask that is not empty (i64)."""
    b, (at, mask) = lanes.b, given
    others = b.and_(mask, b.sub(mask, I64(1)))
    one, two = (lanes.intrinsic("llvm.cttz.i64", I64, [bits, I1(0)]) for bits in (mask, others))

    def follow() -> list[Value]:
        start = b.load(lanes.slot(at, one), typ=I64)
        distance = b.sub(b.load(lanes.slot(at, two), typ=I64), start)
        step = b.udiv(distance, b.sub(two, one))
        ahead = b.sub(lane_numbers(I64), lanes.splat(one))
        expected = b.add(lanes.splat(start), b.mul(ahead, lanes.splat(step)))
        differ = b.icmp_unsigned("!=", expected, b.load(at, typ=vector(I64), align=8))
        same = _none(lanes, differ, lanes.mask(b.trunc(mask, I32)))
        known = b.and_(same, b.icmp_signed(">=", distance, I64(0)))
        return [b.select(known, step, I64(NO_STEP))]

    alone = b.icmp_unsigned("==", others, I64(0))
    return either(lanes, alone, lambda: [I64(ANY_STEP)], follow)


def _none(lanes: Lanes, mask: Value, on: Value) -> Value:
    return lanes.b.not_(lanes.any(lanes.b.and_(mask, on)))


def _moved_up(lanes: Lanes, values: Value, places: int) -> Value:
    """Returns in each lane what the lane so many places before it has, in the first ones lane 0's
    value."""
    order = selection(max(lane - places, 0) for lane in range(LANES))
    return lanes.b.shuffle_vector(values, values, order)


def _highest_so_far(lanes: Lanes, keys: Value) -> Value:
    """Returns in each lane the highest key of this lane and all lower ones."""
    places = 1
    while places < LANES:
        given = [keys, _moved_up(lanes, keys, places)]
        keys = lanes.intrinsic(f"llvm.umax.v{LANES}i32", keys.type, given)
        places *= 2
    return keys


def _steps(lanes: Lanes, keys: Value, group: int) -> Value:
    """Returns how many groups of so many stretches have one of the keys, which do not fall."""
    b = lanes.b
    groups = b.lshr(keys, splat_constant(group.bit_length() - 1, I32))
    differ = b.icmp_unsigned("!=", groups, _moved_up(lanes, groups, 1))
    return b.add(lanes.popcount(lanes.bits(differ)), I64(1))
