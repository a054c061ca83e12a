"""What every part of the engine sees: the arrays of a launch. It changes none but the totals."""

from __future__ import annotations

from typing import Any, NamedTuple

Words = Any
"""An array of 64-bit integers: to compiled code its address, in Python a NumPy array."""


class Machine(NamedTuple):
    """The arrays by name (`timing.words` has what stands where in them); `p` are the parameters.

    `totals` are one worker's: for each operation the cycles of its warps by state, then how often
    it was issued.
    """

    p: Words
    ops: Words
    registers: Words
    blocks: Words
    streams: Words
    entries: Words
    accesses: Words
    patterns: Words
    lines: Words
    warps: Words
    totals: Words
