"""The basic blocks of a warp function, each in two copies or three.

In the convergent copy all lanes that still live are active; in the divergent one some have parted
from others. A third copy is the convergent one of what lies between barriers, for warps in relay:
a loop over the warps of a block, which is left wherever anything but that happens.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from llvmlite import ir

from warploom.lower.frame.frame import Frame
from warploom.ptx.ir import Register


class Copy(Enum):
    """Names the copies of a block."""

    CONVERGENT = "c"
    DIVERGENT = "d"
    REGION = "r"


class Blocks:
    """The basic blocks of one warp function's code: the copies of each block, and how they are
    entered.

    `batches`: by copy and header of a loop, where its batches of iterations begin
    (`lower.loops.strided_loops`).

    `beside`: the blocks that some lanes run under a mask while the others wait, and in which copy
    they then go on. `arrivals`: where the divergent copy comes to a possible meeting point.
    `ended`: where all lanes have come to the end of the program. `main`: the copy in which all
    lanes go together; baseline code has the divergent one alone.
    """

    def __init__(self, frame: Frame) -> None:
        self.frame, self.program = frame, frame.program
        beside, reconvergence = (
            frame.facts.predicated_blocks.values(),
            frame.facts.reconvergence.points,
        )
        self.main = Copy.DIVERGENT if frame.variant.baseline else Copy.CONVERGENT
        self.copies = {
            (copy, index): self.append(f"{copy.value}{index}")
            for copy in Copy
            for index in self._present(copy)
        }
        self.beside = {
            (copy, index): self.append(f"predicated.{copy.value}{index}")
            for copy in (Copy.CONVERGENT, Copy.REGION)
            for index in self._present(copy)
            if index in beside
        }
        self.batches = {
            (copy, loop.header): self.append(f"batch.{copy.value}{loop.header}")
            for copy in (Copy.CONVERGENT, Copy.REGION)
            for loop in (batched.loop for batched in frame.facts.strided_loops)
            if all((copy, index) in self.copies for index in loop.blocks)
        }
        self.arrivals = {i: self.append(f"arrive{i}") for i in reconvergence}
        self.ended = self.append("ended")

    def _present(self, copy: Copy) -> Iterable[int]:
        if copy is self.main or copy is Copy.DIVERGENT:
            return range(len(self.program.blocks))
        if copy is Copy.CONVERGENT:
            return ()
        return self.frame.facts.region_versions()

    def append(self, name: str) -> ir.Block:
        """Return a new block at the end of the function."""
        return self.frame.function.append_basic_block(name)

    def runs(self, copy: Copy, index: int) -> bool:
        """Returns whether a block can run in a copy."""
        shaped = bool(self.frame.shapes)
        return copy is self.main or index in self.frame.facts.reconvergence.diverged or shaped

    def entry_copy(self, copy: Copy, index: int) -> Copy:
        """Return in which copy a block runs that is reached from a copy of another."""
        ends = copy is Copy.REGION and (copy, index) not in self.copies
        return Copy.CONVERGENT if ends else copy

    def entrance(self, copy: Copy, index: int) -> ir.Block:
        """Returns where to jump to begin a block."""
        if index == self.program.exit and copy is not Copy.DIVERGENT:
            return self.ended
        if index in self.arrivals and copy is Copy.DIVERGENT:
            return self.arrivals[index]
        return self.copies[self.entry_copy(copy, index), index]

    def live(self, index: int) -> frozenset[Register]:
        """Return the registers that lanes may read from the begin of a block on."""
        return self.frame.facts.live(index)
