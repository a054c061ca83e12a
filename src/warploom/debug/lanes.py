"""Finds where the lanes of a warp are between two steps, and why some do not run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from warploom.machine.faults.deadlock import waiting_lanes
from warploom.machine.lanes_off import nodes_in_use, parked_records
from warploom.machine.reference.state import Warp
from warploom.program.program import Program
from warploom.simt import schedule_layout
from warploom.simt.warp_table import AT_BARRIER, AT_SYNC, NONE, READY, Split

RETURNED = "has returned; waits for the other lanes"
"""Lanes at the return that all of a kernel's threads share."""

ACTIVE, READY_TO_RUN, OTHER_PATH = "active", "ready", "on another path"
GATHERING, SYNCING, BARRIER, EXITED = (
    "waits to reconverge",
    "waits for lanes",
    "at barrier",
    "exited",
)


@dataclass(frozen=True)
class Group:
    """Lanes of a warp, as a mask, that are at one instruction (None: after the end), and why."""

    lanes: int
    instruction: int | None
    status: str


def groups_of(program: Program, warp: Warp, *, has_turn: bool) -> tuple[Group, ...]:
    """Returns the lanes of a warp in groups, those that run first. `has_turn` says that the warp
    executes the next instruction of the launch."""
    found = [group for group in _groups(program, warp, has_turn=has_turn) if group.lanes]
    exited = warp.existing & ~warp.splits.live
    if exited:
        found.append(Group(exited, None, EXITED))
    return tuple(found)


def _groups(program: Program, warp: Warp, *, has_turn: bool) -> Iterator[Group]:
    state, table = warp.state, warp.splits.table
    status, live = state.status, table.live
    if status == schedule_layout.ENDED and not has_turn:
        return
    if has_turn:
        yield Group(table.mask, warp.next, ACTIVE)
    elif status == schedule_layout.BARRIER_WAIT:
        lanes = table.mask & live
        yield Group(lanes, state.instruction, BARRIER)
    elif state.resume != schedule_layout.FROM_TABLE:
        fresh = state.resume == 0
        at = 0 if fresh else table.block
        interrupted = warp.interrupted.get(table.mask)
        here = _first(program, at) if interrupted is None else interrupted
        yield Group(live, here, READY_TO_RUN)
    for split in parked_records(table):
        parked = _parked(program, split)
        at = warp.interrupted.get(parked.lanes, parked.instruction)
        yield replace(parked, instruction=at)
    for node in nodes_in_use(table):
        status = RETURNED if node.point in program.exit_blocks else GATHERING
        yield Group(node.arrived & live, _first(program, node.point), status)
        if node.other_mask:
            yield Group(node.other_mask, _first(program, node.other_block), OTHER_PATH)


def _parked(program: Program, split: Split) -> Group:
    """Returns the lanes of a pending split, which waits for its turn, a `__syncwarp` or a
    barrier."""
    at = _first(program, split.block)
    group_status = {READY: READY_TO_RUN, AT_SYNC: SYNCING, AT_BARRIER: BARRIER}[split.status]
    if split.status == AT_BARRIER and at is not None and at > 0:
        at -= 1
    return Group(split.mask, at, group_status)


def _first(program: Program, block: int) -> int | None:
    """Returns the first instruction of a basic block, None for the end."""
    return program.blocks[block].start if NONE < block < program.exit else None


def waits_for(program: Program, warp: Warp) -> dict[int, str]:
    """Returns what lanes of a warp wait for, by their masks, as messages about deadlocks say it."""
    found = waiting_lanes(program, warp.block.number, warp.number, warp.state, warp.splits.table)
    return {each.lanes: each.waits_for for each in found if each.lanes}
