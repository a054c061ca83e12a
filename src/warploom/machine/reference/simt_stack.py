"""Divergence before compute capability 7.0: one active mask and a stack of places to meet again.

A branch that sends lanes both ways runs one side, then the other, up to the immediate
post-dominator of its block, where the lanes go on together (CUDA C++ Programming Guide, "SIMT
Architecture").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Side:
    """Lanes that go on at a block."""

    block: int
    mask: int


@dataclass(slots=True)
class Entry:
    """Lanes that wait: those of `joined` go on together at block `reconvergence`, once the lanes of
    `other` have been there too. `branch` is the instruction that parted them."""

    reconvergence: int
    joined: int
    branch: int
    other: Side | None


@dataclass(slots=True)
class SimtStack:
    """The lanes of a warp: `active` run at `block`, `entries` wait. `exit` is the virtual end."""

    exit: int
    active: int
    block: int = 0
    entries: list[Entry] = field(default_factory=list[Entry])

    @property
    def ended(self) -> bool:
        return self.block == self.exit

    def diverge(self, branch: int, reconvergence: int, taken: Side, through: Side) -> list[int]:
        """Part the active lanes at a branch; the branches whose lanes have met are given back.

        The side that falls through goes first. A side that is already where the sides meet has
        nothing to run: it only waits, in the entry of an outer branch if that meets there too.
        """
        first, other = through, taken
        if (taken.block == reconvergence) != (through.block == reconvergence):
            first, other = (through if taken.block == reconvergence else taken), None
        meets_outside = bool(self.entries) and self.entries[-1].reconvergence == reconvergence
        if other is not None or not meets_outside:
            self.entries.append(Entry(reconvergence, self.active, branch, other))
        self.active = first.mask
        return self.arrive(first.block)

    def arrive(self, block: int) -> list[int]:
        """The active lanes come to `block`; the branches whose lanes met there are given back."""
        return list(self._arrive(block))

    def _arrive(self, block: int) -> Iterator[int]:
        while self.entries and self.entries[-1].reconvergence == block:
            top = self.entries[-1]
            if top.other is not None:
                block, self.active, top.other = top.other.block, top.other.mask, None
                continue
            self.entries.pop()
            if block != self.exit:
                self.active = top.joined
                yield top.branch
        self.block = block
        if block == self.exit:
            self.active = 0
