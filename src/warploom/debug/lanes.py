"""Finds where the lanes of a warp are between two steps, and why some do not run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from warploom.machine.faults.deadlock import waiting_lanes
from warploom.machine.reference.state import Warp
from warploom.program.program import Program
from warploom.simt import schedule_layout
from warploom.simt.warp_table import (
    ARRIVED,
    AT_BARRIER,
    AT_SYNC,
    BLOCK,
    FREE,
    LANES,
    LIVE,
    MASK,
    NONE,
    OTHER_BLOCK,
    OTHER_MASK,
    PARKED,
    POINT,
    READY,
    S_BLOCK,
    S_MASK,
    S_STATUS,
    node_at,
    node_count,
    split_at,
)

ACTIVE, READY_TO_RUN, OTHER_PATH = "active", "ready", "on another path"
GATHERING, SYNCING, BARRIER, EXITED = (
    "waits to reconverge",
    "waits for lanes",
    "at barrier",
    "exited",
)


@dataclass(frozen=True)
class Group:
    """Lanes of a warp, as a mask, that are at one instruction (None: behind the end), and why."""

    lanes: int
    instruction: int | None
    status: str


def groups_of(program: Program, warp: Warp, *, has_turn: bool) -> tuple[Group, ...]:
    """Return the lanes of a warp in groups, those that run first. `has_turn` says that the warp
    executes the next instruction of the launch."""
    found = [group for group in _groups(program, warp, has_turn=has_turn) if group.lanes]
    exited = warp.existing & ~warp.splits.live
    if exited:
        found.append(Group(exited, None, EXITED))
    return tuple(found)


def _groups(program: Program, warp: Warp, *, has_turn: bool) -> Iterator[Group]:
    state, table = warp.state, warp.splits.table
    status, live = state[schedule_layout.STATUS], int(table[LIVE])
    if status == schedule_layout.ENDED and not has_turn:
        return
    if has_turn:
        yield Group(int(table[MASK]), warp.next, ACTIVE)
    elif status == schedule_layout.BARRIER_WAIT:
        lanes = int(table[MASK]) & live
        yield Group(lanes, int(state[schedule_layout.INSTRUCTION]), BARRIER)
    elif state[schedule_layout.RESUME] != schedule_layout.FROM_TABLE:
        fresh = state[schedule_layout.RESUME] == 0
        at = 0 if fresh else int(table[BLOCK])
        interrupted = warp.interrupted.get(int(table[MASK]))
        here = _first(program, at) if interrupted is None else interrupted
        yield Group(live, here, READY_TO_RUN)
    for split in range(int(table[LANES])):
        if int(table[PARKED]) >> split & 1:
            row = table[split_at(table, split) :]
            parked = _parked(program, row)
            at = warp.interrupted.get(parked.lanes, parked.instruction)
            yield replace(parked, instruction=at)
    for node in range(node_count(int(table[LANES]))):
        if not int(table[FREE]) >> node & 1:
            row = table[node_at(node) :]
            yield Group(int(row[ARRIVED]) & live, _first(program, int(row[POINT])), GATHERING)
            if row[OTHER_MASK]:
                start = _first(program, int(row[OTHER_BLOCK]))
                yield Group(int(row[OTHER_MASK]), start, OTHER_PATH)


def _parked(program: Program, row: schedule_layout.Words) -> Group:
    """Return the lanes of a pending split, which waits for its turn, a `__syncwarp` or a
    barrier."""
    status = int(row[S_STATUS])
    at = _first(program, int(row[S_BLOCK]))
    group_status = {READY: READY_TO_RUN, AT_SYNC: SYNCING, AT_BARRIER: BARRIER}[status]
    if status == AT_BARRIER and at is not None and at > 0:
        at -= 1
    return Group(int(row[S_MASK]), at, group_status)


def _first(program: Program, block: int) -> int | None:
    """Return the first instruction of a basic block, None for the end."""
    return program.blocks[block].start if NONE < block < program.exit else None


def waits_for(program: Program, warp: Warp) -> dict[int, str]:
    """Return what lanes of a warp wait for, by their masks, as messages about deadlocks say it."""
    found = waiting_lanes(program, warp.block.number, warp.number, warp.state, warp.splits.table)
    return {each.lanes: each.waits_for for each in found if each.lanes}
