"""Indexed branches: each lane goes where its own index says.

Lanes that agree, as they mostly do, take one native switch. Where they part, `simt.indexed_branch`
makes the nodes, and the lanes that it names first go on in the divergent copy.
"""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.environment import Status
from warploom.core.types import U32
from warploom.helpers.calls import call
from warploom.llvm.lanes import I1, I32, I64, PTR, Value, vector
from warploom.lower.control.control import Control
from warploom.lower.control.simt_stack import call_depth
from warploom.lower.frame.blocks import Copy
from warploom.lower.frame.operands import Operands
from warploom.program.cfg import indexed_targets
from warploom.program.program import ProgramBlock
from warploom.ptx.ir import Instruction
from warploom.simt.warp_table import ARGUMENT, MASK, NONE

BAD_INDEX = 5
"""What the record of a fault calls it (`machine.faults.fault_errors`)."""


class IndexedBranchCode:
    """Emits the indexed branches of one warp function."""

    def __init__(self, control: Control, operands: Operands) -> None:
        self.control, self.operands = control, operands
        self.frame, self.lanes, self.b = control.frame, control.lanes, control.b

    def branch(
        self, copy: Copy, block: ProgramBlock, index: int, made: Instruction, guard: Value | None
    ) -> None:
        """Emit the branch at the end of `block`."""
        b, lanes = self.b, self.lanes
        targets = indexed_targets(made, self.frame.program.targets)
        table = self._table(index, targets)
        mask = self.frame.active.mask()
        on = mask if guard is None else b.and_(mask, guard)
        chosen = b.bitcast(self.operands.read(made.operands[0], U32), vector(I32))
        first = lanes.lane(chosen, self._lowest(mask))
        others = b.and_(mask, b.icmp_unsigned("!=", chosen, lanes.splat(first)))
        if guard is not None:
            others = b.or_(others, b.and_(mask, b.not_(guard)))
        valid = b.icmp_unsigned("<", first, I32(len(targets)))
        same = b.and_(b.not_(lanes.any(others)), valid)
        agreed, split, going = (self._append(name) for name in ("agreed", "apart", "going"))
        b.cbranch(same, agreed, split)
        b.position_at_end(going)
        goal = b.phi(I64)
        self._switch(copy, block, goal, index)
        b.position_at_end(agreed)
        goal.add_incoming(b.load(self.lanes.slot(table, b.zext(first, I64)), typ=I64), agreed)
        b.branch(going)
        b.position_at_end(split)
        self._split(block, index, chosen, on, table, len(targets), goal, going)

    def _append(self, name: str) -> ir.Block:
        return self.frame.function.append_basic_block(name)

    def _lowest(self, mask: Value) -> Value:
        given = [self.lanes.bits(mask), I1(0)]
        return self.lanes.intrinsic("llvm.cttz.i32", I32, given)

    def _table(self, index: int, targets: tuple[int, ...]) -> Value:
        """Return a constant of the module: the block of each index. Both copies of the branch use
        it."""
        name = f"ways{index}"
        if name not in self.frame.module.globals:
            type = ir.ArrayType(I64, len(targets))
            table = ir.GlobalVariable(self.frame.module, type, name)
            table.linkage, table.global_constant = "internal", True
            table.initializer = ir.Constant(type, [I64(to) for to in targets])
            table.type = PTR
        return self.frame.module.globals[name]

    def _split(
        self,
        block: ProgramBlock,
        index: int,
        chosen: Value,
        on: Value,
        table: Value,
        count: int,
        goal: Value,
        going: ir.Block,
    ) -> None:
        """Lanes that do not all choose alike, though they may still go to one block."""
        b, frame, lanes = self.b, self.frame, self.lanes
        goals = self._goals()
        b.store(b.zext(chosen, vector(I64)), goals, align=64)
        before = b.zext(frame.active.bits(), I64)
        self.control.suspension.saved.save_head()
        meet = frame.program.reconvergence[block.index]
        beside = block.successors[-1] if block.successors else meet  # no target: every lane faults
        numbers = (count, beside, meet, index)
        count_at, *rest = (I64(number) for number in numbers)
        level = I64(0) if frame.program.depth is None else call_depth(frame)
        given = [frame.context.at(0), goals, b.zext(lanes.bits(on), I64), table, count_at, *rest]
        found = call(lanes, "take_indexed_branch", *given, level)
        bad = b.icmp_signed("==", found, I64(NONE))
        with b.if_then(bad, likely=False):
            self._fault(index, chosen, b.trunc(frame.get(frame.context.table(ARGUMENT)), I32))
        together, differing = self._append("together"), self._append("parted")
        after = frame.get(frame.context.table(MASK))
        b.cbranch(b.icmp_signed("==", before, after), together, differing)
        b.position_at_end(together)
        goal.add_incoming(found, together)
        b.branch(going)
        b.position_at_end(differing)
        self.control.divergence.spread_behind(block.index)
        self.control.suspension.saved.restore_head()
        frame.counters.add(frame.layout.branches[index], I64(1))
        if self.frame.variant.mixes:
            self.control.suspension.give_way(Status.DIVERGED_STATUS, found)
        else:
            self._switch(Copy.DIVERGENT, block, found, index)

    def _goals(self) -> Value:
        """Return room for a word of each lane."""
        if not hasattr(self, "_room"):
            self._targets = self.frame.prologue.alloca(vector(I64), align=64)
        return self._targets

    def _switch(self, copy: Copy, block: ProgramBlock, goal: Value, index: int) -> None:
        """Jump to a block that is known only now; where there is none, the index is to blame."""
        b, wrong = self.b, self._append("no.target")
        jump = b.switch(goal, wrong)
        for to in dict.fromkeys(block.successors):
            jump.add_case(I64(to), self.control.edges.way(copy, to, block.index))
        b.position_at_end(wrong)
        made = self.frame.program.instructions[index]
        chosen = b.bitcast(self.operands.read(made.operands[0], U32), vector(I32))
        self._fault(index, chosen, self._lowest(self.frame.active.mask()))

    def _fault(self, index: int, chosen: Value, lane: Value) -> None:
        """Stop the launch where the index of a lane (an i32) chooses no target."""
        number = self.b.zext(self.lanes.lane(chosen, lane), I64)
        self.frame.fault(BAD_INDEX, index, lane, number, I64(0))
