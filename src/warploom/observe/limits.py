"""Defines the limits of what a trace records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from warploom.core.options import checked_fields
from warploom.core.values import Integer

Bound = Annotated[int, Integer(0, 2**62)]


@checked_fields
@dataclass(frozen=True, slots=True)
class TraceLimits:
    """The limits of a recording: the number of warps, in the order in which they begin, and the
    steps of each; the number of warps whose registers are recorded; the size in bytes up to which
    contents of allocations are. `blocks` selects the thread blocks to record."""

    warps: Bound = 64
    steps: Bound = 100_000
    registers: Bound = 64
    contents: Bound = 1 << 18
    blocks: frozenset[int] | None = None
