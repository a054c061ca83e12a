"""Emits the divergence of lanes: one side continues in the divergent copy of the blocks, the other
waits in a node of the SIMT stack (`lower.control.simt_stack`).

    @%p bra B5;   reconvergence point B6, fall-through B4
    ->  push node(point = B6, other side = B5 with the lanes of %p)
        active mask = lanes of not %p;  jump to B4 (divergent copy)
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from warploom.abi.environment import Slot
from warploom.helpers.calls import call
from warploom.isa.instruction import Register
from warploom.llvm.lanes import I32, I64, Value
from warploom.lower.control.edges import Edges
from warploom.lower.control.layout_recovery import LayoutRecovery
from warploom.lower.control.simt_stack import SimtStackCode
from warploom.lower.frame.blocks import Copy
from warploom.program.uses import reads
from warploom.simt.warp_table import NONE, StackNode


class DivergenceCode:
    """Emits the divergence of lanes in one warp function, at branches and before instructions whose
    affine results wrap around (and are varying then)."""

    def __init__(
        self, edges: Edges, simt_stack: SimtStackCode, layout_recovery: LayoutRecovery
    ) -> None:
        """Begins with no entry in the middle of a divergent block (`steps`, filled by
        `diverge_within`)."""
        self.edges, self.blocks, self.simt_stack, self.layout_recovery = (
            edges,
            edges.blocks,
            simt_stack,
            layout_recovery,
        )
        self.frame, self.lanes, self.b = edges.frame, edges.frame.lanes, edges.b
        self.program, self._variant = edges.program, edges.frame.variant
        self.steps: dict[int, ir.Block] = {}
        """By instruction, the entry of the divergent copy in the middle of a basic block."""

    def split(
        self, copy: Copy, block: int, taken_lanes: Value, other_lanes: Value, instruction: int
    ) -> None:
        """Emits the divergence of the active lanes at a branch: their registers are stored, one
        side runs in the divergent copy (`_split_sides` chooses it), the other waits in a new node
        of the SIMT stack. A side that begins at the reconvergence point counts as arrived in the
        node and the other one runs; no node is pushed for it if the innermost one has this
        point."""
        b = self.b
        self.store_live_lanes(block)
        target, following = self.program.blocks[block].successors
        point = self.program.reconvergence[block]
        if point not in (target, following):
            self._split_sides(block, (target, taken_lanes), (following, other_lanes), instruction)
            return
        active_block, mask, waiting = (
            (following, other_lanes, taken_lanes)
            if point == target
            else (target, taken_lanes, other_lanes)
        )
        # One side goes straight to the reconvergence point: its lanes arrive at once. If the
        # innermost node is for that point already, as in a loop that lanes leave one by one, they
        # join it.
        gathers = self.simt_stack.gathers_at(point)
        new_node, joined = self.blocks.append("push_node"), self.blocks.append("join_node")
        b.cbranch(gathers, joined, new_node)
        b.position_at_end(new_node)
        self.simt_stack.push(point, I64(NONE), I32(0), I64(instruction))
        b.branch(joined)
        b.position_at_end(joined)
        self.simt_stack.add_lanes(
            self.frame.nodes.node(self.frame.get(self.frame.nodes.top), StackNode.arrived), waiting
        )
        self._run_diverged(mask, active_block, block)

    def _split_sides(
        self, block: int, taken: tuple[int, Value], through: tuple[int, Value], instruction: int
    ) -> None:
        """Emits the divergence into two sides, each a block and its lanes, of which neither begins
        at the reconvergence point. The fall-through side runs first and the taken one waits in a
        new node, unless the schedule's policy chooses at run time (helper `branch_first`)."""
        b, frame = self.b, self.frame
        point = self.program.reconvergence[block]
        if not self._variant.policy_orders_paths:
            self.simt_stack.push(point, I64(taken[0]), taken[1], I64(instruction))
            self._run_diverged(through[1], through[0], block)
            return
        arguments = frame.pointer(Slot.PLAN_AT), frame.context.at(0), frame.warp
        taken_first = b.icmp_signed("!=", call(self.lanes, "branch_first", *arguments), I64(0))
        # The choice is made at run time but both orders push the same node, with the sides
        # exchanged; only the jump at the end needs two copies.
        waits_at = b.select(taken_first, I64(through[0]), I64(taken[0]))
        waiting = b.select(taken_first, through[1], taken[1])
        self.simt_stack.push(point, waits_at, waiting, I64(instruction))
        taken_block, fall_block = (
            self.blocks.append("taken_first"),
            self.blocks.append("fallthrough_first"),
        )
        b.cbranch(taken_first, taken_block, fall_block)
        b.position_at_end(taken_block)
        self._run_diverged(taken[1], taken[0], block)
        b.position_at_end(fall_block)
        self._run_diverged(through[1], through[0], block)

    def _run_diverged(self, bits: Value, index: int, origin: int) -> None:
        """Makes lanes `bits` active, which continue at block `index` in the divergent copy, unless
        they are suspended (`Suspension.diverge`). `origin`: the block that they come from, for the
        test whether the jump is a back edge."""
        self.frame.active.set(bits)
        self.edges.suspension.diverge(index, lambda: self.edges.jump(Copy.DIVERGENT, index, origin))

    def store_live_lanes(self, block: int) -> None:
        """Stores the registers that are live in a successor of a block to the context, in 32 lanes,
        before lanes may diverge at its end, and pushes a node for each masked loop that lanes have
        left. Emits nothing in divergent code, whose registers are there."""
        if self.frame.position.convergent:
            successors = self.program.blocks[block].successors
            live = frozenset[Register]().union(
                *(self.blocks.live(successor) for successor in successors)
            )
            self.edges.masked_loops.diverge(block, live)

    def diverge_within(self, index: int, condition: Value, leave: Callable[[], None]) -> None:
        """Emits the exit of all lanes to the divergent copy before instruction `index`, taken if a
        condition (an i1: an affine value wraps around) holds. On the exit `leave` emits code first,
        then live registers are stored in 32 lanes and their shapes marked as stale. The entry in
        the middle of the divergent copy is recorded in `steps`, by instruction; the instruction's
        guard has been counted already."""
        if index not in self.steps:
            self.steps[index] = self.blocks.append(f"step{index}")
        block = next(b for b in self.program.blocks if b.start <= index < b.stop)
        with self.b.if_then(condition, likely=False):
            leave()
            rest = self.program.instructions[index : block.stop]
            live_after = frozenset[Register]().union(
                *(self.blocks.live(successor) for successor in block.successors)
            )
            live_after = live_after.union(*(reads(instruction) for instruction in rest))
            self.edges.masked_loops.diverge(block.index, live_after)
            # The wrapped value has lost its affine form: shapes must be checked when the lanes
            # reconverge.
            self.layout_recovery.set_stale(True)
            self.b.branch(self.steps[index])
