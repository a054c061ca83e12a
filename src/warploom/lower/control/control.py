"""Emits the control flow of lanes at the ends of basic blocks.

Each basic block is emitted in several copies (`lower.frame.blocks`): convergent, for all living
lanes together, and divergent. A branch on which all lanes agree is a plain jump in its copy. A
branch on which they diverge is lowered, in the convergent copy, to one of three forms that passes
have chosen:

    exit of a masked loop   lanes that leave are masked off   (`lower.control.masked_loops`)
    predicated block        the short side runs under a mask, the other lanes wait
    anything else           push a node on the SIMT stack, jump to the divergent copy
                            (`lower.control.divergence`)

In the divergent copy a reconvergence point tests the stack first (`lower.control.reconvergence`).
Which lanes reconverge with which is defined by `machine.reference.splits`. Where the schedule has
to decide, the warp function returns (`lower.control.suspension`).
"""

from __future__ import annotations

from llvmlite import ir

from warploom.ir.warp_ir import BranchKind
from warploom.llvm.lanes import I32, I64, Value
from warploom.lower.control.divergence import DivergenceCode
from warploom.lower.control.edges import Edges
from warploom.lower.control.layout_recovery import LayoutRecovery
from warploom.lower.control.masked_loops import MaskedLoopCode
from warploom.lower.control.reconvergence import ReconvergenceCode
from warploom.lower.control.simt_stack import SimtStackCode
from warploom.lower.control.suspension import Suspension
from warploom.lower.control.warp_order import WarpOrder
from warploom.lower.frame.blocks import Blocks, Copy
from warploom.lower.frame.frame import Frame
from warploom.lower.frame.spills import SpillCode
from warploom.simt.warp_table import StackNode


class ControlFlow:
    """Holds the basic blocks of a warp function in all copies and the edges between them, and emits
    what lanes do at the ends of blocks. `suspends`: a warp may return before it ends."""

    def __init__(self, frame: Frame, spills: SpillCode) -> None:
        """Creates the LLVM blocks of all copies and the emitters of control flow that share them;
        emits no code but the variables of these. `spills` saves and restores the warp where it is
        suspended and where it reconverges."""
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self.program = frame.program
        self.suspends = frame.warp_ir.reconvergence.suspends
        self.blocks = Blocks(frame)
        self.simt_stack = SimtStackCode(frame)
        self.warp_order = WarpOrder(frame, scheduled=self.suspends)
        self.masked_loops = MaskedLoopCode(frame, self.simt_stack)
        self.layout_recovery = LayoutRecovery(self.blocks, spills, self.masked_loops)
        self.suspension = Suspension(self.blocks, spills, self.warp_order, self.layout_recovery)
        self.reconvergence = ReconvergenceCode(
            self.blocks, self.simt_stack, self.suspension, self.layout_recovery
        )
        self.edges = Edges(self.blocks, self.masked_loops, self.suspension)
        self.divergence = DivergenceCode(self.edges, self.simt_stack, self.layout_recovery)
        # One variable for all predicated blocks: they have no branches, so that none is inside of
        # another.
        self._before_predicated = frame.variable(I32)
        """The active lanes before a predicated block: those in it and those that wait."""

    def finish(self) -> dict[int, ir.Block]:
        """Emits the code that the copies of blocks share: the warp's end, reconvergence points,
        resume entries and exits. Returns the entries of a resumed warp by the `resume` value of its
        state: a site (numbered barrier) or FROM_TABLE; an empty dictionary if no warp can be
        suspended. To be called after all blocks have been emitted, as their jumps create these
        entries."""
        with self.b.goto_block(self.blocks.ended):
            self.warp_order.end()
        self.reconvergence.emit()
        resumes = self.suspension.emit_resumes() if self.suspends else {}
        self.suspension.emit_exits()
        return resumes

    # ---- branches -------------------------------------------------------------------------------

    def branch(self, copy: Copy, block: int, guard: Value, instruction: int) -> None:
        """Emits a guarded branch at the end of `block`, taken by the active lanes in which `guard`
        (a mask of 32 lanes) holds; inactive lanes do not count. If all active lanes agree, it is a
        jump to the next or the target block.

        If they do not, it adds 1 to the divergence counter of `instruction`. Then it is lowered by
        the block's `BranchKind`: as an exit of a masked loop (EXIT), as the entry of a predicated
        block (PREDICATED), or else as a divergence (`DivergenceCode.split`). In the divergent copy
        it is a divergence whatever the kind."""
        target, following = self.program.blocks[block].successors
        b, lanes = self.b, self.lanes
        active = self.frame.active.bits()
        # Inactive lanes may hold any guard, so both sides are cut to the active ones.
        taken_lanes = b.and_(lanes.bits(guard), active)
        other_lanes = b.xor(active, taken_lanes)
        none_branch, some_branch = (
            self.blocks.append("none_taken"),
            self.blocks.append("some_taken"),
        )
        b.cbranch(b.icmp_unsigned("==", taken_lanes, I32(0)), none_branch, some_branch)
        with b.goto_block(none_branch):
            self.edges.jump(copy, following, block)
        b.position_at_end(some_branch)
        all_branch, diverged = self.blocks.append("all_taken"), self.blocks.append("diverged")
        weights = b.cbranch(b.icmp_unsigned("==", other_lanes, I32(0)), all_branch, diverged)
        if copy is not Copy.DIVERGENT:
            weights.set_weights([99, 1])
        with b.goto_block(all_branch):
            self.edges.jump(copy, target, block)
        b.position_at_end(diverged)
        self.frame.counters.add(self.frame.layout.branches[instruction], I64(1))
        kind = self.frame.warp_ir.blocks[block].branch
        if copy is not Copy.DIVERGENT and kind is BranchKind.EXIT:
            self._exit_region(block, taken_lanes, other_lanes, instruction)
        elif copy is not Copy.DIVERGENT and kind is BranchKind.PREDICATED:
            self._enter_predicated_block(copy, block, taken_lanes, other_lanes, instruction)
        else:
            self.divergence.split(copy, block, taken_lanes, other_lanes, instruction)

    def _exit_region(
        self, block: int, taken_lanes: Value, other_lanes: Value, instruction: int
    ) -> None:
        """Emits the exit of some lanes from a masked loop at the end of `block`: the lanes whose
        successor is the region's point have their values stored and are masked off, the others
        continue in the loop, in the convergent copy."""
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
        """Emits the entry into a predicated block (the short side of an `if`) from `copy`. Stores
        in 32 lanes the registers that become varying in either successor, saves the active mask,
        and jumps to the block's masked version with the lanes that run it; the others are inactive
        until `leave_predicated_block`. The reconvergence is counted here, as it is certain."""
        target, following = self.program.blocks[block].successors
        body = self.frame.warp_ir.predicated_blocks[block]
        self.frame.counters.add(self.frame.layout.branches[instruction] + 1, I64(1))
        lanes = taken_lanes if body == target else other_lanes
        for successor in (target, following):
            # Registers that lose their shape after the block must be stored lane by lane before,
            # while all lanes are active.
            self.frame.transfers.to_varying(block, successor)
        self.b.store(self.frame.active.bits(), self._before_predicated)
        self.frame.active.set(lanes)
        self.b.branch(self.blocks.predicated_copies[self.blocks.entry_copy(copy, body), body])

    def leave_predicated_block(self, copy: Copy, index: int) -> None:
        """Ends predicated block `index`: restores the active mask before it, and jumps to the one
        block that follows."""
        self.frame.active.set(self.b.load(self._before_predicated, typ=I32))
        self.edges.jump(copy, self.program.blocks[index].successors[0], index)

    def branch_together(self, copy: Copy, block: int, taken: Value) -> None:
        """Emits a uniform branch at the end of `block`; `taken` (an i1) is the value of all active
        lanes.
        """
        target, following = self.program.blocks[block].successors
        self.b.cbranch(
            taken,
            *(self.edges.block_to(copy, successor, block) for successor in (target, following)),
        )

    def leave_lanes(self, copy: Copy, block: int, exiting: Value | None) -> None:
        """Emits `ret` or `exit` at the end of `block`, for the lanes `exiting` or (None) for all
        active ones. If active lanes remain, the exiting ones leave the live mask, and in the
        divergent copy count as arrived in the innermost node. The others continue with the next
        block; from a region version, which is for full warps, in the convergent copy. Else code
        jumps to the program's exit."""
        if exiting is None:
            self.edges.jump(copy, self.program.exit, block)
            return
        b, frame = self.b, self.frame
        following = self.program.blocks[block].successors[-1]
        gone_bits = self.lanes.bits(b.and_(frame.active.mask(), exiting))
        rest = b.and_(frame.active.mask(), b.not_(exiting))
        some, none = self.blocks.append("some_remain"), self.blocks.append("all_exited")
        b.cbranch(self.lanes.any(rest), some, none)
        with b.goto_block(none):
            self.edges.jump(copy, self.program.exit, block)
        b.position_at_end(some)
        # In the convergent copy that is all: code there assumes that all *living* lanes are active,
        # and those that remain are.
        frame.active.set(self.lanes.bits(rest))
        frame.active.forget(gone_bits)
        # Lanes that exit count as arrived: the innermost node must not wait for them.
        if copy is Copy.DIVERGENT:
            with b.if_then(b.icmp_signed(">=", frame.get(frame.nodes.top), I64(0))):
                self.simt_stack.add_lanes(
                    frame.nodes.node(frame.get(frame.nodes.top), StackNode.arrived), gone_bits
                )
        self.edges.jump(Copy.CONVERGENT if copy is Copy.REGION else copy, following, block)
