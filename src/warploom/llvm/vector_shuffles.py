"""Emits shuffles of lane vectors: a reduction of 32 lanes to 8, and a permutation of several
vectors."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from warploom.llvm.lanes import (
    I1,
    I32,
    LANES,
    MASK,
    Lanes,
    Value,
    mangled,
    selection,
    vector,
    zero,
)

REDUCED_LANES = 8
"""The lanes to which a vector of i64 is reduced: one AVX-512 register, or two of AVX2."""


def reduce_to_8_lanes(lanes: Lanes, operation: str, value: Value, on: Value) -> Value:
    """Emits the reduction of a vector of 32 i64 lanes to 8 by `or` or `umax` (lanes l, l + 8, l +
    16, l + 24 to lane l); lanes not in the mask `on` count as 0. The 8 lanes fit a register, and
    need no mask: a reduction under a mask of 32 lanes is slower."""
    zeros = zero(ir.VectorType(value.type.element, REDUCED_LANES))
    parts: list[Value] = []
    for begin in range(0, LANES, REDUCED_LANES):
        order = selection(range(begin, begin + REDUCED_LANES))
        part = lanes.b.shuffle_vector(value, value, order)
        here = lanes.b.shuffle_vector(on, on, order)
        parts.append(lanes.b.select(here, part, zeros))
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [
            _combine(lanes, operation, first_part, second_part) for first_part, second_part in pairs
        ]
    return parts[0]


def _combine(lanes: Lanes, operation: str, first_part: Value, second_part: Value) -> Value:
    """Emits the combination of two vectors of 8 lanes (REDUCED_LANES) lane by lane, by `or` or by
    the intrinsic named `operation` (umax)."""
    if operation == "or":
        return lanes.b.or_(first_part, second_part)
    name = f"llvm.{operation}.v{REDUCED_LANES}{mangled(first_part.type.element)}"
    return lanes.intrinsic(name, first_part.type, [first_part, second_part])


def pick(lanes: Lanes, values: Sequence[Value], table: Sequence[tuple[int, int]]) -> Value:
    """Emits shuffles that return a vector of 32 lanes whose lane l is lane `table[l][1]` of
    `values[table[l][0]]`."""
    lowest, *higher = sorted({number for number, _ in table})
    order = ir.Constant(vector(I32), [I32(lane) for _, lane in table])
    # Each vector is shuffled by the whole order: lanes that belong to another one get an element
    # that is not theirs, and its blend replaces it.
    picked = lanes.b.shuffle_vector(values[lowest], values[lowest], order)
    for source in higher:
        here = ir.Constant(MASK, [I1(int(number == source)) for number, _ in table])
        moved = lanes.b.shuffle_vector(values[source], values[source], order)
        picked = lanes.blend(here, moved, picked)
    return picked
