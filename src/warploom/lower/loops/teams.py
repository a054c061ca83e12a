"""Emits what teams of thread blocks (`simt.teams`) add to interleaved batches
(`lower.loops.interleaved_batches`): where the warps of a block have met, the block may wait for
others, or its warps and those of blocks that wait run in turn.

    blocks wait in slots 0, 1; block 9 arrives as the last one in slot 2:
    warps of block 7 (contexts -16 to -9), 8 (-8 to -1), 9 (0 to 7), four iterations each, ..."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from warploom.abi.environment import Interleaving, Slot, Status
from warploom.core.lazy import cached_property
from warploom.ir.loops import BatchedLoop
from warploom.isa.instruction import Space
from warploom.isa.special import SPECIAL_REGISTERS, Varies
from warploom.llvm.lanes import I64, Value
from warploom.lower.control.warp_order_state import WarpOrderState
from warploom.program.accesses import accesses
from warploom.program.program import Program
from warploom.program.uses import special_registers
from warploom.simt.schedule_layout import Plan
from warploom.simt.teams import CONTINUES, LAST, MAY_WAIT, NO_TEAM, WAITS


class TeamCode:
    """Emits waits for a team, and loops over its warps, in one warp function."""

    def __init__(self, state: WarpOrderState) -> None:
        """Stores the state of warp order; emits nothing."""
        self._state, self.frame, self.b = state, state.frame, state.frame.lanes.b

    @cached_property
    def _role(self) -> Value:
        """Returns the address of the role of the block that this call runs, which it has until it
        first comes to a loop; loaded at the begin of the call."""
        frame, p = self.frame, self.frame.prologue
        role = frame.variable(I64)
        at_begin = p.slot(frame.pointer(Slot.PLAN_AT), Plan.team_role)
        p.b.store(p.b.load(at_begin, typ=I64), role)
        return role

    def enter(self, site: int, done: ir.Block) -> Value:
        """Emits what a block does whose warps have met at the header of a loop (`site`): a jump to
        `done` if its team has run this loop; a return, in which it waits, if others can join.
        Otherwise code continues. Returns how many blocks run the loop with this one, as the number
        of the first of them, counted from this one: 0, or the negative number of those that
        wait."""
        b, frame = self.b, self.frame
        role = frame.get(self._role)
        b.store(I64(NO_TEAM), self._role)
        has_run, joins, may_wait = (
            self._state.append(f"team.{name}") for name in ("run", "joins", "waits")
        )
        b.cbranch(b.icmp_unsigned("==", role, I64(CONTINUES)), done, has_run)
        b.position_at_end(has_run)
        waiting = frame.get(frame.plan(Plan.team_waiting))
        none_waits = b.icmp_unsigned("==", waiting, I64(0))
        here = b.icmp_unsigned("==", frame.get(frame.plan(Plan.team_site)), I64(site))
        allowed = b.icmp_unsigned(
            "==", frame.slot(Slot.INTERLEAVING), I64(Interleaving.ACROSS_BLOCKS)
        )
        matches = b.and_(allowed, b.or_(none_waits, here))
        waits = b.and_(matches, b.icmp_unsigned("==", role, I64(MAY_WAIT)))
        b.cbranch(waits, may_wait, joins)
        with b.goto_block(may_wait):
            self._wait(site, waiting)
        b.position_at_end(joins)
        is_last = b.and_(matches, b.icmp_unsigned("==", role, I64(LAST)))
        return b.select(is_last, b.sub(I64(0), waiting), I64(0))

    def _wait(self, site: int, waiting: Value) -> None:
        """Emits the return of a call whose block waits for its team at a site, beside `waiting`
        others."""
        b, frame = self.b, self.frame
        b.store(b.add(waiting, I64(1)), frame.plan(Plan.team_waiting))
        b.store(I64(site), frame.plan(Plan.team_site))
        b.store(I64(WAITS), frame.plan(Plan.team_role))
        # As at the end of a barrier region: all warps have run, and are at the site.
        b.store(I64(site), self._state.site)
        frame.set_warp(frame.slot(Slot.WARPS))
        frame.leave(Status.ENDED)

    def leave(self, first_block: Value) -> None:
        """Emits the end of a team that has run, if this block was not alone: the blocks that waited
        are to end before others begin."""
        b, frame = self.b, self.frame
        with b.if_then(b.icmp_unsigned("!=", first_block, I64(0))):
            b.store(I64(0), frame.plan(Plan.team_waiting))
            b.store(I64(1), frame.plan(Plan.team_ends))

    def for_each_warp(self, first_block: Value, body: Callable[[], None]) -> None:
        """Emits `body` for each warp of the team's blocks, from number `first_block` (`enter`) to
        this one; `body` reads nothing else of a block than contexts."""
        b, frame = self.b, self.frame
        head, inside, done = (self._state.append(f"team.{n}") for n in ("head", "body", "done"))
        warps = frame.slot(Slot.WARPS)
        before = b.block
        b.branch(head)
        b.position_at_end(head)
        number = b.phi(I64)
        number.add_incoming(first_block, before)
        b.cbranch(b.icmp_signed("<=", number, I64(0)), inside, done)
        b.position_at_end(inside)
        with frame.in_block_of(b.mul(number, warps)):
            frame.for_each_warp(I64(0), warps, body)
        number.add_incoming(b.add(number, I64(1)), b.block)
        b.branch(head)
        b.position_at_end(done)


def can_form_teams(program: Program, batched: BatchedLoop) -> bool:
    """Returns whether several blocks can run a loop in one call: it accesses global memory and
    parameters alone, and reads no special register that differs from block to block."""
    blocks = (program.blocks[index] for index in batched.loop.blocks)
    instructions = [program.instructions[i] for b in blocks for i in range(b.start, b.stop)]
    spaces = {space for instruction in instructions for space, _ in accesses(instruction)}
    return spaces <= {Space.GLOBAL, Space.PARAM} and all(
        SPECIAL_REGISTERS[name].varies is not Varies.BLOCK
        for name in special_registers(instructions)
    )
