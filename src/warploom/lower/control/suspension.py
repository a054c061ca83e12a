"""Emits the exits and entries by which a warp suspends and resumes.

Where a warp cannot continue (its turn is used up, or lanes wait for others in another split), it
saves its state and returns a reason from the warp function. `simt.scheduling` selects the split to
run next, and a later call resumes there. A warp that waits as a whole at a barrier saves registers
by their vector shapes; at all other exits they are in the context lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from llvmlite import ir

from warploom.abi.environment import Status
from warploom.abi.sites import site_of_barrier
from warploom.llvm.lanes import I64, Value
from warploom.lower.control.layout_recovery import LayoutRecovery
from warploom.lower.control.warp_order import WarpOrder
from warploom.lower.frame.blocks import Blocks, Copy
from warploom.lower.frame.spills import SpillCode
from warploom.program.uses import member_mask
from warploom.simt.schedule_layout import FROM_TABLE, WarpState
from warploom.simt.split_policy import CONVERGE
from warploom.simt.warp_table import WarpTable


class Suspension:
    """Emits the exits by which a warp leaves its function before it ends, and the entries by which
    a later call resumes it. A site is a numbered barrier at which the whole warp waits; elsewhere
    the warp's table states where its split (lanes that run together) continues."""

    def __init__(
        self,
        blocks: Blocks,
        spills: SpillCode,
        warp_order: WarpOrder,
        layout_recovery: LayoutRecovery,
    ) -> None:
        """Creates the emitter, with no exit and no site yet. `sites`: by basic block at whose end
        the warp as a whole waits, the number of the site, the block's plus one; `wait_together`
        adds them."""
        self.blocks, self.spills, self.warp_order, self.layout_recovery = (
            blocks,
            spills,
            warp_order,
            layout_recovery,
        )
        self.frame, self.b = blocks.frame, blocks.frame.lanes.b
        self._exits: dict[tuple[Status, bool], ir.Block] = {}
        """The blocks that leave the function, by reason and by whether they have saved their
        registers."""
        self.sites: dict[int, int] = {}
        """By the basic blocks at whose ends the warp as a whole waits, the numbers of the sites:
        the block's number plus one, in baseline and optimized code alike."""

    def suspend(self, status: Status, index: int | Value) -> None:
        """Emits the running lanes' exit from the warp function with a status; a later call
        continues them at block `index` (a constant or a run-time i64), which is stored in the
        warp's table with the active and live lanes and the stack's top. In convergent code
        registers are saved lane by lane first: those live at `index` if it is a constant, else all
        that blocks share; in divergent code they are in the context already."""
        b, frame = self.b, self.frame
        is_whole = (
            frame.position.convergent and status is not Status.DIVERGED and isinstance(index, int)
        )
        if is_whole:
            # All lanes will continue there, so only its live registers are needed.
            assert isinstance(index, int)
            self.spills.save(self.blocks.live(index))
        elif frame.position.convergent:
            # Other lanes or another block may run next, in divergent code: store registers lane by
            # lane.
            is_constant = isinstance(index, int)
            frame.transfers.save_diverging(
                self.blocks.live(index) if is_constant else frame.shared_over_blocks
            )
        # All exits with one status share a block; it saves the head of the table where `save` has
        # not.
        if (status, is_whole) not in self._exits:
            name = f"leave.{status.name.lower()}{'.saved' if is_whole else ''}"
            self._exits[status, is_whole] = self.blocks.append(name)
        # Stored before the jump: the shared block does not know from where it was reached.
        b.store(
            I64(index) if isinstance(index, int) else index, frame.context.table(WarpTable.block)
        )
        b.branch(self._exits[status, is_whole])

    def diverge(self, index: int | Value, run: Callable[[], None]) -> None:
        """Emits the end of a divergence, whose active lanes continue at block `index`: `run` emits
        the jump there. If the schedule mixes diverged lanes, they are suspended with DIVERGED
        instead, and it chooses those that run; code for any order tests whether it does."""
        variant = self.frame.variant
        if not variant.interleaves_paths:
            run()
            return
        if variant.any_order:
            with self.b.if_then(self.frame.has_policy(CONVERGE)):
                run()
        self.suspend(Status.DIVERGED, index)

    def wait_together(self, block: int, instruction: int, plain_number: int | None) -> None:
        """Emits the wait of the warp as a whole at a barrier at the end of `block`: saves it, and
        sets its resume point to the barrier's site (its number in `resume`). `plain_number` is the
        barrier's number if that is a constant and it waits for all threads: then a call in warp
        order runs the next warp; None for other barriers. Code continues where the caller has to
        return to the schedule."""
        with self._following_block(block) as following:
            self.spills.save_convergent(self.blocks.live(following))
        site = self.sites.setdefault(block, site_of_barrier(block))
        if plain_number is not None:
            self.warp_order.wait(site, instruction, plain_number)
        self.frame.context.set_state(WarpState.resume, I64(site))

    def wait_in_region(self, block: int) -> None:
        """Emits the wait of a warp in a region version, at a barrier of all threads at the end of
        `block`: saves its live registers (lanes and SIMT stack have not changed), and runs the next
        warp. No code follows. `wait_together` must have added the block's site."""
        # Lanes and SIMT stack are in the context from an earlier save: a region version is run by
        # all 32 lanes, and left before any exits or diverges.
        with self._following_block(block) as following:
            self.spills.save_registers(self.blocks.live(following))
            self.warp_order.switch_warp(self.sites[block])

    @contextmanager
    def _following_block(self, block: int) -> Generator[int]:
        """Emits code as in the block after a barrier at the end of `block`, with its register
        shapes, while it is open; before, stores in 32 lanes the registers that become varying
        there. Yields that block's number."""
        following = self._following(block)
        self.frame.transfers.to_varying(block, following)
        with self.frame.at_block(following, convergent=True):
            yield following

    def _following(self, block: int) -> int:
        """Returns the number of the basic block after a barrier at the end of `block`."""
        return self.blocks.program.blocks[block].successors[-1]

    def emit_exits(self) -> None:
        """Emits the LLVM blocks that return from the function with a status, to which `suspend`
        branches: they save the head of the warp's table unless `suspend` has, and make the warp
        resume from its table (FROM_TABLE)."""
        for (status, saved), block in self._exits.items():
            self.b.position_at_end(block)
            if not saved:
                self.spills.save_head()
            self.frame.context.set_state(WarpState.resume, I64(FROM_TABLE))
            self.frame.leave(status)

    def emit_resumes(self) -> dict[int, ir.Block]:
        """Emits the entries of a resumed warp: one for each site (barrier) at which it waits as a
        whole, in the main copy, and one for splits (FROM_TABLE). Returns them by the `resume` value
        in the warp's state."""
        resumes: dict[int, ir.Block] = {}
        for block, site in self.sites.items():
            resumes[site] = self._resume(self.blocks.main, block)
        resumes[FROM_TABLE] = self._resume_from_table()
        return resumes

    def emit_region_versions(self) -> dict[int, ir.Block]:
        """Emits, for each site whose next block has a region copy (in which full warps run in warp
        order), the entry into that copy, and returns them by site; other sites have none."""
        copies_by_block = {
            block: self.blocks.entry_copy(Copy.REGION, self._following(block))
            for block in self.sites
        }
        return {
            self.sites[block]: self._resume(copy, block)
            for block, copy in copies_by_block.items()
            if copy is Copy.REGION
        }

    def _resume(self, copy: Copy, block: int) -> ir.Block:
        """Emits the entry after a barrier at the end of `block`. It restores the live lanes, which
        become the active ones, and the live registers that `wait_together` has saved. It enters the
        masked loops around the next block, clears the flag *stale* (`LayoutRecovery`), as registers
        have their shapes, and jumps to the next block in `copy`. In the region copy all 32 lanes
        are live. Returns the entry."""
        following = self._following(block)
        resume_block = self.blocks.append(f"resume.{copy.value}{self.sites[block]}")
        self.b.position_at_end(resume_block)
        with self.frame.at_block(following, convergent=True):
            self.spills.restore_convergent(self.blocks.live(following), whole=copy is Copy.REGION)
        self.layout_recovery.masked_loops.enter(self.frame.shapes.around(following))
        self.layout_recovery.set_stale(False)
        self.b.branch(self.blocks.entrance(copy, following))
        return resume_block

    def _resume_from_table(self) -> ir.Block:
        """Emits the entry that resumes the split (lanes that run together) that the scheduler has
        chosen, at the block in the warp's table. It resumes in the convergent copy if the split has
        all living lanes and the SIMT stack is empty, else in the divergent one (always in code of
        one copy). Shapes of registers count as stale. Returns the entry."""
        b, frame = self.b, self.frame
        resume_block = self.blocks.append("resume.split")
        b.position_at_end(resume_block)
        self.spills.restore_head()
        index = frame.get(frame.context.table(WarpTable.block))
        if frame.variant.has_one_copy:
            self._resume_at(index, self.blocks.main)
            return resume_block
        all_living = b.icmp_signed(
            "==",
            frame.get(frame.context.table(WarpTable.mask)),
            frame.get(frame.context.table(WarpTable.live)),
        )
        no_nodes = b.icmp_signed("<", frame.get(frame.context.table(WarpTable.top)), I64(0))
        copies = Copy.CONVERGENT, Copy.DIVERGENT
        # All living lanes are together if the split has all of them and no node waits for any.
        switches = {copy: self.blocks.append(f"resume.split.{copy.value}") for copy in copies}
        b.cbranch(b.and_(all_living, no_nodes), *switches.values())
        for copy, block in switches.items():
            b.position_at_end(block)
            self.layout_recovery.set_stale(True)
            self._resume_at(index, copy)
        return resume_block

    def _resume_at(self, index: Value, copy: Copy) -> None:
        """Emits the switch to a resumable basic block by its run-time number `index`, in a copy:
        directly in the divergent one, by `_resume_together` in the convergent one. Numbers that are
        not resumable jump to the program's end."""
        targets = self.b.switch(index, self.blocks.entrance(copy, self.blocks.program.exit))
        for block_index in sorted(self.frame.warp_ir.reconvergence.resumable):
            diverged = copy is Copy.DIVERGENT
            to = (
                self.blocks.entrance(copy, block_index)
                if diverged
                else self._resume_together(block_index)
            )
            targets.add_case(I64(block_index), to)

    def _resume_together(self, block_index: int) -> ir.Block:
        """Emits the block in which all living lanes resume at a basic block: in the convergent copy
        if registers have their shapes, else in the divergent one (`LayoutRecovery.recover`). Clears
        `sync_done` if the block begins with an instruction with a member mask. Returns the LLVM
        block."""
        block = self.blocks.append(f"resume.split.{block_index}")
        with self.b.goto_block(block):
            first_index = self.blocks.program.blocks[block_index].start
            if member_mask(self.blocks.program.instructions[first_index]) is not None:
                # The convergent copy does not test whether lanes have waited for their member mask:
                # all are active.
                self.b.store(I64(0), self.frame.context.table(WarpTable.sync_done))
            self.b.branch(self.layout_recovery.recover(block_index))
        return block
