"""The basic blocks of a warp function, each in two copies.

In the convergent copy all lanes that still live are active; in the divergent one some have parted
from others.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from llvmlite import ir

from warploom.analysis.partings import Partings
from warploom.codegen.frame import Frame
from warploom.ptx.ir import Register


class Copy(Enum):
    """Which of the two copies of a block."""

    CONVERGENT = "c"
    DIVERGENT = "d"


class Blocks:
    """Where code of one warp function goes: the copies of each block, and how they are entered.

    `beside`: the blocks that some lanes run under a mask while the others wait. `arrivals`: where
    the divergent copy comes to a possible meeting point. `ended`: where all lanes have come to the
    end of the program.
    """

    def __init__(self, frame: Frame, partings: Partings, beside: Iterable[int]) -> None:
        self.frame, self.program, self._partings = frame, frame.program, partings
        self.copies = {
            (copy, index): self.append(f"{copy.value}{index}")
            for copy in Copy
            for index in range(len(self.program.blocks))
        }
        self.beside = {index: self.append(f"aside{index}") for index in sorted(beside)}
        self.arrivals = {i: self.append(f"arrive{i}") for i in sorted(partings.joins)}
        self.ended = self.append("ended")

    def append(self, name: str) -> ir.Block:
        """A new block at the end of the function."""
        return self.frame.function.append_basic_block(name)

    def runs(self, copy: Copy, index: int) -> bool:
        """Whether a block can run in a copy."""
        shaped = bool(self.frame.shapes)
        return copy is Copy.CONVERGENT or index in self._partings.parted or shaped

    def entrance(self, copy: Copy, index: int) -> ir.Block:
        """Where to jump to begin a block."""
        if index == self.program.exit and copy is Copy.CONVERGENT:
            return self.ended
        if index in self.arrivals and copy is Copy.DIVERGENT:
            return self.arrivals[index]
        return self.copies[copy, index]

    def live(self, index: int) -> frozenset[Register]:
        """The registers that lanes may read from the begin of a block on."""
        return self.program.live_in[index] if index < self.program.exit else frozenset()
