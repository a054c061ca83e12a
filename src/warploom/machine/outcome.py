"""What a launch of compiled code left behind: its counts, or the error that ended it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warploom.codegen.environment import FULL, KINDS_AT, KINDS_SEEN, ROW_WIDTH, Slot, Status
from warploom.codegen.places import SPACE_CODES
from warploom.core.errors import Allocation
from warploom.machine.common import STARTS, common_cost, kind_cost
from warploom.machine.deadlock import deadlock_error, waiting_lanes
from warploom.machine.faults import Fault, FaultKind, fault_error, limit_error
from warploom.machine.launch import shared_bytes
from warploom.machine.outfit import Bytes, Outfit
from warploom.machine.tally import Tally
from warploom.machine.work import Work
from warploom.ptx.ir import Space
from warploom.rules.fields import RECORD_WIDTH
from warploom.rules.patterns import (
    PATTERN_WIDTH,
    PATTERNS_AT,
    REPEATS,
    SLOTS,
    settle_pattern,
)
from warploom.rules.rows import KINDS

NO_ADDRESSES = np.zeros(32, np.uint64)


@dataclass(frozen=True)
class Counted:
    """What is left of a work for its tally: what the code counted, `counts` and behind it the rows.
    Only one tally can be made."""

    outfit: Outfit
    launched_warps: int
    counts: Bytes

    @classmethod
    def of(cls, work: Work) -> Counted:
        launched = work.launch.blocks * work.launch.warps_per_block
        return cls(work.outfit, launched, work.room.counted.copy())


def check_limit(tally: Tally, work: Work) -> None:
    """Raise InstructionLimit where the last instructions of a launch passed its limit."""
    limit = work.launch.max_instructions
    if limit is not None and tally.warps.sum() > limit:
        raise error_of(work, Status.LIMIT)


def tally_of(work: Counted) -> Tally:
    """The counts, instruction by instruction."""
    layout = work.outfit.kernel.layout
    program = layout.program
    words = work.counts.view(np.int64)
    counts, rest = np.split(words, [(work.outfit.rows_at - work.outfit.counts_at) // 8])
    rows = rest[: len(rest) // ROW_WIDTH * ROW_WIDTH].reshape(-1, ROW_WIDTH)
    tally = Tally.empty(program, work.launched_warps)
    for block in program.blocks:
        inside = slice(block.start, block.stop)
        tally.warps[inside], tally.threads[inside] = counts[2 * block.index : 2 * block.index + 2]
    hidden = [*program.hidden]
    tally.warps[hidden] = tally.threads[hidden] = 0
    tally.threads_on[:] = tally.threads
    for instruction, at in layout.guarded.items():
        if instruction not in program.hidden:
            tally.threads_on[instruction] = counts[at]
    for instruction, at in layout.branches.items():
        tally.divergent[instruction], tally.reconvergences[instruction] = counts[at : at + 2]
    for instruction, at in layout.members.items():
        tally.exited_members[instruction] = counts[at]
    for number, row in enumerate(layout.rows):
        for slot in range(SLOTS):
            if rows[number, PATTERNS_AT + slot * PATTERN_WIDTH + REPEATS]:
                settle_pattern(NO_ADDRESSES, 0, slot, rows[number])
        tally.records[number] = rows[number, :RECORD_WIDTH]
        for start, times in zip(STARTS, rows[number, FULL:KINDS_SEEN].tolist(), strict=True):
            if times:
                cost = common_cost(program, row, layout.rules, start)
                tally.accesses[number] += times * cost
        for kind, times in enumerate(rows[number, KINDS_AT : KINDS_AT + KINDS].tolist()):
            if times:
                tally.accesses[number] += times * kind_cost(program, row, layout.rules, kind)
    return tally


def error_of(work: Work, status: Status) -> BaseException:
    """What to raise for a run that did not end."""
    if work.desk.error is not None:
        return work.desk.error
    if status is Status.FAULT:
        return _fault(work)
    if status is Status.DEADLOCK:
        return _deadlock(work)
    return limit_error(work.kernel.program, work.launch)


def _fault(work: Work) -> Exception:
    at = {slot: int(work.environment[slot]) for slot in Slot}
    space = {code: space for space, code in SPACE_CODES.items()}[at[Slot.FAULT_SPACE]]
    fault = Fault(
        FaultKind(at[Slot.FAULT_KIND]),
        at[Slot.FAULT_INSTRUCTION],
        at[Slot.BLOCK],
        at[Slot.FAULT_WARP],
        at[Slot.FAULT_LANE],
        at[Slot.FAULT_ADDRESS],
        at[Slot.FAULT_SIZE],
        space,
    )
    nearest = _own(work, space) or work.memory.nearest(fault.address)
    return fault_error(fault, work.kernel.program, work.launch, nearest)


def _own(work: Work, space: Space) -> Allocation | None:
    """The stretch that a space is, where it is the block's or the thread's own."""
    program = work.kernel.program
    shared = shared_bytes(program, work.launch)
    return {
        Space.SHARED: Allocation(0, shared, "the block's shared memory"),
        Space.LOCAL: Allocation(0, program.local_bytes, "the thread's local memory"),
        Space.PARAM: Allocation(0, program.parameter_bytes, "the kernel's parameters"),
    }.get(space)


def _deadlock(work: Work) -> Exception:
    """Everything that waits in the resident blocks."""
    program, warps = work.kernel.program, work.launch.warps_per_block
    waiting = [
        found
        for slot, block in enumerate(work.slots.tolist())
        if block >= 0
        for warp in range(warps)
        for found in waiting_lanes(
            program,
            block,
            warp,
            work.states[slot * warps + warp],
            work.tables[slot * warps + warp],
        )
    ]
    return deadlock_error(program, work.launch, waiting, work.started)
