"""Emits the check of a batch of iterations of a strided loop (`lower.loops.strided_loops`): how
many iterations run without a lane that leaves, an access that misses the range cache, or a value
that wraps around.

Index arithmetic alone evaluates two iterations in advance. Their values and differences give those
of all further ones, and with them the number of iterations in which

  - every access group stays inside of the range of its cache entry,
  - no widened operand wraps around,
  - no lane leaves by a comparison of linear values,
  - the instructions of the turn suffice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from llvmlite import ir

from warploom.ir.loops import BatchedLoop
from warploom.isa.instruction import Instruction, Register, flatten_operands
from warploom.llvm.lanes import I32, I64, LANES, Value
from warploom.lower.access.groups import GroupValues
from warploom.lower.access.lane_sets import LaneSet
from warploom.lower.control.control import ControlFlow
from warploom.lower.instructions import InstructionCode
from warploom.lower.loops.iteration_limits import IterationLimits, LinearOperand
from warploom.program.program import Program
from warploom.program.uses import writes
from warploom.shapes.operand_shapes import BlockShapes

LEAST = 4
"""Iterations of the smallest batch. With one group and one bound, its check and counts need some
130 instructions, and an ordinary iteration some 35 more than one in a batch."""


def counted_length(program: Program, index: int) -> int:
    """Returns the number of instructions of a basic block that count towards a warp's turn: all but
    hidden ones.
    """
    block = program.blocks[index]
    return sum(i not in program.hidden for i in range(block.start, block.stop))


@dataclass
class _Iteration:
    """Holds what one evaluated iteration has computed: its groups, by their first accesses, and the
    operands of comparisons and widening instructions, by instruction and source number."""

    groups: dict[int, GroupValues] = field(default_factory=dict[int, GroupValues])
    operands: dict[tuple[int, int], LinearOperand] = field(
        default_factory=dict[tuple[int, int], LinearOperand]
    )


@dataclass(frozen=True)
class Batch:
    """Describes a batch: the greatest number of iterations (`count`, an i64; 0: none); for each
    group, by its first access, its addresses in the first iteration, its step in bytes, and whether
    its cache entry hits (`hits`). `lanes`: the set of all lanes, by which entries are found;
    `shapes`: the vector shapes of registers in all blocks of the loop."""

    batched: BatchedLoop
    shapes: BlockShapes
    count: Value
    lanes: LaneSet
    groups: Mapping[int, GroupValues]
    steps: Mapping[int, Value]
    hits: Mapping[int, Value]


class BatchCheck:
    """Emits the checks of batches in one warp function."""

    def __init__(self, control: ControlFlow, instructions: InstructionCode) -> None:
        """Shares the frame and blocks of `control`, and the group guards of `instructions`."""
        self.frame, self.b, self.lanes = control.frame, control.b, control.frame.lanes
        self.program, self.blocks = control.program, control.blocks
        self.instructions = instructions
        self._group_guards = instructions.affine_access.group_guards

    def shapes(self, batched: BatchedLoop) -> BlockShapes:
        """Returns the vector shapes of registers in a batch."""
        return {**self.frame.shapes.at(batched.loop.header), **batched.shapes}

    def assume(self, batched: BatchedLoop, limits: IterationLimits) -> None:
        """Stores the registers that are live at the header and varying there in the short forms
        (one value for each lane run) that a batch assumes, and forbids the batch if the values of
        some lane differ from them. The registers of 32 lanes stay as they are, for ordinary
        iterations."""
        registers, header = self.frame.registers, batched.loop.header
        live = self.frame.warp_ir.live(header) & batched.shapes.keys()
        values = {r: registers.load(r) for r in sorted(live, key=lambda r: r.name)}
        with self.frame.at_block(header, convergent=True, shapes=batched.shapes):
            for register, value in values.items():
                shape = batched.shapes[register]
                firsts = self.lanes.firsts(value, shape.width)
                registers.store(register, firsts)
                expected = self.lanes.expand(firsts, LANES, shape.offsets(LANES))
                differ = self.b.icmp_unsigned("!=", expected, value)
                limits.forbid(self.lanes.some(differ))

    def check(
        self, batched: BatchedLoop, shapes: BlockShapes, limits: IterationLimits, few: ir.Block
    ) -> Batch:
        """Emits the check of a batch, from two evaluated iterations: all lanes are active, and the
        limits of fuel and comparisons, after which it jumps to `few` if these are below LEAST, then
        those of groups and widened operands. Restores the registers that the iterations changed,
        and returns the batch with its number of iterations."""
        frame, b, loop = self.frame, self.b, batched.loop
        limits.require(b.icmp_unsigned("==", frame.active.bits(), I32(-1)))
        registers, live = frame.registers, frame.warp_ir.live(loop.header)
        advancing = (self.program.instructions[index] for index in loop.advances)
        changed = sorted(
            {r for instruction in advancing for r in writes(instruction)} & live,
            key=lambda r: r.name,
        )
        before = {r: registers.load(r, registers.width(r)) for r in changed}
        # The evaluated values are not those of the current iteration: do not store them in the
        # context.
        with frame.at(replace(frame.position, spilled={})):
            # The second evaluation continues from the registers that the first one has advanced.
            first_evaluation, second_evaluation = (
                self._evaluate(batched, shapes, limits) for _ in range(2)
            )
            for register, value in before.items():
                registers.store(register, value)
        length = sum(counted_length(self.program, index) for index in loop.blocks)
        # Each iteration uses `length` instructions of the turn.
        limits.bound(b.sub(frame.get(frame.fuel.left), I64(length)), I64(-length))
        for index, relation in loop.compared:
            operands = [
                (first_evaluation.operands[index, n], second_evaluation.operands[index, n])
                for n in range(2)
            ]
            limits.compare(relation, *operands)
        enough = self.blocks.append("batch.enough")
        b.cbranch(b.icmp_unsigned("<", limits.count(), I64(LEAST)), few, enough)
        b.position_at_end(enough)
        lane_set = self._group_guards.cache.sets.full_warp()
        steps: dict[int, Value] = {}
        hits: dict[int, Value] = {}
        for index, group in first_evaluation.groups.items():
            bounds = self._bound_group(limits, lane_set, group, second_evaluation.groups[index])
            steps[index], hits[index] = bounds
        for number in loop.widened:
            limits.stays_in_type(
                first_evaluation.operands[number], second_evaluation.operands[number]
            )
        count, groups = limits.count(), first_evaluation.groups
        return Batch(batched, shapes, count, lane_set, groups, steps, hits)

    def _evaluate(
        self, batched: BatchedLoop, shapes: BlockShapes, limits: IterationLimits
    ) -> _Iteration:
        """Emits the index arithmetic of one iteration, without its accesses, which advances the
        registers; forbids the batch if an affine value wraps around. Returns the addresses of
        groups, and the operands of comparisons and widening instructions, as they are at their
        instructions."""
        loop = batched.loop
        groups = {group.members[0][0]: group for group in batched.groups}
        iteration, widened = _Iteration(), set(loop.widened)
        advances, accesses = set(loop.advances), set(loop.accesses)
        compared = {at for at, _ in loop.compared}
        for index in loop.blocks:
            block = self.program.blocks[index]
            with self.frame.at_block(index, convergent=True, shapes=shapes):
                for at in range(block.start, block.stop):
                    instruction = self.program.instructions[at]
                    if at in accesses:
                        iteration.groups[at] = self._group_guards.evaluate(groups[at])
                    sources = {source for at_index, source in widened if at_index == at}
                    for source in (0, 1) if at in compared else sources:
                        iteration.operands[at, source] = self._operand(
                            instruction, source, advances
                        )
                    if at in advances:
                        self.instructions.emit_affine(
                            at, instruction, self.frame.active.mask(), limits.forbid
                        )
        return iteration

    def _operand(self, instruction: Instruction, number: int, advances: set[int]) -> LinearOperand:
        """Returns source `number` of an instruction with its current value, in its vector shape; it
        is loop-variant if an instruction of `advances` (numbers) writes its register."""
        operand = tuple(
            flatten_operands(instruction.operands[len(instruction.operation.spec.destinations) :])
        )[number]
        type = instruction.operation.source_types[number]
        assert type is not None
        shape = self.frame.position.operand_shapes.shape(operand, type)
        value = self.instructions.operands.read(operand, type, width=shape.width)
        changed = (writes(self.program.instructions[index]) for index in advances)
        is_loop_variant = isinstance(operand, Register) and any(
            operand in registers for registers in changed
        )
        return LinearOperand(value, shape, type, is_loop_variant)

    def _bound_group(
        self, limits: IterationLimits, lane_set: LaneSet, group: GroupValues, later: GroupValues
    ) -> tuple[Value, Value]:
        """Limits the iterations to those in which a group stays inside of the range of its cache
        entry; adds the conditions of a hit in the first, and of one step for all lane runs, a
        multiple of the element's size. `later` is the group one iteration on. Returns the step in
        bytes, and whether the entry allows the first iteration (an i1).
        """
        b, width = self.b, group.base.width
        # Addresses are bounded by those of the first run alone: other runs follow it at the pitches
        # of the cache entry as long as all have one step.
        step = b.sub(later.firsts[0], group.firsts[0])
        if width > 1:
            delta = b.sub(later.bases, group.bases)
            limits.require(limits.all_equal(delta, step))
        offset, last, hit = self._group_guards.cache.allowed_window(group, lane_set)
        limits.require(hit)
        # A step that is no multiple of the element's size would make later accesses misaligned.
        # Sizes are powers of two.
        limits.require(b.icmp_unsigned("==", b.and_(step, I64(group.access_type.size - 1)), I64(0)))
        limits.stays_between(offset, last, step)
        return step, hit
