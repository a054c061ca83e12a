"""Executes what the lanes of a warp do together: shuffles, votes, matches, reductions.

They are of warps of 32 lanes. Only lanes that execute the instruction take part; member masks are
for `members`. A lane that reads from one that takes no part gets its own value (PTX ISA leaves that
open).
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
    """Returns what each lane receives, and whether the lane that it asked was in its range (PTX
    ISA, shfl)."""
    sources: list[int] = []
    in_range: list[bool] = []
    for lane, (by, control) in enumerate(zip(b.tolist(), c.tolist(), strict=True)):
        source, reachable = shuffle_source(mode, lane, by & 31, control)
        in_range.append(reachable)
        sources.append(source if reachable and mask >> source & 1 else lane)
    return a[sources], collect(in_range, PRED)


def vote(mode: str, a: Values, mask: int) -> Values:
    """Return the answer, the same in every lane: a .b32 for `ballot`, else a predicate (PTX ISA,
    vote)."""
    true_lanes = to_mask(a) & mask
    if mode == "ballot":
        return splat(true_lanes, B32, WARP_SIZE)
    answers = {"all": true_lanes == mask, "any": true_lanes != 0, "uni": true_lanes in (0, mask)}
    return splat(answers[mode], PRED, WARP_SIZE)


def match_any(a: Values, mask: int) -> Values:
    """For each lane the lanes that hold the same value (PTX ISA, match.any)."""
    return collect((to_mask(a == value) & mask for value in a), B32)


def match_all(a: Values, mask: int) -> tuple[Values, Values]:
    """Return the lanes, if all hold the same value, and whether they do (PTX ISA, match.all)."""
    same = len({int(a[lane]) for lane in lanes_of(mask)}) == 1
    return splat(mask if same else 0, B32, WARP_SIZE), splat(same, PRED, WARP_SIZE)


def elect(mask: int) -> tuple[Values, Values]:
    """Return the lowest lane of a mask that has some, and which lane it is (PTX ISA, elect)."""
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


def reduction(m: Modifiers, a: Values, mask: int) -> Values:
    """Return all lanes' values joined, the same in every lane (PTX ISA, redux)."""
    type, lanes = m.scalar(), lanes_of(mask)
    if type.is_float:
        return splat(_float_extreme(m, a[lanes], type), type, WARP_SIZE)
    numbers: list[int] = as_numbers(a, type)[lanes].tolist()
    return collect([reduce(_REDUCTIONS[m.text("op", "")], numbers)] * WARP_SIZE, type)


def _float_extreme(m: Modifiers, a: Values, type: ScalarType) -> int:
    """Return the bits of the least or the greatest float; -0 is below +0, NaNs only count with
    .NaN."""
    sizes = a & 0x7FFFFFFF if "abs" in m else a
    nan = np.isnan(as_numbers(sizes, type))
    if nan.all() or ("NaN" in m and nan.any()):
        return CANONICAL_NAN[32]
    bits: list[int] = sizes[~nan].tolist()
    choose = min if m["op"] == "min" else max
    return choose(bits, key=lambda b: -(b & 0x7FFFFFFF) - 1 if b >> 31 else b)
