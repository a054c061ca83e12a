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
from warploom.lower.control.layout_recovery import Reshaping
from warploom.lower.control.warp_order import WarpOrder
from warploom.lower.frame.blocks import Blocks, Copy
from warploom.lower.frame.spills import SpillCode
from warploom.program.uses import member_mask
from warploom.simt.schedule_layout import FROM_TABLE, RESUME
from warploom.simt.warp_table import BLOCK, LIVE, MASK, SYNC_DONE, TOP


class Suspension:
    """Emits the ways out of one warp function and back in."""

    def __init__(
        self,
        blocks: Blocks,
        saved: SpillCode,
        warp_order: WarpOrder,
        reshaping: Reshaping,
    ) -> None:
        self.blocks, self.saved, self.warp_order, self.reshaping = (
            blocks,
            saved,
            warp_order,
            reshaping,
        )
        self.frame, self.b = blocks.frame, blocks.frame.lanes.b
        self._exits: dict[tuple[Status, bool], ir.Block] = {}
        """Where a warp leaves, by the reason, and whether it has saved its registers."""
        self.sites: dict[int, int] = {}
        """By the blocks at whose ends the warp as a whole waits, the numbers of the sites: one more
        than that of the block, in any code of a kernel."""

    def give_way(self, status: Status, index: int | Value) -> None:
        """Leave with a reason; the running lanes, if they can, go on at block `index` later."""
        b, frame = self.b, self.frame
        whole = (
            frame.registers.convergent
            and status is not Status.DIVERGED_STATUS
            and isinstance(index, int)
        )
        if whole:
            # All lanes will go on there: nobody needs anything else.
            assert isinstance(index, int)
            self.saved.save(self.blocks.live(index))
        elif frame.registers.convergent:
            known = isinstance(index, int)
            frame.transfers.save_diverging(
                self.blocks.live(index) if known else frame.shared_over_blocks
            )
        if (status, whole) not in self._exits:
            name = f"leave.{status.name.lower()}{'.saved' if whole else ''}"
            self._exits[status, whole] = self.blocks.append(name)
        b.store(I64(index) if isinstance(index, int) else index, frame.context.table(BLOCK))
        b.branch(self._exits[status, whole])

    def wait_together(self, block: int, instruction: int, simple: int | None) -> None:
        """Let the warp as a whole wait at a barrier at the end of `block`, all living lanes active.
        `simple` is the barrier's number if that is a constant and it awaits all threads. Code goes
        on where the warp leaves."""
        with self._entered(block) as behind:
            self.saved.save_together(self.blocks.live(behind))
        site = self.sites.setdefault(block, block + 1)
        if simple is not None:
            self.warp_order.wait(site, instruction, simple)
        self.frame.context.set_state(RESUME, I64(site))

    def hand_over(self, block: int) -> None:
        """Emits the wait of a warp in a round, at a simple barrier; code goes on nowhere."""
        with self._entered(block) as behind:
            self.saved.save_registers(self.blocks.live(behind))
            self.warp_order.pass_on(self.sites[block])

    @contextmanager
    def _entered(self, block: int) -> Generator[int]:
        """Stand in the block behind a barrier at the end of `block`, which is given."""
        behind = self._behind(block)
        self.frame.transfers.to_varying(block, behind)
        with self.frame.registers.emitting_block(behind, convergent=True):
            yield behind

    def _behind(self, block: int) -> int:
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
        ways: dict[int, ir.Block] = {}
        for block, site in self.sites.items():
            ways[site] = self._resume(self.blocks.main, block)
        ways[FROM_TABLE] = self._from_table()
        return ways

    def emit_region_versions(self) -> dict[int, ir.Block]:
        """Return, by site, where the next warp in relay goes on, if that is in a round."""
        begun = {
            block: self.blocks.entry_copy(Copy.REGION, self._behind(block)) for block in self.sites
        }
        return {
            self.sites[block]: self._resume(copy, block)
            for block, copy in begun.items()
            if copy is Copy.REGION
        }

    def _resume(self, copy: Copy, block: int) -> ir.Block:
        """Return the way back in behind a barrier at the end of `block`."""
        following = self._behind(block)
        way = self.blocks.append(f"resume.{copy.value}{self.sites[block]}")
        self.b.position_at_end(way)
        with self.frame.registers.emitting_block(following, convergent=True):
            self.saved.take_up_together(self.blocks.live(following), whole=copy is Copy.REGION)
        self.reshaping.masked_loops.enter(self.frame.shapes.around(following))
        self.reshaping.set_stale(False)
        self.b.branch(self.blocks.entrance(copy, following))
        return way

    def _from_table(self) -> ir.Block:
        """Take up the split that the table names, in the convergent copy if it is everyone."""
        b, frame = self.b, self.frame
        way = self.blocks.append("take.up")
        b.position_at_end(way)
        self.saved.restore_head()
        index = frame.get(frame.context.table(BLOCK))
        if frame.variant.baseline:
            self._take_up(index, self.blocks.main)
            return way
        everyone = b.icmp_signed(
            "==", frame.get(frame.context.table(MASK)), frame.get(frame.context.table(LIVE))
        )
        alone = b.icmp_signed("<", frame.get(frame.context.table(TOP)), I64(0))
        copies = Copy.CONVERGENT, Copy.DIVERGENT
        switches = {copy: self.blocks.append(f"take.up.{copy.value}") for copy in copies}
        b.cbranch(b.and_(everyone, alone), *switches.values())
        for copy, block in switches.items():
            b.position_at_end(block)
            self.reshaping.set_stale(True)
            self._take_up(index, copy)
        return way

    def _take_up(self, index: Value, copy: Copy) -> None:
        """Go on in a copy at the block of that number."""
        targets = self.b.switch(index, self.blocks.entrance(copy, self.blocks.program.exit))
        for place in sorted(self.frame.facts.reconvergence.resumable):
            diverged = copy is Copy.DIVERGENT
            to = self.blocks.entrance(copy, place) if diverged else self._taken_up(place)
            targets.add_case(I64(place), to)

    def _taken_up(self, place: int) -> ir.Block:
        """Emits the block in which all lanes are taken up at a place; returns it."""
        block = self.blocks.append(f"take.up.{place}")
        with self.b.goto_block(block):
            first = self.blocks.program.blocks[place].start
            if member_mask(self.blocks.program.instructions[first]) is not None:
                # The convergent copy does not ask whether lanes have waited: they are all there.
                self.b.store(I64(0), self.frame.context.table(SYNC_DONE))
            self.b.branch(self.reshaping.reshape(place))
        return block
