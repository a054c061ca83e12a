"""Emits batches of iterations of a loop whose addresses advance by strides
(`analysis.strided_loops`): one check before many iterations and one count after
them, none in between.

    back edge:      ends the turn if its instructions are used up
    batch:          evaluates two iterations in advance, by index arithmetic alone. Their values
                    and differences give the number of iterations, `count`, in which
                      - every access group stays inside of the range of its cache entry,
                      - no widened operand wraps around,
                      - no lane leaves by a comparison of linear values,
                      - the instructions of the turn suffice;
                    fewer than LEAST: continues with an ordinary iteration; what comparisons and the
                    turn allow is compared before the rest is computed
    batch.body:     the blocks of the loop, accesses unchecked and uncounted; other exits are
                    evaluated, and leave through `batch.exit` after counting. There are two of them,
                    of which one prefetches
    batch.done:     counts all iterations, and continues with an ordinary one

Ordinary iterations are those in which a lane leaves, or for which no cache entry hits: they fault,
diverge and fill the caches as without batches. After a failed batch, a loop waits for twice as many
iterations until its next attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from llvmlite import ir

from warploom.abi.access_type import record_memory_change
from warploom.ir.loops import BatchedLoop, StridedLoop
from warploom.isa.instruction import Instruction, Register, flatten_operands
from warploom.isa.kinds import OpKind
from warploom.llvm.lanes import I32, I64, LANES, Value
from warploom.lower.access.affine_access import PREFETCH_WARPS
from warploom.lower.access.groups import GroupValues
from warploom.lower.access.lane_sets import LaneSet
from warploom.lower.control.control import ControlFlow
from warploom.lower.frame.blocks import Copy
from warploom.lower.instructions import InstructionCode
from warploom.lower.instrument.guards import Guards
from warploom.lower.loops.iteration_limits import IterationLimits, LinearOperand
from warploom.program.cfg import ProgramBlock
from warploom.program.uses import writes
from warploom.shapes.operand_shapes import BlockShapes

LEAST = 4
"""Iterations of the smallest batch. With one group and one bound, its check and counts need some
130 instructions, and an ordinary iteration some 35 more than one in a batch."""

PAGE = 4096
"""Bytes of a page of the host; its hardware prefetcher does not cross pages."""

LONGEST_BACKOFF = 1023
"""Iterations between two attempts at most, after batches have failed."""


EndBlock = Callable[[Copy, ProgramBlock, int, Instruction], bool]
"""Emits the instruction that ends a basic block, as outside of a batch."""


@dataclass
class _Iteration:
    """Holds what one evaluated iteration has computed: its groups, by their first accesses, and the
    operands of comparisons and widening instructions, by instruction and source number."""

    groups: dict[int, GroupValues] = field(default_factory=dict[int, GroupValues])
    operands: dict[tuple[int, int], LinearOperand] = field(
        default_factory=dict[tuple[int, int], LinearOperand]
    )


@dataclass(frozen=True)
class _Batch:
    """Describes a batch: the greatest number of iterations (`count`, an i64; 0: none); for each
    group, by its first access, its addresses in the first iteration, its step in bytes, and whether
    its cache entry hits (`hits`). `lanes`: the set of all lanes, by which entries are found.
    `prefetches` (an i1): it prefetches what the next warps access."""

    batched: BatchedLoop
    shapes: BlockShapes
    count: Value
    lanes: LaneSet
    groups: Mapping[int, GroupValues]
    steps: Mapping[int, Value]
    hits: Mapping[int, Value]
    prefetches: Value


class StridedLoopCode:
    """Emits the batches of strided loops in one warp function: many iterations after one check that
    all lanes stay by the loop's comparisons, no access misses the range cache and no value wraps
    around. `end_block` emits the exit of a loop as outside of a batch."""

    def __init__(
        self,
        control: ControlFlow,
        instructions: InstructionCode,
        guards: Guards,
        end_block: EndBlock,
    ) -> None:
        """Shares the frame and blocks of `control`, and the group guards of `instructions`."""
        self.frame, self.b, self.lanes = control.frame, control.b, control.frame.lanes
        self.program, self.blocks = control.program, control.blocks
        self.instructions, self.guards = instructions, guards
        self._group_guards = instructions.affine_access.group_guards
        self._end_block = end_block

    def emit(self, copy: Copy, batched: BatchedLoop) -> None:
        """Emits the batch of a loop in one copy of its blocks, as the LLVM block that its back edge
        jumps to: after the backoff, the check, then the iterations if they are at least LEAST; then
        an ordinary iteration. A failed check, or fewer iterations, lengthen the backoff (2n + 1
        iterations, at most LONGEST_BACKOFF); they also fill the range caches of groups that missed,
        but not if the fuel and the comparisons alone leave too few. A successful check resets the
        backoff."""
        b, header = self.b, batched.loop.header
        ordinary = self.blocks.copies[copy, header]
        b.position_at_end(self.blocks.batches[copy, header])
        shapes = {**self.frame.shapes.at(header), **batched.shapes}
        # Stack slots, which are 0 at each call: the warps that one call runs in order share them.
        with self.frame.at_block(header, convergent=True):
            backoff, backoff_length = (self.frame.variable(I64) for _ in range(2))
            self._skip_during_backoff(backoff, ordinary)
            limits, few = IterationLimits(self.lanes), self.blocks.append("batch.few")
            self._assume(batched, limits)
        with self.frame.at_block(header, convergent=True, shapes=shapes):
            batch = self._check(batched, shapes, limits, few)
            body, fails = self.blocks.append("batch.body"), self.blocks.append("batch.fails")
            b.cbranch(b.icmp_unsigned(">=", batch.count, I64(LEAST)), body, fails)
            with b.goto_block(fails):
                self._fill_cache(batch)
                b.branch(few)
            with b.goto_block(few):
                longer = b.add(b.shl(self.frame.get(backoff_length), I64(1)), I64(1))
                # From 1023 on, 2n + 1 has the same lower ten bits: the mask keeps the maximum.
                longer = b.and_(longer, I64(LONGEST_BACKOFF))
                b.store(longer, backoff_length)
                b.store(longer, backoff)
                b.branch(ordinary)
            b.position_at_end(body)
            b.store(I64(0), backoff_length)
        self._run(copy, batch)
        b.branch(ordinary)

    def _skip_during_backoff(self, backoff: Value, ordinary: ir.Block) -> None:
        """Emits the jump to an ordinary iteration, taken while `backoff` (the address of the
        iterations until the next attempt) is not 0; each counts it down.
        """
        b, left = self.b, self.frame.get(backoff)
        with b.if_then(b.icmp_unsigned("!=", left, I64(0))):
            b.store(b.sub(left, I64(1)), backoff)
            b.branch(ordinary)

    def _fill_cache(self, batch: _Batch) -> None:
        """Emits the filling of the range cache for the groups whose lookup in the check missed, so
        that the next attempt may hit."""
        for first_member, group in batch.groups.items():
            with self.b.if_then(self.b.not_(batch.hits[first_member])):
                self._group_guards.cache.fill(group, batch.lanes)

    # ---- the check ------------------------------------------------------------------------------

    def _assume(self, batched: BatchedLoop, limits: IterationLimits) -> None:
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

    def _check(
        self, batched: BatchedLoop, shapes: BlockShapes, limits: IterationLimits, few: ir.Block
    ) -> _Batch:
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
        length = sum(map(self._length, loop.blocks))
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
        count, prefetches = limits.count(), self._prefetches(steps.values())
        return _Batch(
            batched, shapes, count, lane_set, first_evaluation.groups, steps, hits, prefetches
        )

    def _prefetches(self, steps: Iterable[Value]) -> Value:
        """Returns true (an i1) if the batch prefetches for the next warps: the running warp's
        number is a multiple of PREFETCH_WARPS, and addresses of some group advance by a page or
        more, in either direction. `steps`: those of the groups, of which there is one at least."""
        b = self.b
        leads_group = b.icmp_unsigned(
            "==", b.and_(self.frame.warp, I64(PREFETCH_WARPS - 1)), I64(0)
        )
        # One unsigned comparison tests a step in either direction: PAGE or more, or less than
        # -PAGE.
        distant = (b.icmp_unsigned(">=", b.add(step, I64(PAGE)), I64(2 * PAGE)) for step in steps)
        return b.and_(leads_group, reduce(b.or_, distant))

    def _length(self, index: int) -> int:
        """Returns the number of instructions of a basic block that count towards a warp's turn: all
        but hidden ones.
        """
        block = self.program.blocks[index]
        return sum(i not in self.program.hidden for i in range(block.start, block.stop))

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

    # ---- the batch ------------------------------------------------------------------------------

    def _run(self, copy: Copy, batch: _Batch) -> None:
        """Emits two loops over the iterations of a batch, one with and one without prefetches: a
        test of that in each iteration would split a loop of one block. After them emits the counts
        of all iterations, and stores the registers in the form that an ordinary iteration reads."""
        b, loop, iterations = self.b, batch.batched.loop, self.frame.variable(I64)
        b.store(I64(0), iterations)
        names = ("batch.prefetching", "batch.inside", "batch.done")
        prefetching, plain, complete = (self.blocks.append(name) for name in names)
        b.cbranch(batch.prefetches, prefetching, plain)
        for inside in (prefetching, plain):
            b.position_at_end(inside)
            for position, index in enumerate(loop.blocks):
                with self.frame.at_block(index, convergent=True, shapes=batch.shapes):
                    self._block(copy, batch, iterations, position, inside is prefetching)
            now = b.add(self.frame.get(iterations), I64(1))
            b.store(now, iterations)
            b.cbranch(b.icmp_unsigned("<", now, batch.count), inside, complete)
        b.position_at_end(complete)
        with self.frame.at_block(loop.header, convergent=True, shapes=batch.shapes):
            self._to_varying(batch, loop.header, self.frame.warp_ir.live(loop.header))
        self._count(batch, iterations, -1)

    def _to_varying(self, batch: _Batch, index: int, live: frozenset[Register]) -> None:
        """Stores lane by lane those registers of `live`, which are read after a batch, that have a
        vector shape in the batch and none in block `index`, where it ends."""
        registers, shapes_after = self.frame.registers, self.frame.shapes.at(index)
        for register in sorted(
            live & batch.shapes.keys() - shapes_after.keys(), key=lambda r: r.name
        ):
            registers.store_varying(register, registers.load(register))

    def _block(
        self, copy: Copy, batch: _Batch, iterations: Value, position: int, prefetches: bool
    ) -> None:
        """Emits the block at a position of the loop, accesses by their groups, and prefetches if it
        `prefetches`; its branch is emitted only as an exit from the batch that the check has not
        excluded. `iterations` is the address of the number of complete iterations.
        """
        loop = batch.batched.loop
        block = self.program.blocks[loop.blocks[position]]
        inside = range(block.start, block.stop)
        groups = [group for group in batch.batched.groups if group.members[0][0] in inside]
        self._group_guards.begin_batch(groups, batch.groups.keys(), prefetches=prefetches)
        for at in range(block.start, block.stop):
            instruction = self.program.instructions[at]
            if instruction.operation.kind is not OpKind.BRANCH:
                self._instruction(copy, at, instruction)
            elif instruction.guard is not None and not self._is_bounded(loop, block):
                self._leave_if_some_do(copy, batch, iterations, position, instruction)

    def _is_bounded(self, loop: StridedLoop, block: ProgramBlock) -> bool:
        """Returns true if the check has limited the batch by a comparison in a block, so that no
        lane leaves at its branch."""
        return any(block.start <= index < block.stop for index, _ in loop.compared)

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

    def _leave_if_some_do(
        self, copy: Copy, batch: _Batch, iterations: Value, position: int, instruction: Instruction
    ) -> None:
        """Emits the exit from the batch at the end of a block, taken if some lane leaves the loop
        there. The exit stores registers lane by lane where that is their form after the loop,
        counts the iterations, and branches as outside of a batch."""
        b, blocks = self.b, batch.batched.loop.blocks
        index, block = blocks[position], self.program.blocks[blocks[position]]
        stays_if_taken = block.successors[0] in blocks
        if self.guards.is_uniform(instruction):
            held = self.lanes.lane(self.guards.uniform_value(instruction), 0)
            some_exits = b.not_(held) if stays_if_taken else held
        else:
            bits = self.lanes.bits(self.guards.held(instruction))
            # All 32 lanes are active in a batch: no mask is needed.
            some_exits = b.icmp_unsigned("!=", bits, I32(-1 if stays_if_taken else 0))
        exit_block, next_block = (
            self.blocks.append("batch.exit"),
            self.blocks.append("batch.inside"),
        )
        b.cbranch(some_exits, exit_block, next_block).set_weights([1, 1 << 20])
        b.position_at_end(exit_block)
        live = map(self.frame.warp_ir.live, block.successors)
        read = frozenset((instruction.guard.register,) if instruction.guard else ())
        self._to_varying(batch, index, read.union(*live))
        self._count(batch, iterations, position)
        with self.frame.at_block(index, convergent=True):
            self._end_block(copy, block, block.stop - 1, instruction)
        b.position_at_end(next_block)

    # ---- counts ---------------------------------------------------------------------------------

    def _count(self, batch: _Batch, iterations: Value, left_at: int) -> None:
        """Adds, after a batch, its iterations to the counts of blocks, branches and accesses, and
        its stores to the changes of memory, and subtracts its instructions from the fuel: the
        complete iterations, and of one more the blocks up to position `left_at` (-1: none). The
        branch that ends that iteration is counted where it is emitted."""
        b, frame, complete_iterations = self.b, self.frame, self.frame.get(iterations)
        with_partial = b.add(complete_iterations, I64(1)) if left_at >= 0 else complete_iterations
        stores, used = I64(0), I64(0)
        blocks = batch.batched.loop.blocks
        # A batch has all 32 lanes active throughout, so that threads follow from iterations.
        for position, index in enumerate(blocks):
            times = with_partial if position <= left_at else complete_iterations
            block, threads = self.program.blocks[index], b.mul(times, I64(LANES))
            frame.counters.add(2 * index, times)
            frame.counters.add(2 * index + 1, threads)
            branch = self.program.instructions[block.stop - 1]
            if branch.guard is not None and block.successors[0] in blocks:
                taken = b.mul(complete_iterations, I64(LANES)) if position == left_at else threads
                frame.counters.add(frame.layout.guarded[block.stop - 1], taken)
            used = b.add(used, b.mul(times, I64(self._length(index))))
            for first_member, group in batch.groups.items():
                if block.start <= first_member < block.stop:
                    self._group_guards.cache.count_batch(
                        group, batch.lanes, batch.steps[first_member], times
                    )
                    if group.access_type.op == "store":
                        stores = b.add(stores, b.mul(times, I64(len(group.members))))
        b.store(b.sub(frame.get(frame.fuel.left), used), frame.fuel.left)
        record_memory_change(self.lanes, frame.environment, stores)
