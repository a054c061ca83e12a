"""Says which lane another reads by `shfl` (PTX ISA, "shfl.sync")."""

from __future__ import annotations


def shuffle_source(mode: str, lane: int, by: int, control: int) -> tuple[int, bool]:
    """Returns the lane that `lane` names, and whether it is in range.

    `by` is the low 5 bits of operand b. `control`, operand c, holds a bound for the lane's number
    and, from bit 8 on, which of its bits name its segment.
    """
    segment = control >> 8 & 31
    last = (lane & segment) | (control & 31 & ~segment)
    if mode == "up":
        return lane - by, lane - by >= last
    if mode == "down":
        return lane + by, lane + by <= last
    if mode == "bfly":
        return lane ^ by, lane ^ by <= last
    named = (lane & segment) | (by & ~segment)
    return named, named <= last
