"""Computes, for the reference machine, instructions that exchange values between the lanes of a
warp: shuffles, votes, matches, reductions.

They are defined for warps of 32 lanes. Only lanes that execute the instruction participate;
checking member masks is left to `members`. A lane that reads from an inactive lane gets its own
value (PTX ISA leaves that open).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from warploom.core.types import B32, PRED, ScalarType
from warploom.isa.shuffles import shuffle_source
from warploom.isa.spec import Modifiers
from warploom.isa.terms import CANONICAL_NAN
from warploom.machine.launch import WARP_SIZE
from warploom.machine.reference.lanes import (
    Values,
    as_numbers,
    collect,
    from_mask,
    lanes_of,
    splat,
    to_mask,
)


def shuffle(mode: str, a: Values, b: Values, c: Values, mask: int) -> tuple[Values, Values]:
    """Returns the value of `a` that each lane receives, its own if the source lane is out of range
    or not in `mask`, and the predicate that it was in range (PTX ISA, shfl). `mode` is up, down,
    bfly or idx; `b` and `c` are the operands of the instruction: source lane or distance, and clamp
    and segment mask."""
    sources: list[int] = []
    valid: list[bool] = []
    for lane, (source_operand, control) in enumerate(zip(b.tolist(), c.tolist(), strict=True)):
        source, is_valid = shuffle_source(mode, lane, source_operand & 31, control)
        valid.append(is_valid)
        sources.append(source if is_valid and mask >> source & 1 else lane)
    return a[sources], collect(valid, PRED)


def vote(mode: str, a: Values, mask: int) -> Values:
    """Returns the result of a vote among the lanes of `mask`, equal in every lane: for mode
    `ballot` a .b32 mask of the lanes in which `a` is true. For the other modes it is a predicate:
    whether `a` is true in all lanes of `mask` (`all`), true in some (`any`), or equal in all
    (`uni`) (PTX ISA, vote)."""
    true_lanes = to_mask(a) & mask
    if mode == "ballot":
        return splat(true_lanes, B32, WARP_SIZE)
    answers = {"all": true_lanes == mask, "any": true_lanes != 0, "uni": true_lanes in (0, mask)}
    return splat(answers[mode], PRED, WARP_SIZE)


def match_any(a: Values, mask: int) -> Values:
    """Returns for each lane the mask of lanes in `mask` with an equal value (PTX ISA,
    match.any)."""
    return collect((to_mask(a == value) & mask for value in a), B32)


def match_all(a: Values, mask: int) -> tuple[Values, Values]:
    """Returns, in every lane, `mask` if its lanes hold equal values, else 0, and the predicate that
    they do (PTX ISA, match.all)."""
    all_equal = len({int(a[lane]) for lane in lanes_of(mask)}) == 1
    return splat(mask if all_equal else 0, B32, WARP_SIZE), splat(all_equal, PRED, WARP_SIZE)


def elect(mask: int) -> tuple[Values, Values]:
    """Returns the lowest lane of a nonempty mask, and the predicate that is true in it (PTX ISA,
    elect)."""
    lowest = mask & -mask
    return splat(lowest.bit_length() - 1, B32, WARP_SIZE), from_mask(lowest, WARP_SIZE)


_REDUCTIONS: dict[str, Callable[[int, int], int]] = {
    "add": int.__add__,
    "and": int.__and__,
    "or": int.__or__,
    "xor": int.__xor__,
    "min": min,
    "max": max,
}


def reduction(modifiers: Modifiers, a: Values, mask: int) -> Values:
    """Returns the reduction of the values of the lanes in `mask`, at least one, equal in every lane
    (PTX ISA, redux): for integers by `op` (modulo 2^32), for floats their minimum or maximum."""
    type, lanes = modifiers.scalar(), lanes_of(mask)
    if type.is_float:
        return splat(_float_extreme(modifiers, a[lanes], type), type, WARP_SIZE)
    numbers: list[int] = as_numbers(a, type)[lanes].tolist()
    return collect([reduce(_REDUCTIONS[modifiers.text("op", "")], numbers)] * WARP_SIZE, type)


def _float_extreme(modifiers: Modifiers, a: Values, type: ScalarType) -> int:
    """Returns the bits of the smallest or largest float, of absolute values with .abs; -0 is below
    +0. NaNs are ignored without .NaN, and give NaN with it or if there are only NaNs."""
    values = a & 0x7FFFFFFF if "abs" in modifiers else a
    nan = np.isnan(as_numbers(values, type))
    if nan.all() or ("NaN" in modifiers and nan.any()):
        return CANONICAL_NAN[32]
    bits: list[int] = values[~nan].tolist()
    choose = min if modifiers["op"] == "min" else max
    # Orders bit patterns by value: for negative numbers larger magnitudes are lower, and -0 is
    # below 0.
    return choose(bits, key=lambda b: -(b & 0x7FFFFFFF) - 1 if b >> 31 else b)
