"""Emits the edges between the basic blocks of a warp function: changes of register layouts, entries
and exits of masked loops, and the fuel test of back edges."""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.environment import Status
from warploom.lower.control.masked_loops import MaskedLoopCode
from warploom.lower.control.suspension import Suspension
from warploom.lower.frame.blocks import Blocks, Copy


class Edges:
    """Emits the edges between basic blocks of one warp function, in each copy. All back edges of
    one loop share an LLVM block (`_headers`, by copy and loop header)."""

    def __init__(
        self, blocks: Blocks, masked_loops: MaskedLoopCode, suspension: Suspension
    ) -> None:
        """Begins with no header of back edges; `_header` adds them."""
        self.blocks, self.masked_loops, self.suspension = blocks, masked_loops, suspension
        self.frame, self.b, self.program = blocks.frame, blocks.frame.lanes.b, blocks.program
        self._headers: dict[tuple[Copy, int], ir.Block] = {}

    def jump(self, copy: Copy, index: int, origin: int) -> None:
        """Emits a jump from block `origin` to block `index` in a copy (`block_to`); to
        `program.exit` it ends the active lanes."""
        self.b.branch(self.block_to(copy, index, origin))

    def block_to(self, copy: Copy, index: int, origin: int) -> ir.Block:
        """Returns the LLVM block to which code of block `origin` jumps to continue at block
        `index`: that block's entry, or its header of back edges. If the edge enters or leaves
        masked loops, or registers become varying on it, it is a new LLVM block on the edge, which
        does this first (in a region copy no edge leaves them). The divergent copy has neither
        masked loops nor such registers."""
        if copy is Copy.DIVERGENT:
            return self._block_without_transfers(copy, index, origin)
        # In a region copy no lane has left a masked loop, for the others then continue in the
        # convergent copy: leaving one needs no code.
        before, after = (self.frame.shapes.around(block) for block in (origin, index))
        left = [region for region in before if region not in after and copy is not Copy.REGION]
        entered = [region for region in after if region not in before]
        if not (left or entered or self.frame.transfers.becomes_varying(origin, index)):
            return self._block_without_transfers(copy, index, origin)
        # An edge that changes layouts or masks gets a block of its own: neither end may do it for
        # all its other edges.
        edge = self.blocks.append(f"edge{origin}.{index}")
        with self.b.goto_block(edge):
            self.frame.transfers.to_varying(origin, index)
            for region in left:
                self.masked_loops.exit_region_together(region)
            self.masked_loops.enter(entered)
            self.b.branch(self._block_without_transfers(copy, index, origin))
        return edge

    def _block_without_transfers(self, copy: Copy, index: int, origin: int) -> ir.Block:
        """Returns the LLVM block of an edge on which neither layouts nor masks change: the loop's
        header of back edges (`_header`) for an edge to a block that is not later, else the block's
        entry (`Blocks.entrance`)."""
        if index != self.program.exit and index <= origin:
            return self._header(self.blocks.entry_copy(copy, index), index)
        return self.blocks.entrance(copy, index)

    def _header(self, copy: Copy, index: int) -> ir.Block:
        """Returns the LLVM block of a loop's back edges, created at the first use: it ends the
        warp's turn if that is due (`Fuel.ends_turn`), then enters a batch of iterations
        (`lower.loops.strided_loops`), if the loop has batches, or else the loop's header."""
        # One block for all back edges of a loop: a `continue` would otherwise have a fuel test and
        # a check of a batch of its own.
        if (copy, index) not in self._headers:
            header = self.blocks.append(f"back.{copy.value}{index}")
            self._headers[copy, index] = header
            with self.b.goto_block(header):
                with self.b.if_then(self.frame.fuel.ends_turn(), likely=False):
                    self._end_turn(copy, index)
                # A loop with batches attempts one at each back edge.
                batch = self.blocks.batches.get((copy, index))
                self.b.branch(batch or self.blocks.entrance(copy, index))
        return self._headers[copy, index]

    def _end_turn(self, copy: Copy, index: int) -> None:
        """Emits the suspension of the running lanes with TURN_END; they continue at block `index`
        in their next turn. If lanes have left a masked loop around the block, which others are
        still in, the state is saved as after a divergence: lane by lane, with a node for those that
        have left."""
        # In a masked loop that some lanes have left, those inside are a split of their own: the
        # context must hold it as the SIMT stack would.
        together = copy is not Copy.DIVERGENT
        if together and self.frame.shapes.around(index):
            with (
                self.b.if_then(self.masked_loops.some_exited(index)),
                self.frame.at_block(index, convergent=True),
            ):
                self.masked_loops.diverge(index, self.blocks.live(index))
                with self.frame.at_block(index, convergent=False):
                    self.suspension.suspend(Status.TURN_END, index)
        with self.frame.at_block(index, convergent=together):
            self.suspension.suspend(Status.TURN_END, index)
