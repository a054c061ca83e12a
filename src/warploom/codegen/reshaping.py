"""From registers lane by lane back to registers by shape, where all living lanes meet."""

from __future__ import annotations

from llvmlite import ir

from warploom.codegen.blocks import Blocks, Copy
from warploom.codegen.lanes import I1
from warploom.codegen.leaving import LeavingCode
from warploom.codegen.saved import Saved


class Reshaping:
    """Emits the ways from the divergent copy of a block to the convergent one.

    A flag tells whether registers may have lost their shapes since lanes were together last.
    """

    def __init__(self, blocks: Blocks, saved: Saved, leaving: LeavingCode) -> None:
        self.blocks, self.saved, self.leaving = blocks, saved, leaving
        self.frame, self.b = blocks.frame, blocks.frame.lanes.b
        self._stale = self.frame.variable(I1)
        self._reshaped: dict[int, ir.Block] = {}
        self._settlings: dict[int, ir.Block] = {}

    def set_stale(self, stale: bool) -> None:
        """Say whether registers may have lost their shapes."""
        self.b.store(I1(int(stale)), self._stale)

    def meet(self, index: int) -> None:
        """Go on with a block, all living lanes together."""
        stale = self.b.load(self._stale, typ=I1)
        self.b.cbranch(stale, self.reshape(index), self._settled(index))

    def reshape(self, index: int) -> ir.Block:
        """Where all living lanes go on together at a block, and registers were kept lane by lane:
        in the convergent copy if they still have their shapes."""
        if not self.frame.shapes or index == self.blocks.program.exit:
            return self.blocks.entrance(Copy.CONVERGENT, index)
        if index not in self._reshaped:
            self._reshaped[index] = self.blocks.append(f"reshape{index}")
            standing = self.frame.standing(index, convergent=False)
            with self.b.goto_block(self._reshaped[index]), standing:
                holds = self.frame.gather(self.blocks.live(index))
                self.b.store(self.b.not_(holds), self._stale)
                self.b.cbranch(
                    holds, self._settled(index), self.blocks.copies[Copy.DIVERGENT, index]
                )
        return self._reshaped[index]

    def _settled(self, index: int) -> ir.Block:
        """Where all living lanes go on together at a block, and all registers have their shapes."""
        loops = self.frame.shapes.around(index)
        if index == self.blocks.program.exit or not (self.frame.steady or loops):
            return self.blocks.entrance(Copy.CONVERGENT, index)
        if index not in self._settlings:
            self._settlings[index] = self.blocks.append(f"settle{index}")
            standing = self.frame.standing(index, convergent=True)
            with self.b.goto_block(self._settlings[index]), standing:
                if self.frame.steady:
                    self.saved.settle(self.blocks.live(index))
                self.leaving.enter(loops)
                self.b.branch(self.blocks.entrance(Copy.CONVERGENT, index))
        return self._settlings[index]
