"""Emits the waits of lanes before instructions with a member mask (`shfl.sync`, `bar.warp.sync`),
and their divergence after."""

from __future__ import annotations

from warploom.abi.environment import Status
from warploom.llvm.lanes import I32, I64
from warploom.lower.control.control import ControlFlow
from warploom.lower.frame.operands import Operands
from warploom.program.cfg import ProgramBlock
from warploom.program.uses import gathering_mask, member_mask
from warploom.simt.schedule_layout import WarpState
from warploom.simt.split_policy import ADVERSARIAL
from warploom.simt.warp_table import WarpTable


class SyncCode:
    """Emits what precedes and follows an instruction that lanes of a member mask execute together
    (`shfl.sync`, `mma.sync` of the whole warp), which begins its basic block."""

    def __init__(self, control: ControlFlow, operands: Operands) -> None:
        """Stores the control flow, which suspends lanes, and the operands, which read member
        masks."""
        self.control, self.operands = control, operands
        self.frame, self.lanes, self.b = control.frame, control.lanes, control.lanes.b
        self.program = control.program

    def before(self, block: ProgramBlock) -> None:
        """Emits, at the begin of a basic block whose first instruction waits for lanes, the wait
        for the living lanes of its member mask, that of the lowest active lane. (Such an
        instruction has a member mask and, but for matrix instructions, no guard: `gathering_mask`.)
        If some of these lanes are not active, the active lanes are suspended with SYNC_WAIT, the
        mask in `argument` and the instruction in the warp's state; not if they have waited already
        (`sync_done`, which is cleared). Emits nothing for other blocks, or without independent
        thread scheduling."""
        instruction = self.program.instructions[block.start]
        mask = gathering_mask(instruction)
        if mask is None or not self.frame.variant.independent:
            return
        b, frame = self.b, self.frame
        members = self.operands.uniform(mask, frame.active.mask())
        live = b.zext(b.load(frame.active.live, typ=I32), I64)
        active = b.zext(frame.active.bits(), I64)
        missing = b.and_(b.and_(members, live), b.not_(active))
        has_waited = frame.get(frame.context.table(WarpTable.sync_done))
        b.store(I64(0), frame.context.table(WarpTable.sync_done))
        # `sync_done` is set when lanes resume here after the wait: they do not wait again, though
        # members may still be missing.
        must_wait = b.and_(
            b.icmp_unsigned("!=", missing, I64(0)), b.icmp_unsigned("==", has_waited, I64(0))
        )
        with b.if_then(must_wait, likely=False):
            b.store(members, frame.context.table(WarpTable.argument))
            frame.context.set_state(WarpState.instruction, I64(block.start))
            self.control.suspension.suspend(Status.SYNC_WAIT, block.index)

    def after(self, block: ProgramBlock) -> None:
        """Emits the suspension (DIVERGED) after a basic block that begins with an instruction with
        a member mask, under the adversarial policy and with several active lanes, which the
        schedule then may run separately. Nothing for other blocks, or in code for schedules that do
        not mix diverged lanes."""
        if (
            not self.frame.variant.interleaves_paths
            or member_mask(self.program.instructions[block.start]) is None
        ):
            return
        b, frame = self.b, self.frame
        count = self.lanes.popcount(frame.active.bits())
        several = b.icmp_unsigned(">", count, I64(1))
        with b.if_then(b.and_(frame.has_policy(ADVERSARIAL), several)):
            self.control.suspension.suspend(Status.DIVERGED, block.successors[-1])
