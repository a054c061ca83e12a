"""Emits the iterations of a batch of a strided loop (`lower.loops.strided_loops`), whose accesses
are neither checked nor counted, and the counts of all of them."""

from __future__ import annotations

from collections.abc import Callable

from warploom.abi.access_type import record_memory_change
from warploom.ir.loops import BatchedLoop, StridedLoop
from warploom.isa.instruction import Instruction, Register
from warploom.isa.kinds import OpKind
from warploom.llvm.lanes import I64, LANES, Value
from warploom.lower.control.control import ControlFlow
from warploom.lower.frame.blocks import Copy
from warploom.lower.instructions import InstructionCode
from warploom.lower.instrument.guards import Guards
from warploom.lower.loops.batch_check import Batch, counted_length
from warploom.program.cfg import ProgramBlock
from warploom.shapes.operand_shapes import BlockShapes

Leave = Callable[[int, Instruction], None]
"""Emits the exit from a batch at the end of the block at a position of the loop, whose branch is
given, taken if some lane leaves the loop there."""


def is_bounded(loop: StridedLoop, block: ProgramBlock) -> bool:
    """Returns true if the check has limited the batch by a comparison in a block, so that no lane
    leaves at its branch."""
    return any(block.start <= index < block.stop for index, _ in loop.compared)


class BatchBody:
    """Emits iterations of batches, and their counts, in one warp function."""

    def __init__(self, control: ControlFlow, instructions: InstructionCode, guards: Guards) -> None:
        """Shares the frame of `control`, and the group guards of `instructions`."""
        self.frame, self.b, self.lanes = control.frame, control.b, control.frame.lanes
        self.program, self.instructions, self.guards = control.program, instructions, guards
        self._group_guards = instructions.affine_access.group_guards

    def iteration(
        self, copy: Copy, batched: BatchedLoop, shapes: BlockShapes, leave: Leave
    ) -> None:
        """Emits the blocks of one iteration. `leave` emits the exits that the check has not
        excluded; other branches have no code."""
        for position, index in enumerate(batched.loop.blocks):
            with self.frame.at_block(index, convergent=True, shapes=shapes):
                self._block(copy, batched, position, leave)

    def _block(self, copy: Copy, batched: BatchedLoop, position: int, leave: Leave) -> None:
        """Emits the block at a position of the loop, accesses by their groups."""
        loop = batched.loop
        block = self.program.blocks[loop.blocks[position]]
        inside = range(block.start, block.stop)
        groups = [group for group in batched.groups if group.members[0][0] in inside]
        self._group_guards.begin_batch(groups, loop.accesses)
        for at in range(block.start, block.stop):
            instruction = self.program.instructions[at]
            if instruction.operation.kind is not OpKind.BRANCH:
                self._instruction(copy, at, instruction)
            elif instruction.guard is not None and not is_bounded(loop, block):
                leave(position, instruction)

    def _instruction(self, copy: Copy, index: int, instruction: Instruction) -> None:
        """Emits and counts an instruction inside of a batch. One with results of a vector shape
        (uniform or affine) is emitted without a test of wraparound, which the check has excluded,
        unless its operands have to be checked."""
        code = self.instructions
        guard, on = self.guards.counted(index, instruction), self.frame.active.mask()
        on = on if guard is None else self.b.and_(on, guard)
        if code.shaped.results(instruction) is None or instruction.operation.spec.preconditions:
            code.emit(copy, index, instruction, guard, on)
        else:
            code.emit_affine(index, instruction, on, lambda _: None)
            code.routines.count(index, instruction, on)

    def to_varying(self, shapes: BlockShapes, index: int, live: frozenset[Register]) -> None:
        """Stores lane by lane those registers of `live`, which are read after a batch, that have a
        vector shape in the batch (`shapes`) and none in block `index`, where it ends."""
        registers, shapes_after = self.frame.registers, self.frame.shapes.at(index)
        for register in sorted(live & shapes.keys() - shapes_after.keys(), key=lambda r: r.name):
            registers.store_varying(register, registers.load(register))

    def count(self, batch: Batch, iterations: Value, left_at: int = -1) -> None:
        """Adds a number of iterations of a batch (an i64) to the counts of blocks, branches and
        accesses, and its stores to the changes of memory, and subtracts its instructions from the
        fuel: complete iterations, and of one more the blocks up to position `left_at` (-1: none).
        The branch that ends that iteration is counted where it is emitted."""
        b, frame = self.b, self.frame
        with_partial = b.add(iterations, I64(1)) if left_at >= 0 else iterations
        stores, used = I64(0), I64(0)
        blocks = batch.batched.loop.blocks
        # A batch has all 32 lanes active throughout, so that threads follow from iterations.
        for position, index in enumerate(blocks):
            times = with_partial if position <= left_at else iterations
            block, threads = self.program.blocks[index], b.mul(times, I64(LANES))
            frame.counters.add(2 * index, times)
            frame.counters.add(2 * index + 1, threads)
            branch = self.program.instructions[block.stop - 1]
            if branch.guard is not None and block.successors[0] in blocks:
                taken = b.mul(iterations, I64(LANES)) if position == left_at else threads
                frame.counters.add(frame.layout.guarded[block.stop - 1], taken)
            used = b.add(used, b.mul(times, I64(counted_length(self.program, index))))
            for first_member, group in batch.groups.items():
                if block.start <= first_member < block.stop:
                    self._group_guards.cache.count_batch(
                        group, batch.lanes, batch.steps[first_member], times
                    )
                    if group.access_type.op == "store":
                        stores = b.add(stores, b.mul(times, I64(len(group.members))))
        b.store(b.sub(frame.get(frame.fuel.left), used), frame.fuel.left)
        record_memory_change(self.lanes, frame.environment, stores)
