"""Creates the LLVM blocks of a warp function: up to three copies of each basic block (convergent,
divergent, region).

In the convergent copy all live lanes are active, but for those that have left a masked loop which
others are in, and registers are values of the shapes that analysis finds. In the divergent copy
any subset may be active, and shared registers are in the warp's context. The region copy is a
second convergent copy of barrier regions, in which the warps of a thread block run one after the
other (warp order); whatever else happens (divergence, an exit) branches to the other copies.
Baseline code, and sanitized code for any order, have the divergent copy alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from llvmlite import ir

from warploom.isa.instruction import Register
from warploom.lower.frame.frame import Frame


class Copy(Enum):
    """Names the copies of a basic block; the value begins the names of LLVM blocks."""

    CONVERGENT = "c"
    DIVERGENT = "d"
    REGION = "r"


class Blocks:
    """Holds the LLVM blocks of a warp function, by copy and number of the basic block.

    `copies`: their entries. `predicated_copies`: versions of predicated blocks under a mask, by the
    copy that they return to. `batches`: the entries of batches of iterations, by copy and loop
    header (`lower.loops.strided_loops`). `arrivals`: entries of the divergent copy at possible
    reconvergence points. `ended`: the block where all lanes have ended. `main`: the copy in which a
    warp begins: the convergent one, in code of one copy the divergent one.
    """

    def __init__(self, frame: Frame) -> None:
        """Appends an LLVM block for each copy of a basic block, for each predicated block and each
        batch in the convergent and the region copy, for each possible reconvergence point, and for
        the end. A batch needs a copy that has all blocks of the loop."""
        self.frame, self.program = frame, frame.program
        predicated, reconvergence = (
            frame.warp_ir.predicated_blocks.values(),
            frame.warp_ir.reconvergence.points,
        )
        self.main = Copy.DIVERGENT if frame.variant.has_one_copy else Copy.CONVERGENT
        self.copies = {
            (copy, index): self.append(f"{copy.value}{index}")
            for copy in Copy
            for index in self._present(copy)
        }
        self.predicated_copies = {
            (copy, index): self.append(f"predicated.{copy.value}{index}")
            for copy in (Copy.CONVERGENT, Copy.REGION)
            for index in self._present(copy)
            if index in predicated
        }
        self.batches = {
            (copy, loop.header): self.append(f"batch.{copy.value}{loop.header}")
            for copy in (Copy.CONVERGENT, Copy.REGION)
            for loop in (batched.loop for batched in frame.warp_ir.strided_loops)
            if all((copy, index) in self.copies for index in loop.blocks)
        }
        self.arrivals = {i: self.append(f"arrive{i}") for i in reconvergence}
        self.ended = self.append("ended")

    def _present(self, copy: Copy) -> Iterable[int]:
        """Returns the numbers of the basic blocks that have a copy: all in the main and the
        divergent copy, those of `region_versions` in the region copy, none in the convergent one in
        code of one copy.
        """
        if copy is self.main or copy is Copy.DIVERGENT:
            return range(len(self.program.blocks))
        if copy is Copy.CONVERGENT:
            return ()
        return self.frame.warp_ir.region_versions()

    def append(self, name: str) -> ir.Block:
        """Appends an LLVM block to the function and returns it; emits no code."""
        return self.frame.function.append_basic_block(name)

    def can_run(self, copy: Copy, index: int) -> bool:
        """Returns whether a basic block may be executed in a copy: always in the main one; in
        another only if lanes may be diverged in the block. A copy that cannot run is
        `unreachable`."""
        return copy is self.main or index in self.frame.warp_ir.reconvergence.diverged

    def entry_copy(self, copy: Copy, index: int) -> Copy:
        """Returns the copy of a basic block that code of a given copy branches to: the convergent
        one where the region copy has no such block (its barrier region ends), else the same."""
        # The convergent copy has all blocks, and registers in the same allocas: a jump suffices.
        ends = copy is Copy.REGION and (copy, index) not in self.copies
        return Copy.CONVERGENT if ends else copy

    def entrance(self, copy: Copy, index: int) -> ir.Block:
        """Returns the LLVM block that code of a copy branches to for basic block `index`. In the
        divergent copy it is the arrival where lanes may reconverge, else the block's own code; in
        others `ended` for the program's exit, else the entry of the copy that has the block
        (`entry_copy`)."""
        if index == self.program.exit and copy is not Copy.DIVERGENT:
            return self.ended
        if index in self.arrivals and copy is Copy.DIVERGENT:
            return self.arrivals[index]
        return self.copies[self.entry_copy(copy, index), index]

    def live(self, index: int) -> frozenset[Register]:
        """Returns the live-in registers of a basic block."""
        return self.frame.warp_ir.live(index)
