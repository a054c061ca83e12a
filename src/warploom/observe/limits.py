"""Bounds of what a trace records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from warploom.core.options import checked_fields
from warploom.core.values import Integer

Bound = Annotated[int, Integer(0, 2**62)]


@checked_fields
@dataclass(frozen=True, slots=True)
class TraceLimits:
    """Bounds of a recording: warps, the first that run, and steps of each; `registers` of
    how many warps; the contents of allocations of up to `contents` bytes. `blocks` are those to
    record where not the first that run."""

    warps: Bound = 64
    steps: Bound = 100_000
    registers: Bound = 64
    contents: Bound = 1 << 18
    blocks: frozenset[int] | None = None
