"""Emits the ways by which a warp leaves before its end and comes back.

Where a warp cannot go on — its turn is used up, lanes wait for others that another split holds — it
leaves with the reason; `simt.scheduling` then says which split it takes up next, and it comes back
there.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from llvmlite import ir

from warploom.abi.environment import Status
from warploom.llvm.lanes import I64, Value
from warploom.lower.control.layout_recovery import LayoutRecovery
from warploom.lower.control.warp_order import WarpOrder
from warploom.lower.frame.blocks import Blocks, Copy
from warploom.lower.frame.spills import Saved
from warploom.program.uses import member_mask
from warploom.simt.schedule_layout import FROM_TABLE, RESUME
from warploom.simt.warp_table import BLOCK, LIVE, MASK, PASS, TOP


class Suspension:
    """Emits the ways out of one warp function and back in."""

    def __init__(
        self,
        blocks: Blocks,
        saved: Saved,
        warp_order: WarpOrder,
        layout_recovery: LayoutRecovery,
    ) -> None:
        self.blocks, self.saved, self.warp_order, self.layout_recovery = (
            blocks,
            saved,
            warp_order,
            layout_recovery,
        )
        self.frame, self.b = blocks.frame, blocks.frame.lanes.b
        self._exits: dict[tuple[Status, bool], ir.Block] = {}
        """Where a warp leaves, by the reason, and whether it has saved its registers."""
        self.sites: dict[int, int] = {}
        """By the blocks at whose ends the warp as a whole waits, the numbers of the sites: one more
        than that of the block, in any code of a kernel."""

    def suspend(self, status: Status, index: int | Value) -> None:
        """Leave with a reason; the running lanes, if they can, go on at block `index` later."""
        b, frame = self.b, self.frame
        is_whole = (
            frame.registers.convergent
            and status is not Status.DIVERGED_STATUS
            and isinstance(index, int)
        )
        if is_whole:
            # All lanes will go on there: nobody needs anything else.
            assert isinstance(index, int)
            self.saved.save(self.blocks.live(index))
        elif frame.registers.convergent:
            is_constant = isinstance(index, int)
            frame.transfers.part(
                self.blocks.live(index) if is_constant else frame.shared_over_blocks
            )
        if (status, is_whole) not in self._exits:
            name = f"leave.{status.name.lower()}{'.saved' if is_whole else ''}"
            self._exits[status, is_whole] = self.blocks.append(name)
        b.store(I64(index) if isinstance(index, int) else index, frame.context.table(BLOCK))
        b.branch(self._exits[status, is_whole])

    def wait_together(self, block: int, instruction: int, simple: int | None) -> None:
        """Let the warp as a whole wait at a barrier at the end of `block`, all living lanes active.
        `simple` is the barrier's number if that is a constant and it awaits all threads. Code goes
        on where the warp leaves."""
        with self._following_block(block) as following:
            self.saved.save_together(self.blocks.live(following))
        site = self.sites.setdefault(block, block + 1)
        if simple is not None:
            self.warp_order.wait(site, instruction, simple)
        self.frame.context.set_state(RESUME, I64(site))

    def wait_in_region(self, block: int) -> None:
        """Emits the wait of a warp in a round, at a simple barrier; code goes on nowhere."""
        with self._following_block(block) as following:
            self.saved.save_registers(self.blocks.live(following))
            self.warp_order.switch_warp(self.sites[block])

    @contextmanager
    def _following_block(self, block: int) -> Generator[int]:
        """Stand in the block behind a barrier at the end of `block`, which is given."""
        following = self._following(block)
        self.frame.transfers.to_varying(block, following)
        with self.frame.registers.standing(following, convergent=True):
            yield following

    def _following(self, block: int) -> int:
        return self.blocks.program.blocks[block].successors[-1]

    def emit_exits(self) -> None:
        """Emit the blocks through which a warp leaves."""
        for (status, saved), block in self._exits.items():
            self.b.position_at_end(block)
            if not saved:
                self.saved.save_head()
            self.frame.context.set_state(RESUME, I64(FROM_TABLE))
            self.frame.leave(status)

    def emit_resumes(self) -> dict[int, ir.Block]:
        """Return the ways back in, by what the state's RESUME says."""
        resumes: dict[int, ir.Block] = {}
        for block, site in self.sites.items():
            resumes[site] = self._resume(self.blocks.main, block)
        resumes[FROM_TABLE] = self._resume_from_table()
        return resumes

    def emit_region_versions(self) -> dict[int, ir.Block]:
        """Return, by site, where the next warp in relay goes on, if that is in a round."""
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
        """Return the way back in behind a barrier at the end of `block`."""
        following = self._following(block)
        resume_block = self.blocks.append(f"resume.{copy.value}{self.sites[block]}")
        self.b.position_at_end(resume_block)
        with self.frame.registers.standing(following, convergent=True):
            self.saved.take_up_together(self.blocks.live(following), whole=copy is Copy.REGION)
        self.layout_recovery.masked_loops.enter(self.frame.shapes.around(following))
        self.layout_recovery.set_stale(False)
        self.b.branch(self.blocks.entrance(copy, following))
        return resume_block

    def _resume_from_table(self) -> ir.Block:
        """Take up the split that the table names, in the convergent copy if it is everyone."""
        b, frame = self.b, self.frame
        resume_block = self.blocks.append("take.up")
        b.position_at_end(resume_block)
        self.saved.restore_head()
        index = frame.get(frame.context.table(BLOCK))
        if frame.variant.baseline:
            self._resume_at(index, self.blocks.main)
            return resume_block
        all_living = b.icmp_signed(
            "==", frame.get(frame.context.table(MASK)), frame.get(frame.context.table(LIVE))
        )
        no_nodes = b.icmp_signed("<", frame.get(frame.context.table(TOP)), I64(0))
        copies = Copy.CONVERGENT, Copy.DIVERGENT
        switches = {copy: self.blocks.append(f"take.up.{copy.value}") for copy in copies}
        b.cbranch(b.and_(all_living, no_nodes), *switches.values())
        for copy, block in switches.items():
            b.position_at_end(block)
            self.layout_recovery.set_stale(True)
            self._resume_at(index, copy)
        return resume_block

    def _resume_at(self, index: Value, copy: Copy) -> None:
        """Go on in a copy at the block of that number."""
        targets = self.b.switch(index, self.blocks.entrance(copy, self.blocks.program.exit))
        for index_after in sorted(self.frame.facts.reconvergence.resumable):
            diverged = copy is Copy.DIVERGENT
            to = (
                self.blocks.entrance(copy, index_after)
                if diverged
                else self._resume_together(index_after)
            )
            targets.add_case(I64(index_after), to)

    def _resume_together(self, index_after: int) -> ir.Block:
        """Emits the block in which all lanes are taken up at a place; returns it."""
        block = self.blocks.append(f"take.up.{index_after}")
        with self.b.goto_block(block):
            first = self.blocks.program.blocks[index_after].start
            if member_mask(self.blocks.program.instructions[first]) is not None:
                # The convergent copy does not ask whether lanes have waited: they are all there.
                self.b.store(I64(0), self.frame.context.table(PASS))
            self.b.branch(self.layout_recovery.recover(index_after))
        return block
