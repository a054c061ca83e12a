"""Emits reconvergence in the divergent copy of the code, which runs while some living lanes are not
active: the points at which lanes wait for each other.

At a point, lanes join the innermost node of the SIMT stack if it is for this point. If its other
side has not run, that side begins; once all its lanes have arrived, the node is popped. When the
stack is empty and all living lanes are active, code returns to the convergent copy.
"""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.environment import Status
from warploom.llvm.lanes import I32, I64, Value
from warploom.lower.control.layout_recovery import LayoutRecovery
from warploom.lower.control.simt_stack import SimtStackCode
from warploom.lower.control.suspension import Suspension
from warploom.lower.frame.blocks import Blocks, Copy
from warploom.simt.warp_table import StackNode


class ReconvergenceCode:
    """Emits, for the divergent copy, the arrival of lanes at each possible reconvergence point. A
    node of the SIMT stack has such a point, the lanes that it expects there, and a side that
    waits."""

    def __init__(
        self,
        blocks: Blocks,
        simt_stack: SimtStackCode,
        suspension: Suspension,
        layout_recovery: LayoutRecovery,
    ) -> None:
        """Reads the reconvergence points, and whether warps can be suspended, from the Warp IR."""
        self.blocks, self.simt_stack = blocks, simt_stack
        self.suspension, self.layout_recovery = suspension, layout_recovery
        self.frame, self.lanes, self.b = blocks.frame, blocks.frame.lanes, blocks.frame.lanes.b
        self._points = self.frame.warp_ir.reconvergence.points
        self._suspends = self.frame.warp_ir.reconvergence.suspends

    def emit(self) -> None:
        """Emits, for each possible reconvergence point, the block through which the divergent copy
        enters it: the arrival at the program's exit, or at a point.
        """
        for index, block in self.blocks.arrivals.items():
            self.b.position_at_end(block)
            if index == self.blocks.program.exit:
                self._arrive_at_exit()
            else:
                self._arrive(index, block)

    def _arrive(self, index: int, arrival: ir.Block) -> None:
        """Emits the arrival of the running lanes at point `index` in the LLVM block `arrival`. If
        it is not the innermost node's point, they enter the divergent copy of the block. Else they
        join the node; once all its lanes have arrived, a reconvergence is counted, the node popped,
        and they continue together. If a node is left, that is at `arrival` again; with an empty
        stack it is the convergent copy if all living lanes have arrived, else the divergent one."""
        b, frame = self.b, self.frame
        gathers = self.blocks.append(f"reconverge{index}")
        b.cbranch(
            self.simt_stack.gathers_at(index), gathers, self.blocks.copies[Copy.DIVERGENT, index]
        )
        b.position_at_end(gathers)
        node = self._join_node(index)
        expected = frame.get(frame.nodes.node(node, StackNode.expected))
        frame.active.set(b.trunc(expected, I32))
        self.simt_stack.count_reconvergence(self.simt_stack.branch(node), I64(1))
        self.simt_stack.pop(node)
        # Nodes nest: the popped node's lanes may be expected at this point by the next one, too.
        together = self.blocks.append(f"stack_empty{index}")
        b.cbranch(b.icmp_signed("<", frame.get(frame.nodes.top), I64(0)), together, arrival)
        b.position_at_end(together)
        is_full = b.icmp_unsigned("==", frame.active.bits(), b.load(frame.active.live, typ=I32))
        all_living = self.blocks.append(f"all_lanes{index}")
        b.cbranch(is_full, all_living, self.blocks.copies[Copy.DIVERGENT, index])
        b.position_at_end(all_living)
        self.layout_recovery.reconverge(index)

    def _join_node(self, point: int) -> Value:
        """Adds the active lanes to those that have arrived at the innermost node; then switches to
        the node's other side if that has not begun, or suspends (RECONVERGING) if lanes are
        missing, as other splits must bring them. Code goes on where all have arrived. Returns the
        node's number."""
        b, frame = self.b, self.frame
        node = frame.get(frame.nodes.top)
        arrived = self.simt_stack.add_lanes(
            frame.nodes.node(node, StackNode.arrived), frame.active.bits()
        )
        self._other_side(point, node)
        # Without suspension a warp has no other split: after the other side, all lanes have
        # arrived.
        if self._suspends:
            missing = b.icmp_unsigned(
                "!=", arrived, frame.get(frame.nodes.node(node, StackNode.expected))
            )
            with b.if_then(missing, likely=False):
                self.suspension.suspend(Status.RECONVERGING, point)
        return node

    def _arrive_at_exit(self) -> None:
        """Emits the end of the running lanes: they are no longer live. While the innermost node is
        for the exit, they join it, and its other side then runs; once all its lanes have ended, it
        is popped. Afterwards, lanes that wait in other splits continue by the scheduler
        (RECONVERGING), and the warp ends when no lane is live.

        Any other reconvergence point post-dominates its branch, and is passed before the exit: a
        node with such a point can be left only in a program with recursive functions, by lanes of
        another call depth."""
        b, frame = self.b, self.frame
        frame.active.forget(frame.active.bits())
        inner, inside, outer = (self.blocks.append(name) for name in ("inner", "inside", "outer"))
        b.branch(inner)
        b.position_at_end(inner)
        b.cbranch(self.simt_stack.gathers_at(self.blocks.program.exit), inside, outer)
        b.position_at_end(inside)
        node = self._join_node(self.blocks.program.exit)
        expected = b.trunc(frame.get(frame.nodes.node(node, StackNode.expected)), I32)
        frame.active.set(expected)
        self.simt_stack.pop(node)
        b.branch(inner)
        b.position_at_end(outer)
        if self._suspends:
            left = b.icmp_unsigned("!=", b.load(frame.active.live, typ=I32), I32(0))
            with b.if_then(left, likely=False):
                self.suspension.suspend(Status.RECONVERGING, self.blocks.program.exit)
        b.branch(self.blocks.ended)

    def _other_side(self, point: int, node: Value) -> None:
        """Emits the switch to a node's other side, if it has lanes that have not run: makes them
        active, clears `other_mask` so that they run once, and jumps to their block in the divergent
        copy. Code goes on where no side is left. Emits nothing at a point whose branches have no
        second side."""
        b, frame, blocks = self.b, self.frame, self._points[point]
        if not blocks:
            return
        at = frame.nodes.node(node, StackNode.other_mask)
        waiting = b.trunc(frame.get(at), I32)
        switch, done = self.blocks.append(f"switch{point}"), self.blocks.append(f"done{point}")
        b.cbranch(b.icmp_unsigned("!=", waiting, I32(0)), switch, done)
        b.position_at_end(switch)
        frame.active.set(waiting)
        b.store(I64(0), at)
        chosen = frame.get(frame.nodes.node(node, StackNode.other_block))
        # `blocks` are all possible first blocks of a side with this point; the first serves as
        # default, since `other_block` always is one of them.
        targets = b.switch(chosen, self.blocks.copies[Copy.DIVERGENT, blocks[0]])
        for block in blocks[1:]:
            targets.add_case(I64(block), self.blocks.copies[Copy.DIVERGENT, block])
        b.position_at_end(done)
