"""Emits vector code for helpers that tests whether addresses rise from lane to lane (inactive lanes
left out), and finds their stride or counts the segments of memory that they touch.

    keys 3 3 - 4 9 9 ...  (lane 2 inactive)   ->   distinct keys = changes between neighbors + 1
    offsets 0 8 - 24 ...                      ->   stride 8
    offsets 0 8 - 20 ...                      ->   NO_STEP

Inactive lanes are given a key that does not break the order: the maximum of lower lanes."""

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
"""Emits code at the builder's position, and returns its results, i64s."""


def emit_either(lanes: Lanes, condition: Value, then: Emit, otherwise: Emit) -> list[Value]:
    """Emits two paths, the first of which runs if `condition` (an i1) holds; returns the phis of
    their results.
    """
    b = lanes.b
    paths = [b.append_basic_block(name) for name in ("then", "otherwise")]
    b.cbranch(condition, *paths)
    return _emit_paths(lanes, dict(zip(paths, (then, otherwise), strict=True)))


def _emit_paths(lanes: Lanes, paths: Mapping[Value, Emit]) -> list[Value]:
    """Emits the code of each block, and a join after them; returns the phis of their results."""
    b, done = lanes.b, lanes.b.append_basic_block("done")
    emitted: list[tuple[list[Value], Value]] = []
    for path, emit in paths.items():
        b.position_at_end(path)
        emitted.append((emit(), b.block))
        b.branch(done)
    b.position_at_end(done)
    results = [b.phi(I64) for _ in emitted[0][0]]
    for values, last_block in emitted:
        for result, value in zip(results, values, strict=True):
            result.add_incoming(value, last_block)
    return results


def if_rising(
    lanes: Lanes,
    keys: Value,
    on: Value,
    groups: Sequence[int],
    otherwise: Emit,
) -> list[Value]:
    """Emits a test that the keys of active lanes do not fall from lane to lane. If so, returns for
    each size in `groups` (powers of 2) the number of aligned groups of that many segments that are
    touched; else the results of `otherwise`.

    `keys`: 32-bit numbers of the lanes' segments; an inactive lane has the key of the lowest active
    lane. Neighbors are compared first: of unrelated keys, some neighbors mostly fall, and the
    prefix maximum is not needed.
    """
    b = lanes.b
    compare_all, rising, other = map(b.append_basic_block, ("compare_all", "rising", "otherwise"))
    falls = b.icmp_unsigned("<", keys, _shifted_up(lanes, keys, 1))
    b.cbranch(_are_disjoint(lanes, falls, on), compare_all, other)
    b.position_at_end(compare_all)
    highest = _highest_so_far(lanes, keys)
    b.cbranch(_are_disjoint(lanes, b.icmp_unsigned("<", keys, highest), on), rising, other)

    def steps() -> list[Value]:
        """Returns the number of touched groups for each size in `groups`, by the changes of rising
        keys from lane to lane."""
        return [_count_groups(lanes, highest, group) for group in groups]

    return _emit_paths(lanes, {rising: steps, other: otherwise})


def emit_step(lanes: Lanes, arguments: Sequence[Value]) -> list[Value]:
    """Emits `cost.pattern_table.step_of` of 32 offsets in memory and a mask that is not empty
    (i64): the stride per lane number, so that of lanes 0 and 2 it is half the distance. Returns
    ANY_STEP if only one lane is active, NO_STEP if the active lanes have no common stride or it is
    negative."""
    b, (at, mask) = lanes.b, arguments
    # The mask without its lowest lane; the two lowest lanes determine the stride.
    others = b.and_(mask, b.sub(mask, I64(1)))
    lowest, second = (
        lanes.intrinsic("llvm.cttz.i64", I64, [bits, I1(0)]) for bits in (mask, others)
    )

    def find_stride() -> list[Value]:
        """Emits the stride of at least two lanes, NO_STEP if they have none or it is negative."""
        start = b.load(lanes.slot(at, lowest), typ=I64)
        distance = b.sub(b.load(lanes.slot(at, second), typ=I64), start)
        step = b.udiv(distance, b.sub(second, lowest))
        distances = b.sub(lane_numbers(I64), lanes.splat(lowest))
        expected = b.add(lanes.splat(start), b.mul(distances, lanes.splat(step)))
        differ = b.icmp_unsigned("!=", expected, b.load(at, typ=vector(I64), align=8))
        same = _are_disjoint(lanes, differ, lanes.mask(b.trunc(mask, I32)))
        rises = b.and_(same, b.icmp_signed(">=", distance, I64(0)))
        return [b.select(rises, step, I64(NO_STEP))]

    alone = b.icmp_unsigned("==", others, I64(0))
    return emit_either(lanes, alone, lambda: [I64(ANY_STEP)], find_stride)


def _are_disjoint(lanes: Lanes, mask: Value, on: Value) -> Value:
    """Returns true (an i1) if no lane is set in both masks."""
    return lanes.b.not_(lanes.any(lanes.b.and_(mask, on)))


def _shifted_up(lanes: Lanes, values: Value, distance: int) -> Value:
    """Returns in each lane the value of the lane `distance` below it; the first lanes have lane
    0's."""
    order = selection(max(lane - distance, 0) for lane in range(LANES))
    return lanes.b.shuffle_vector(values, values, order)


def _highest_so_far(lanes: Lanes, keys: Value) -> Value:
    """Returns in each lane the highest key (unsigned) of this lane and all lower ones, a prefix
    maximum."""
    distance = 1
    while distance < LANES:
        arguments = [keys, _shifted_up(lanes, keys, distance)]
        keys = lanes.intrinsic(f"llvm.umax.v{LANES}i32", keys.type, arguments)
        distance *= 2
    return keys


def _count_groups(lanes: Lanes, keys: Value, group: int) -> Value:
    """Returns, as an i64, the number of distinct groups of `group` segments (a power of 2) among
    keys that do not fall."""
    b = lanes.b
    groups = b.lshr(keys, splat_constant(group.bit_length() - 1, I32))
    differ = b.icmp_unsigned("!=", groups, _shifted_up(lanes, groups, 1))
    return b.add(lanes.popcount(lanes.bits(differ)), I64(1))
