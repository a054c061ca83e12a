"""Emits indexed branches (`brx.idx`), in which each lane jumps to the target that its index
selects.

Lanes with one index, the common case, use a native `switch`. Where indices differ,
`simt.indexed_branch` pushes nodes on the SIMT stack, and the lanes that it selects first continue
in the divergent copy."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from warploom.core.types import U32
from warploom.helpers.calls import call
from warploom.isa.instruction import Instruction
from warploom.llvm.lanes import I1, I32, I64, Value, constant_table, vector
from warploom.lower.control.control import ControlFlow
from warploom.lower.control.simt_stack import call_depth
from warploom.lower.frame.blocks import Copy
from warploom.lower.frame.operands import Operands
from warploom.program.cfg import ProgramBlock, indexed_targets
from warploom.simt.warp_table import NONE, WarpTable

BAD_INDEX = 5
"""The kind of a fault at an index without a target (`machine.faults.fault_errors`)."""


@dataclass(frozen=True, slots=True)
class _Branch:
    """The indexed branch of instruction `index` at the end of `block`: the indices of all lanes (32
    of i32), the lanes `on` that branch, while others fall through, and the address and length of
    the table of its targets."""

    block: ProgramBlock
    index: int
    indices: Value
    on: Value
    table: Value
    count: int


class IndexedBranchCode:
    """Emits the indexed branches (`brx.idx`) of one warp function."""

    def __init__(self, control: ControlFlow, operands: Operands) -> None:
        """Stores the control flow, to whose blocks branches jump, and the operands, which read
        indices."""
        self.control, self.operands = control, operands
        self.frame, self.lanes, self.b = control.frame, control.lanes, control.b

    def branch(
        self,
        copy: Copy,
        block: ProgramBlock,
        index: int,
        instruction: Instruction,
        guard: Value | None,
    ) -> None:
        """Emits the branch at the end of `block`: a `switch` if all active lanes execute it
        (`guard`) with one valid index, else the call `diverge_by_index`, which diverges lanes or
        finds the fault of an index without a target."""
        b, lanes = self.b, self.lanes
        targets = indexed_targets(instruction, self.frame.program.targets)
        table = self._table(index, targets)
        mask = self.frame.active.mask()
        on = mask if guard is None else b.and_(mask, guard)
        indices = b.bitcast(self.operands.read(instruction.operands[0], U32), vector(I32))
        first_index = lanes.lane(indices, self._lowest(mask))
        disagreeing = b.and_(mask, b.icmp_unsigned("!=", indices, lanes.splat(first_index)))
        if guard is not None:
            disagreeing = b.or_(disagreeing, b.and_(mask, b.not_(guard)))
        # An index without a target takes the general path, which faults.
        valid = b.icmp_unsigned("<", first_index, I32(len(targets)))
        same = b.and_(b.not_(lanes.any(disagreeing)), valid)
        uniform, split, jump_block = (self._append(name) for name in ("agreed", "apart", "going"))
        # Both paths end in one switch, whose target is a phi: as many successors as a table has
        # would otherwise be emitted twice.
        b.cbranch(same, uniform, split)
        b.position_at_end(jump_block)
        target = b.phi(I64)
        self._switch(copy, block, target, index)
        b.position_at_end(uniform)
        target.add_incoming(
            b.load(self.lanes.slot(table, b.zext(first_index, I64)), typ=I64), uniform
        )
        b.branch(jump_block)
        b.position_at_end(split)
        self._split(_Branch(block, index, indices, on, table, len(targets)), target, jump_block)

    def _append(self, name: str) -> ir.Block:
        """Appends an LLVM block to the function and returns it; emits no code."""
        return self.frame.function.append_basic_block(name)

    def _lowest(self, mask: Value) -> Value:
        """Returns the lowest lane of a mask, as an i32; 32 for an empty mask."""
        arguments = [self.lanes.bits(mask), I1(0)]
        return self.lanes.intrinsic("llvm.cttz.i32", I32, arguments)

    def _table(self, index: int, targets: tuple[int, ...]) -> Value:
        """Returns the address of a constant array of i64: the number of the basic block by index.
        It is defined once for all copies of the branch."""
        return constant_table(self.frame.module, f"branch_targets{index}", targets)

    def _split(self, branch: _Branch, target: Value, jump_block: ir.Block) -> None:
        """Emits the branch of lanes with different indices or a guard that not all satisfy. If all
        lanes go to one block, code joins `jump_block`, with that block as the phi `target`; else
        the divergence is counted and the first lanes continue in the divergent copy, or suspend
        with DIVERGED if the schedule mixes diverged lanes."""
        b, frame, block = self.b, self.frame, branch.block
        goals = self._target_buffer()
        b.store(b.zext(branch.indices, vector(I64)), goals, align=64)
        before = b.zext(frame.active.bits(), I64)
        target_block = self._call_helper(branch, goals)
        together, diverged = self._append("uniform"), self._append("diverged")
        after = frame.get(frame.context.table(WarpTable.mask))
        # Different indices may select one block: then the mask has not changed, and no lane waits.
        b.cbranch(b.icmp_signed("==", before, after), together, diverged)
        b.position_at_end(together)
        target.add_incoming(target_block, together)
        b.branch(jump_block)
        b.position_at_end(diverged)
        self.control.divergence.store_live_lanes(block.index)
        self.control.suspension.spills.restore_head()
        frame.counters.add(frame.layout.branches[branch.index], I64(1))
        self.control.suspension.diverge(
            target_block, lambda: self._switch(Copy.DIVERGENT, block, target_block, branch.index)
        )

    def _call_helper(self, branch: _Branch, goals: Value) -> Value:
        """Emits the call of the helper `diverge_by_index` for the indices at `goals`, after saving
        the head of the warp's table to the context. The helper pushes nodes on the SIMT stack in
        the context. Emits the fault of a lane whose index has no target, and returns the number of
        the block that runs first."""
        frame, block = self.frame, branch.block
        self.control.suspension.spills.save_head()
        reconvergence = frame.program.reconvergence[block.index]
        # Without any target every lane faults, and the fall-through block is never used.
        following = block.successors[-1] if block.successors else reconvergence
        numbers = (branch.count, following, reconvergence, branch.index)
        # The depth of calls distinguishes reconvergence points in recursive functions; 0 without
        # them.
        level = I64(0) if frame.program.depth is None else call_depth(frame)
        context = frame.context.at(0)
        on = self.b.zext(self.lanes.bits(branch.on), I64)
        arguments = context, goals, on, branch.table, *map(I64, numbers), level
        target_block = call(self.lanes, "diverge_by_index", *arguments)
        is_bad = self.b.icmp_signed("==", target_block, I64(NONE))
        with self.b.if_then(is_bad, likely=False):
            lane = self.b.trunc(frame.get(frame.context.table(WarpTable.argument)), I32)
            self._fault(branch.index, branch.indices, lane)
        return target_block

    def _target_buffer(self) -> Value:
        """Returns a stack buffer with a 64-bit word for each lane, in which indices are passed;
        created at its first use."""
        if not hasattr(self, "_targets"):
            self._targets = self.frame.prologue.alloca(vector(I64), align=64)
        return self._targets

    def _switch(self, copy: Copy, block: ProgramBlock, target: Value, index: int) -> None:
        """Emits the jump to a successor of `block` by the run-time number `target` of its basic
        block; a number that is no successor's faults at instruction `index`."""
        b, wrong = self.b, self._append("no.target")
        jump = b.switch(target, wrong)
        for successor in dict.fromkeys(block.successors):
            jump.add_case(I64(successor), self.control.edges.block_to(copy, successor, block.index))
        b.position_at_end(wrong)
        instruction = self.frame.program.instructions[index]
        indices = b.bitcast(self.operands.read(instruction.operands[0], U32), vector(I32))
        self._fault(index, indices, self._lowest(self.frame.active.mask()))

    def _fault(self, index: int, indices: Value, lane: Value) -> None:
        """Emits the fault BAD_INDEX of a lane (an i32) whose index, recorded as the address,
        selects no target."""
        number = self.b.zext(self.lanes.lane(indices, lane), I64)
        self.frame.fault(BAD_INDEX, index, lane, number, I64(0))
