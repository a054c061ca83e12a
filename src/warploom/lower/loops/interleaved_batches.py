"""Emits batches of strided loops (`lower.loops.strided_loops`) in which the warps of a thread block
run in turn.

    warp 0: check; waits      warp 1: check; waits      ...      the last warp: check; waits
    warp 0: four iterations   warp 1: four iterations   ...      the last warp: four iterations
    warp 0: four iterations   ...

In `for (i = thread; i < n; i += threads)`, a warp accesses 128 bytes of each array in an iteration,
and the next ones far away. A whole batch of one warp reads two cache lines of each of many pages.
The stride is often a multiple of a page, so that all of these lines compete for the same sets of
the host's caches, and its prefetcher, which does not cross pages, is of no use. Interleaved, the
warps of a block read a kilobyte or more of each of four pages.

The order of warps must not be observable (`Interleaving.ALLOWED`). The loop's header is a site at
which warps in warp order (`lower.control.warp_order`) wait, as at a barrier. If all of them arrive
there, they run a part of their batches in turn; if some end or wait elsewhere, the others
continue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce

from llvmlite import ir

from warploom.abi.environment import Interleaving, Slot
from warploom.abi.sites import site_of_loop
from warploom.ir.loops import BatchedLoop
from warploom.isa.instruction import Instruction, Register, Space
from warploom.isa.kinds import OpKind
from warploom.llvm.lanes import I1, I64, Value
from warploom.lower.control.control import ControlFlow
from warploom.lower.frame.blocks import Copy
from warploom.lower.frame.spills import SpillCode
from warploom.lower.loops.batch_body import BatchBody, is_bounded
from warploom.lower.loops.batch_check import Batch, BatchCheck
from warploom.lower.loops.interleaved_registers import InterleavedRegisters
from warploom.lower.loops.iteration_limits import MAX_ITERATIONS, IterationLimits
from warploom.lower.loops.teams import TeamCode, can_form_teams
from warploom.program.accesses import accesses
from warploom.program.uses import reads, writes

PAGE = 4096
"""Bytes of a page of the host, across which its hardware prefetcher does not read ahead."""

CHUNK = 4
"""Iterations of one warp before the next one's. Sums of two arrays of 16 MiB in C, in the order of
a loop over a grid of 264 blocks of 256 threads, took 2.4, 2.0, 1.8, 1.8, 1.8, 1.9 ms on an AMD EPYC
with 1 to 6, 2.4 with 8 (the sets of its first cache have 8 lines), 4.2 warp by warp; 1.1 without
the loop. In teams of 256 warps, too, 4 was the best (a copy in C: 0.89, 0.82, 0.75, 0.82 ms with 1,
2, 4, 8; 0.62 without the loop)."""


class InterleavedBatches:
    """Emits where warps meet for interleaved batches, and these, in one warp function."""

    def __init__(
        self, control: ControlFlow, spills: SpillCode, check: BatchCheck, body: BatchBody
    ) -> None:
        """Shares the emitters of batches of single warps; emits nothing but a variable."""
        self.control, self.spills, self.check, self.body = control, spills, check, body
        self.frame, self.b, self.lanes = control.frame, control.b, control.frame.lanes
        self.program, self.blocks = control.program, control.blocks
        self._state = control.warp_order.state
        self.teams = TeamCode(self._state)
        self._was_in_vain = self.frame.variable(I1)
        """The address of an i1: in this call, warps have met of which one had no batch to run."""

    # ---- where warps meet -----------------------------------------------------------------------

    def meet(self, batch: Batch) -> None:
        """Emits the wait of a warp for the others of its block at the header of a loop of which it
        can run a batch, if interleaving is allowed and pays: all warps of the block run in order
        and have all their threads, this one has CHUNK iterations twice, and from one to the next
        the addresses of some group advance by a page or more. If it pays, and it is UNKNOWN whether
        it is allowed, records WANTED (`Interleaving`). Emits nothing for loops that cannot be
        interleaved (`_can_interleave`)."""
        batched = batch.batched
        if not self._can_interleave(batched):
            return
        b, frame = self.b, self.frame
        # One unsigned comparison tests a step in either direction: PAGE or more, or less than
        # -PAGE.
        distant = reduce(
            b.or_,
            (
                b.icmp_unsigned(">=", b.add(step, I64(PAGE)), I64(2 * PAGE))
                for step in batch.steps.values()
            ),
        )
        conditions = (
            self._state.all_full(),
            b.icmp_unsigned(">", frame.slot(Slot.WARPS), I64(1)),
            b.icmp_unsigned(">=", batch.count, I64(2 * CHUNK)),
            b.not_(b.load(self._was_in_vain, typ=I1)),
            distant,
        )
        state = frame.slot(Slot.INTERLEAVING)
        with b.if_then(reduce(b.and_, conditions)):
            is_allowed = b.icmp_unsigned(">=", state, I64(Interleaving.WITHIN_BLOCKS))
            with b.if_else(is_allowed) as (allowed, unknown):
                with allowed:
                    self._wait_for_others(batch)
                with unknown:
                    frame.record(Slot.INTERLEAVING, I64(Interleaving.WANTED))

    def _wait_for_others(self, batch: Batch) -> None:
        """Emits the end of a warp's part before a batch: saves it as at the loop's header, and
        continues with the block's next warp."""
        frame, header = self.frame, batch.batched.loop.header
        live = frame.warp_ir.live(header)
        with frame.at_block(header, convergent=True, shapes=batch.shapes):
            self.body.to_varying(batch.shapes, header, live)
        with frame.at_block(header, convergent=True):
            self.spills.save_convergent(live)
        site = site_of_loop(self.program, header)
        self.control.warp_order.meet(site, self.program.blocks[header].start)

    def _can_interleave(self, batched: BatchedLoop) -> bool:
        """Returns whether all that an iteration does is covered by the check of its batch: every
        access is in a group that is strided, and lanes leave by compared values alone. Then a batch
        of another warp can neither fault nor end early."""
        loop = batched.loop
        covered = {
            index
            for group in batched.groups
            if group.members[0][0] in loop.accesses
            for index, _ in group.members
        }
        blocks = [self.program.blocks[index] for index in loop.blocks]
        instructions = self.program.instructions
        return (
            self.control.suspends
            and all(
                index in covered
                or all(space is Space.PARAM for space, _ in accesses(instructions[index]))
                for block in blocks
                for index in range(block.start, block.stop)
            )
            and all(
                is_bounded(loop, block)
                for block in blocks
                if _is_guarded_branch(instructions[block.stop - 1])
            )
        )

    def _loops(self) -> list[BatchedLoop]:
        """Returns the loops that can be interleaved, in code that has their batches."""
        return [
            batched
            for batched in self.frame.warp_ir.strided_loops
            if (Copy.CONVERGENT, batched.loop.header) in self.blocks.batches
            and self._can_interleave(batched)
        ]

    def emit_resumes(self) -> dict[int, ir.Block]:
        """Emits the entries of warps that continue alone from where they have met; returns them by
        site. They attempt a batch again."""
        return {
            site_of_loop(self.program, batched.loop.header): self._resume(batched)
            for batched in self._loops()
        }

    def _resume(self, batched: BatchedLoop) -> ir.Block:
        """Emits the entry of a warp that continues alone, and returns it."""
        header = batched.loop.header
        block = self.blocks.append(f"resume.batch{header}")
        with self.b.goto_block(block):
            self._restore(header)
            self.control.masked_loops.enter(self.frame.shapes.around(header))
            self.control.layout_recovery.set_stale(False)
            self.b.branch(self.blocks.batches[Copy.CONVERGENT, header])
        return block

    def _restore(self, header: int) -> None:
        """Restores the running warp, all of whose lanes are at a loop's header."""
        with self.frame.at_block(header, convergent=True):
            self.spills.restore_convergent(self.frame.warp_ir.live(header), whole=True)

    # ---- all warps together ---------------------------------------------------------------------

    def emit(self) -> dict[int, ir.Block]:
        """Emits the interleaved batches, which run when all warps of a block have met; returns
        their entries by site."""
        return {
            site_of_loop(self.program, batched.loop.header): self._interleave(batched)
            for batched in self._loops()
        }

    def _interleave(self, batched: BatchedLoop) -> ir.Block:
        """Emits the interleaved batches of a loop, and returns their entry: all warps of a team, or
        of the block alone, are checked for the least number of iterations that each can run, then
        counted, and then run in chunks. Afterwards each warp of this block continues alone."""
        b, frame = self.b, self.frame
        header, names = (
            batched.loop.header,
            ("interleaved", "check", "checked", "run", "unpack", "ran", "done"),
        )
        entry, check, checked, run, unpack, ran, done = (
            self.blocks.append(f"{name}{header}") for name in names
        )
        least, times, chunk = (frame.variable(I64) for _ in range(3))
        packed = InterleavedRegisters(
            frame,
            self._used(batched),
            self.check.shapes(batched),
            allows_team=can_form_teams(self.program, batched),
        )
        b.position_at_end(entry)
        frame.fuel.begin_turn()
        first_block = I64(0)
        if packed.forms_team:
            first_block = self.teams.enter(site_of_loop(self.program, header), done)

        def for_each_warp(body: Callable[[], None]) -> None:
            """Emits `body` for each warp of the team."""
            self.teams.for_each_warp(first_block, body)

        b.store(I64(MAX_ITERATIONS), least)
        b.store(I64(0), times)
        b.branch(check)
        # The loop over the warps runs twice, so that the check is emitted once: first it finds the
        # least number of iterations, then it counts that many of each.
        b.position_at_end(check)
        packed.each(lambda: self._check_warp(batched, packed, least, times), for_each_warp)
        is_counted = b.icmp_unsigned("!=", frame.get(times), I64(0))
        b.cbranch(is_counted, run, checked)
        b.position_at_end(checked)
        chunks = b.udiv(frame.get(least), I64(CHUNK))
        b.store(b.mul(chunks, I64(CHUNK)), times)
        b.store(chunks, chunk)
        in_vain = b.icmp_unsigned("==", chunks, I64(0))
        b.store(in_vain, self._was_in_vain)
        b.cbranch(in_vain, ran, check)
        b.position_at_end(run)
        packed.each(lambda: self._run_chunk(batched, packed), for_each_warp)
        left = b.sub(frame.get(chunk), I64(1))
        b.store(left, chunk)
        b.cbranch(b.icmp_unsigned("!=", left, I64(0)), run, unpack)
        b.position_at_end(unpack)
        packed.each(lambda: self._unpack(batched, packed), for_each_warp)
        b.branch(ran)
        b.position_at_end(ran)
        self.teams.leave(first_block)
        b.branch(done)
        b.position_at_end(done)
        frame.set_warp(I64(0))
        self.control.warp_order.run_in_order()
        return entry

    def _check_warp(
        self, batched: BatchedLoop, packed: InterleavedRegisters, least: Value, times: Value
    ) -> None:
        """Emits the check of the running warp's batch, which lowers `least` (the address of an i64)
        to its number of iterations; or, once `times` (an address, too) is not 0, the count of that
        many iterations, and the copy of the warp's registers to its record."""
        b, frame, header = self.b, self.frame, batched.loop.header
        self._restore(header)
        names = ("few", "compared", "counted", "next")
        few, compared, counted, following = (
            self.blocks.append(f"interleaved.{name}") for name in names
        )
        limits, shapes = IterationLimits(self.lanes), self.check.shapes(batched)
        with frame.at(replace(frame.position, spilled={})):
            with frame.at_block(header, convergent=True):
                self.check.assume(batched, limits)
            with frame.at_block(header, convergent=True, shapes=shapes):
                batch = self.check.check(batched, shapes, limits, few)
                is_first = b.icmp_unsigned("==", frame.get(times), I64(0))
                b.cbranch(is_first, compared, counted)
                b.position_at_end(compared)
                arguments = [frame.get(least), batch.count]
                b.store(self.lanes.intrinsic("llvm.umin.i64", I64, arguments), least)
                b.branch(following)
                b.position_at_end(few)
                b.store(I64(0), least)
                b.branch(following)
                b.position_at_end(counted)
                self.body.count(batch, frame.get(times))
                self._state.charge_budget()
                packed.save(self._used(batched))
                b.branch(following)
        b.position_at_end(following)

    def _run_chunk(self, batched: BatchedLoop, packed: InterleavedRegisters) -> None:
        """Emits CHUNK iterations of the warp of the current record, and stores the registers that
        they change in the record."""
        b, frame, shapes = self.b, self.frame, self.check.shapes(batched)
        inside, done = (self.blocks.append(f"chunk.{name}") for name in ("inside", "done"))
        iterations = frame.variable(I64)
        with frame.at(replace(frame.position, spilled={})):
            self.spills.restore_convergent((), whole=True)
            with frame.at_block(batched.loop.header, convergent=True, shapes=shapes):
                packed.restore()
            b.store(I64(CHUNK), iterations)
            b.branch(inside)
            b.position_at_end(inside)
            self.body.iteration(Copy.CONVERGENT, batched, shapes, _never_leave)
            left = b.sub(frame.get(iterations), I64(1))
            b.store(left, iterations)
            b.cbranch(b.icmp_unsigned("!=", left, I64(0)), inside, done)
            b.position_at_end(done)
            with frame.at_block(batched.loop.header, convergent=True, shapes=shapes):
                packed.save(self._changed(batched))

    def _unpack(self, batched: BatchedLoop, packed: InterleavedRegisters) -> None:
        """Emits the copy of the registers that the batch has changed from the current record to the
        context of the running warp."""
        frame, header, shapes = self.frame, batched.loop.header, self.check.shapes(batched)
        changed = self._changed(batched)
        with frame.at(replace(frame.position, spilled={})):
            with frame.at_block(header, convergent=True, shapes=shapes):
                packed.restore()
                self.body.to_varying(shapes, header, changed)
            with frame.at_block(header, convergent=True):
                self.spills.save_registers_convergent(changed)

    def _changed(self, batched: BatchedLoop) -> frozenset[Register]:
        """Returns the registers that an iteration writes and a later one, or code after the loop,
        reads."""
        written = {r for instruction in self._instructions(batched) for r in writes(instruction)}
        return frozenset(written & self.frame.warp_ir.live(batched.loop.header))

    def _used(self, batched: BatchedLoop) -> frozenset[Register]:
        """Returns the registers that an iteration changes, or reads from before it."""
        read = {r for instruction in self._instructions(batched) for r in reads(instruction)}
        return self._changed(batched) | (read & self.frame.warp_ir.live(batched.loop.header))

    def _instructions(self, batched: BatchedLoop) -> Iterator[Instruction]:
        """Yields the instructions of a loop."""
        for index in batched.loop.blocks:
            block = self.program.blocks[index]
            yield from self.program.instructions[block.start : block.stop]


def _is_guarded_branch(instruction: Instruction) -> bool:
    """Returns whether an instruction is a branch with a guard."""
    return instruction.operation.kind is OpKind.BRANCH and instruction.guard is not None


def _never_leave(position: int, instruction: Instruction) -> None:
    """Raises AssertionError: lanes leave by compared values alone."""
    raise AssertionError(position, instruction)
