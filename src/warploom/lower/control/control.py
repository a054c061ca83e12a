"""Emits the control flow of lanes: where they branch, diverge and end.

A branch of the convergent copy on which all lanes agree is a plain jump. One on which they part
makes a node in the warp's table and goes on in the divergent copy (`lower.control.divergence`);
there a block that is some branch's reconvergence point first asks the table
(`lower.control.reconvergence`).

Who meets whom is decided by the rules of `machine.reference.splits`; nodes themselves are for
`lower.control.simt_stack`. Where a warp cannot go on so, it leaves (`lower.control.suspension`).
"""

from __future__ import annotations

from llvmlite import ir

from warploom.ir.warp_ir import BranchKind
from warploom.llvm.lanes import I32, I64, Value
from warploom.lower.control.divergence import Divergence
from warploom.lower.control.edges import Edges
from warploom.lower.control.layout_recovery import LayoutRecovery
from warploom.lower.control.masked_loops import MaskedLoopCode
from warploom.lower.control.reconvergence import ReconvergenceCode
from warploom.lower.control.simt_stack import SimtStackCode
from warploom.lower.control.suspension import Suspension
from warploom.lower.control.warp_order import WarpOrder
from warploom.lower.frame.blocks import Blocks, Copy
from warploom.lower.frame.frame import Frame
from warploom.lower.frame.spills import Saved
from warploom.simt.warp_table import ARRIVED


class Control:
    """Holds the blocks of a warp function in all copies with the ways between them, and emits what
    lanes do at the ends of blocks."""

    def __init__(self, frame: Frame, saved: Saved) -> None:
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self.program = frame.program
        self.suspends = frame.facts.reconvergence.suspends
        saved.spill(frame.facts.spilled)
        self.blocks = Blocks(frame)
        self.simt_stack = SimtStackCode(frame)
        self.warp_order = WarpOrder(frame, scheduled=self.suspends)
        self.masked_loops = MaskedLoopCode(frame, self.simt_stack)
        self.layout_recovery = LayoutRecovery(self.blocks, saved, self.masked_loops)
        self.suspension = Suspension(self.blocks, saved, self.warp_order, self.layout_recovery)
        self.reconvergence = ReconvergenceCode(
            self.blocks, self.simt_stack, self.suspension, self.layout_recovery
        )
        self.edges = Edges(self.blocks, self.masked_loops, self.suspension)
        self.divergence = Divergence(self.edges, self.simt_stack, self.layout_recovery)
        self._before_predicated = frame.variable(I32)
        """The lanes that run together, or wait for those that have stepped aside."""

    def finish(self) -> dict[int, ir.Block]:
        """Emit what the blocks lead to beside each other; gives the ways back in by the sites at
        which a warp waits."""
        with self.b.goto_block(self.blocks.ended):
            self.warp_order.end()
        self.reconvergence.emit()
        resumes = self.suspension.emit_resumes() if self.suspends else {}
        self.suspension.emit_exits()
        return resumes

    # ---- branches -------------------------------------------------------------------------------

    def branch(self, copy: Copy, block: int, guard: Value, instruction: int) -> None:
        """Emit a guarded branch at the end of `block`; active lanes in which the guard holds take
        it."""
        target, following = self.program.blocks[block].successors
        b, lanes = self.b, self.lanes
        active = self.frame.active.bits()
        taken_lanes = b.and_(lanes.bits(guard), active)
        other_lanes = b.xor(active, taken_lanes)
        none_take, some_take = self.blocks.append("stay"), self.blocks.append("some")
        b.cbranch(b.icmp_unsigned("==", taken_lanes, I32(0)), none_take, some_take)
        with b.goto_block(none_take):
            self.edges.jump(copy, following, block)
        b.position_at_end(some_take)
        all_take, diverged = self.blocks.append("go"), self.blocks.append("parted")
        weights = b.cbranch(b.icmp_unsigned("==", other_lanes, I32(0)), all_take, diverged)
        if copy is not Copy.DIVERGENT:
            weights.set_weights([99, 1])
        with b.goto_block(all_take):
            self.edges.jump(copy, target, block)
        b.position_at_end(diverged)
        self.frame.counters.add(self.frame.layout.branches[instruction], I64(1))
        kind = self.frame.facts.blocks[block].branch
        if copy is not Copy.DIVERGENT and kind is BranchKind.EXIT:
            self._exit_region(block, taken_lanes, other_lanes, instruction)
        elif copy is not Copy.DIVERGENT and kind is BranchKind.PREDICATED:
            self._enter_predicated_block(copy, block, taken_lanes, other_lanes, instruction)
        else:
            self.divergence.split(copy, block, taken_lanes, other_lanes, instruction)

    def _exit_region(
        self, block: int, taken_lanes: Value, other_lanes: Value, instruction: int
    ) -> None:
        """Let some lanes leave a region, and wait behind it for those that go on."""
        region = self.masked_loops.region_left_at(block)
        assert region is not None
        target, following = self.program.blocks[block].successors
        loop_block, rest, exiting = (
            (following, other_lanes, taken_lanes)
            if target == region.point
            else (target, taken_lanes, other_lanes)
        )
        self.masked_loops.exit_lanes(region, exiting, instruction)
        self.frame.active.set(rest)
        self.edges.jump(Copy.CONVERGENT, loop_block, block)

    def _enter_predicated_block(
        self, copy: Copy, block: int, taken_lanes: Value, other_lanes: Value, instruction: int
    ) -> None:
        """Let some lanes run a block, and meet the others right behind it."""
        target, following = self.program.blocks[block].successors
        body = self.frame.facts.predicated_blocks[block]
        self.frame.counters.add(self.frame.layout.branches[instruction] + 1, I64(1))
        lanes = taken_lanes if body == target else other_lanes
        for successor in (target, following):
            self.frame.transfers.to_varying(block, successor)
        self.b.store(self.frame.active.bits(), self._before_predicated)
        self.frame.active.set(lanes)
        self.b.branch(self.blocks.beside[self.blocks.entry_copy(copy, body), body])

    def leave_predicated_block(self, copy: Copy, index: int) -> None:
        """End such a block: all lanes that run together go on behind it."""
        self.frame.active.set(self.b.load(self._before_predicated, typ=I32))
        self.edges.jump(copy, self.program.blocks[index].successors[0], index)

    def branch_together(self, copy: Copy, block: int, taken: Value) -> None:
        """Emit a branch at the end of `block` that all lanes take, or none."""
        target, following = self.program.blocks[block].successors
        self.b.cbranch(
            taken,
            *(self.edges.block_to(copy, successor, block) for successor in (target, following)),
        )

    def leave_lanes(self, copy: Copy, block: int, exiting: Value | None) -> None:
        """`ret` or `exit` at the end of `block`, for some lanes or (None) for all active ones.
        A warp that has lost lanes has left the round."""
        if exiting is None:
            self.edges.jump(copy, self.program.exit, block)
            return
        b, frame = self.b, self.frame
        following = self.program.blocks[block].successors[-1]
        gone_bits = self.lanes.bits(b.and_(frame.active.mask(), exiting))
        rest = b.and_(frame.active.mask(), b.not_(exiting))
        some, none = self.blocks.append("remain"), self.blocks.append("gone")
        b.cbranch(self.lanes.any(rest), some, none)
        with b.goto_block(none):
            self.edges.jump(copy, self.program.exit, block)
        b.position_at_end(some)
        frame.active.set(self.lanes.bits(rest))
        frame.active.forget(gone_bits)
        if copy is Copy.DIVERGENT:
            with b.if_then(b.icmp_signed(">=", frame.get(frame.nodes.top), I64(0))):
                self.simt_stack.add_lanes(
                    frame.nodes.node(frame.get(frame.nodes.top), ARRIVED), gone_bits
                )
        self.edges.jump(Copy.CONVERGENT if copy is Copy.REGION else copy, following, block)
