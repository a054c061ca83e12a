"""Determines for which results a division, reciprocal or square root calls a routine.

ptxas makes a few instructions in line for `div.rn.f32`, `rcp.rn.f32` and `sqrt.rn.f32`, a test of
the operands, and a call of a routine (`__cuda_sm20_..._slowpath`) for operands that these do not
serve: zeros, infinities, NaNs, denormal numbers, and those near them.
"""

from __future__ import annotations

from warploom.isa.spec import Operation

LEAST_NORMAL, MOST_NORMAL = 0x0080_0000, 0x7F7F_FFFF
"""Bits of 2^-126 and of the largest number of 32 bits."""

_ORDINARY = {
    "div": (LEAST_NORMAL, MOST_NORMAL),
    "rcp": (LEAST_NORMAL + 1, 0x7E80_0000),
    "sqrt": (0x2635_04F3, 0x5F7F_FFFF),
}
"""By operation, the least and the greatest magnitude (as bits) of results for which the code in
line does. Source: the tests that ptxas 12.4 and 13.5 make for `rcp` (exponents of 1 to 252 of the
operand, so results from above 2^-126 to 2^126) and for `sqrt` (operands from 2^-101 on). `div` is
tested by FCHK, of which nothing is published: that it fails where the quotient is no normal number
is an ESTIMATE. That it fails for 0 / 0 show the counts of a published run (docs/timing.md)."""


def ordinary_results(operation: Operation) -> tuple[int, int] | None:
    """Returns the least and the greatest magnitude, as bits, of those results of an operation which
    need no routine; None where it has none."""
    modifiers = operation.modifiers
    if modifiers["type"] != "f32" or modifiers["rnd"] != "rn":
        return None
    return _ORDINARY.get(operation.name)
