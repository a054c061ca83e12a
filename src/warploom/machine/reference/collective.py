"""What the lanes of a warp do together: shuffles and votes.

Only lanes that execute the instruction take part; the member mask is not looked at. A lane that
reads from one that takes no part gets its own value (PTX ISA leaves that open).
"""

from __future__ import annotations

from warploom.core.types import B32, PRED
from warploom.machine.launch import WARP_SIZE
from warploom.machine.reference.lanes import Values, collect, splat, to_mask


def shuffle(mode: str, a: Values, b: Values, c: Values, mask: int) -> tuple[Values, Values]:
    """What each lane receives, and whether the lane that it asked was in its range
    (PTX ISA, shfl)."""
    sources: list[int] = []
    in_range: list[bool] = []
    for lane, (by, control) in enumerate(zip(b.tolist(), c.tolist(), strict=True)):
        source, reachable = _source(mode, lane, by & 31, control)
        in_range.append(reachable)
        sources.append(source if reachable and mask >> source & 1 else lane)
    return a[sources], collect(in_range, PRED)


def _source(mode: str, lane: int, by: int, control: int) -> tuple[int, bool]:
    """The lane that `lane` asks, and whether it may: `control` holds a bound for the lane's number
    and, from bit 8 on, which of its bits name its segment."""
    segment = control >> 8 & 31
    last = (lane & segment) | (control & 31 & ~segment)
    if mode == "up":
        return lane - by, lane - by >= last
    if mode == "down":
        return lane + by, lane + by <= last
    if mode == "bfly":
        return lane ^ by, lane ^ by <= last
    asked = (lane & segment) | (by & ~segment)
    return asked, asked <= last


def vote(mode: str, a: Values, mask: int) -> Values:
    """The answer, the same in every lane: a .b32 for `ballot`, else a predicate (PTX ISA, vote)."""
    agreed = to_mask(a) & mask
    if mode == "ballot":
        return splat(agreed, B32, WARP_SIZE)
    answers = {"all": agreed == mask, "any": agreed != 0, "uni": agreed in (0, mask)}
    return splat(answers[mode], PRED, WARP_SIZE)
