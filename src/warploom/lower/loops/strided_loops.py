"""Emits batches of iterations of a loop whose addresses advance by strides
(`analysis.strided_loops`): one check before many iterations and one count of all
of them, none in between.

    back edge:      ends the turn if its instructions are used up
    batch:          computes how many iterations can run without a check (`BatchCheck`); fewer than
                    LEAST: continues with an ordinary iteration
    batch.body:     waits for the block's other warps, to run a few iterations in turn with them,
                    where that is possible and faster (`InterleavedBatches`)
    batch.inside:   the blocks of the loop, accesses unchecked and uncounted; exits other than by
                    comparisons of linear values are evaluated, and leave through `batch.exit` after
                    counting
    batch.done:     counts all iterations, and continues with an ordinary one

Ordinary iterations are those in which a lane leaves, or for which no cache entry hits: they fault,
diverge and fill the caches as without batches. After a failed batch, a loop waits for twice as many
iterations until its next attempt.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from warploom.ir.loops import BatchedLoop
from warploom.isa.instruction import Instruction
from warploom.llvm.lanes import I32, I64, Value
from warploom.lower.control.control import ControlFlow
from warploom.lower.frame.blocks import Copy
from warploom.lower.frame.spills import SpillCode
from warploom.lower.instructions import InstructionCode
from warploom.lower.instrument.guards import Guards
from warploom.lower.loops.batch_body import BatchBody
from warploom.lower.loops.batch_check import LEAST, Batch, BatchCheck
from warploom.lower.loops.interleaved_batches import InterleavedBatches
from warploom.lower.loops.iteration_limits import IterationLimits
from warploom.program.cfg import ProgramBlock

LONGEST_BACKOFF = 1023
"""Iterations between two attempts at most, after batches have failed."""


EndBlock = Callable[[Copy, ProgramBlock, int, Instruction], bool]
"""Emits the instruction that ends a basic block, as outside of a batch."""


class StridedLoopCode:
    """Emits the batches of strided loops in one warp function: many iterations after one check that
    all lanes stay by the loop's comparisons, no access misses the range cache and no value wraps
    around. `end_block` emits the exit of a loop as outside of a batch."""

    def __init__(
        self,
        control: ControlFlow,
        spills: SpillCode,
        instructions: InstructionCode,
        guards: Guards,
        end_block: EndBlock,
    ) -> None:
        """Shares the frame and blocks of `control`, and the group guards of `instructions`."""
        self.frame, self.b, self.lanes = control.frame, control.b, control.frame.lanes
        self.program, self.blocks, self.guards = control.program, control.blocks, guards
        self._group_guards = instructions.affine_access.group_guards
        self._check = BatchCheck(control, instructions)
        self._body = BatchBody(control, instructions, guards)
        self.interleaved = InterleavedBatches(control, spills, self._check, self._body)
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
        shapes = self._check.shapes(batched)
        # Stack slots, which are 0 at each call: the warps that one call runs in order share them.
        with self.frame.at_block(header, convergent=True):
            backoff, backoff_length = (self.frame.variable(I64) for _ in range(2))
            self._skip_during_backoff(backoff, ordinary)
            limits, few = IterationLimits(self.lanes), self.blocks.append("batch.few")
            self._check.assume(batched, limits)
        with self.frame.at_block(header, convergent=True, shapes=shapes):
            batch = self._check.check(batched, shapes, limits, few)
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
        self.interleaved.meet(batch)
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

    def _fill_cache(self, batch: Batch) -> None:
        """Emits the filling of the range cache for the groups whose lookup in the check missed, so
        that the next attempt may hit."""
        for first_member, group in batch.groups.items():
            with self.b.if_then(self.b.not_(batch.hits[first_member])):
                self._group_guards.cache.fill(group, batch.lanes)

    def _run(self, copy: Copy, batch: Batch) -> None:
        """Emits the loop over the iterations of a batch, and after it the counts of all of them;
        stores the registers in the form that an ordinary iteration reads."""
        b, loop, iterations = self.b, batch.batched.loop, self.frame.variable(I64)
        b.store(I64(0), iterations)
        inside, complete = self.blocks.append("batch.inside"), self.blocks.append("batch.done")

        def leave(position: int, instruction: Instruction) -> None:
            """Emits an exit from the batch."""
            self._leave_if_some_do(copy, batch, iterations, position, instruction)

        b.branch(inside)
        b.position_at_end(inside)
        self._body.iteration(copy, batch.batched, batch.shapes, leave)
        now = b.add(self.frame.get(iterations), I64(1))
        b.store(now, iterations)
        b.cbranch(b.icmp_unsigned("<", now, batch.count), inside, complete)
        b.position_at_end(complete)
        live = self.frame.warp_ir.live(loop.header)
        with self.frame.at_block(loop.header, convergent=True, shapes=batch.shapes):
            self._body.to_varying(batch.shapes, loop.header, live)
        self._body.count(batch, self.frame.get(iterations))

    def _leave_if_some_do(
        self, copy: Copy, batch: Batch, iterations: Value, position: int, instruction: Instruction
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
        self._body.to_varying(batch.shapes, index, read.union(*live))
        self._body.count(batch, self.frame.get(iterations), position)
        with self.frame.at_block(index, convergent=True):
            self._end_block(copy, block, block.stop - 1, instruction)
        b.position_at_end(next_block)
