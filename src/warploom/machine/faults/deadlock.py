"""The error for threads that can never go on; the same for both machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.core.errors import DeadlockError, WaitingGroup
from warploom.machine.launch import Launch
from warploom.program.accesses import accesses
from warploom.program.program import Program, ProgramBlock
from warploom.simt.member_masks import synced_lanes
from warploom.simt.schedule_layout import (
    ARRIVALS,
    BARRIER,
    BARRIER_THREADS,
    BARRIER_WAIT,
    BARRIERS,
    CLUSTER_BARRIER,
    ENDED,
    INSTRUCTION,
    STATUS,
)
from warploom.simt.warp_table import (
    ARRIVED,
    AT_BARRIER,
    AT_SYNC,
    FREE,
    LANES,
    LIVE,
    MASK,
    NONE,
    PARKED,
    POINT,
    S_ARGUMENT,
    S_ARGUMENT_2,
    S_BLOCK,
    S_MASK,
    S_STATUS,
    S_VOTE,
    node_at,
    node_count,
    split_at,
)

Words = npt.NDArray[np.int64]
SPINS = "a value that no runnable thread can change"
LOOPS = "a loop that has no exit and reads no memory"
VERBS = {SPINS: "spin on", LOOPS: "run"}
END_LOOPS = "Look at the condition that ends the loop."
FIND_WAITS = (
    "Look for a __syncthreads() that some threads skip, a lock that lanes of one warp take and"
    " await, or a flag that nobody sets."
)
SHOWN = 12
"""Groups that a message lists; the error holds all."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Lanes of a warp that wait at an instruction, and for what.

    At a barrier, which one, and how many threads it awaits (0: all). With an instruction of NONE,
    `threads` have arrived there and do not wait.
    """

    block: int
    warp: int
    lanes: int
    instruction: int
    waits_for: str
    barrier: int = NONE
    threads: int = 0


def waiting_lanes(
    program: Program, block: int, warp: int, state: Words, table: Words
) -> Iterator[Waiting]:
    """Returns what the lanes of a warp wait for, by its row of the schedule and its table."""
    for barrier in range(BARRIERS):
        if state[ARRIVALS + barrier]:
            yield Waiting(block, warp, 0, NONE, "", barrier, int(state[ARRIVALS + barrier]))
    if state[STATUS] == ENDED:
        return
    if state[STATUS] == BARRIER_WAIT:
        awaited = int(state[BARRIER]), int(state[BARRIER_THREADS])
        at = int(state[INSTRUCTION])
        yield Waiting(block, warp, int(table[MASK]), at, _at_barrier(*awaited), *awaited)
        return
    for split in range(int(table[LANES])):
        if int(table[PARKED]) >> split & 1:
            yield _parked(program, block, warp, table, table[split_at(table, split) :])
    for node in range(node_count(int(table[LANES]))):
        at = node_at(node)
        if not int(table[FREE]) >> node & 1 and table[at + ARRIVED] and _inside(program, table, at):
            first = program.blocks[int(table[at + POINT])].start
            lanes = int(table[at + ARRIVED])
            yield Waiting(block, warp, lanes, first, "lanes that parted from them before")


def _inside(program: Program, table: Words, at: int) -> bool:
    return int(table[at + POINT]) < program.exit


def _parked(program: Program, block: int, warp: int, table: Words, split: Words) -> Waiting:
    status, lanes, at = int(split[S_STATUS]), int(split[S_MASK]), int(split[S_BLOCK])
    argument, argument_2 = int(split[S_ARGUMENT]), int(split[S_ARGUMENT_2])
    if status == AT_BARRIER:
        behind = program.blocks[at].start if at < program.exit else len(program.instructions)
        where = behind if split[S_VOTE] else behind - 1
        waits_for = _at_barrier(argument, argument_2)
        return Waiting(block, warp, lanes, where, waits_for, argument, argument_2)
    first = program.blocks[at].start
    if status == AT_SYNC:
        return Waiting(block, warp, lanes, first, _for_members(table, argument))
    return Waiting(block, warp, lanes, first, SPINS if _reads_in_loop(program, at) else LOOPS)


def _reads_in_loop(program: Program, start: int) -> bool:
    """Returns whether the loops through a block read anything that another thread could change."""
    return any(
        accesses(instruction) or instruction.operation.name in ("mbarrier", "call")
        for block in _loop(program, start)
        for instruction in program.instructions[block.start : block.stop]
    )


def _loop(program: Program, start: int) -> list[ProgramBlock]:
    """Return the blocks that lead to a block and to which it leads."""
    after = _closure({b.index: b.successors for b in program.blocks}, start)
    before: dict[int, list[int]] = {}
    for block in program.blocks:
        for successor in block.successors:
            before.setdefault(successor, []).append(block.index)
    both = after & _closure(before, start)
    return [program.blocks[index] for index in sorted(both | {start}) if index < program.exit]


def _closure(edges: Mapping[int, Sequence[int]], start: int) -> set[int]:
    """Return the nodes that can be reached over at least one edge."""
    reachable: set[int] = set()
    left = [*edges.get(start, ())]
    while left:
        node = left.pop()
        if node not in reachable:
            reachable.add(node)
            left += edges.get(node, ())
    return reachable


def _for_members(table: Words, members: int) -> str:
    """Return a member mask, and which of its lanes that have not exited have not come."""
    missing = members & int(table[LIVE]) & ~int(synced_lanes(table, members))
    return f"the lanes of member mask {members:#010x}, of which {_named(missing)} have not come"


def _at_barrier(barrier: int, threads: int) -> str:
    if barrier == CLUSTER_BARRIER:
        return "all threads of the cluster that have not exited at the barrier of the cluster"
    if barrier >= BARRIERS:
        return "the other warps of the warp group at wgmma.wait_group"
    who = f"{threads} threads" if threads else "all threads of the block that have not exited"
    return f"{who} at barrier {barrier}"


def deadlock_error(
    program: Program, launch: Launch, waiting: Sequence[Waiting], started: int
) -> DeadlockError:
    """Return the error to raise, where `waiting` are all that is left of the blocks that
    started."""
    groups = tuple(
        WaitingGroup(
            launch.block_index(w.block),
            w.warp,
            _members(w.lanes),
            program.line(w.instruction),
            w.waits_for,
        )
        for w in waiting
        if w.instruction != NONE
    )
    lines = [
        f"    block {g.block}, warp {g.warp}, {_lanes(g.lanes)} at {g.line}:"
        f" {VERBS.get(g.waits_for, 'wait for')} {g.waits_for}"
        for g in groups[:SHOWN]
    ]
    if len(groups) > SHOWN:
        lines.append(f"    and {len(groups) - SHOWN} more groups")
    lines += _missing(launch, waiting)
    if started < launch.blocks:
        lines.append(
            f"    {launch.blocks - started} blocks have not started: they begin only where others"
            f" end, so nobody may wait for them without a cooperative launch"
        )
    text = "\n".join(lines)
    endless = bool(groups) and all(group.waits_for == LOOPS for group in groups)
    title, advice = ("endless loop", END_LOOPS) if endless else ("deadlock", FIND_WAITS)
    return DeadlockError(
        f"{title} in kernel {program.title}: no thread that is left can ever go on\n{text}\n"
        f"    {advice}",
        groups,
    )


def _missing(launch: Launch, waiting: Sequence[Waiting]) -> Iterator[str]:
    """Return, of each barrier that somebody waits at: who has come, and who of the others is
    left."""
    places = dict.fromkeys(
        (w.block, w.barrier) for w in waiting if NONE != w.barrier < BARRIERS and w.lanes
    )
    for block, barrier in list(places)[:SHOWN]:
        own = [w for w in waiting if w.block == block]
        here = [w for w in own if w.barrier == barrier]
        came = sum(w.lanes.bit_count() if w.lanes else w.threads for w in here)
        awaited = max(w.threads for w in here if w.lanes)
        others = [
            f"warp {w.warp} {_named(w.lanes)}" for w in own if w.lanes and w.barrier != barrier
        ]
        missing = ", ".join(others[:SHOWN]) or "nobody who could come"
        yield (
            f"    barrier {barrier} of block {launch.block_index(block)}: {came} of"
            f" {awaited or 'all'} threads have come; of the others there is {missing}"
        )


def _named(mask: int) -> str:
    return _lanes(_members(mask))


def _members(mask: int) -> tuple[int, ...]:
    return tuple(lane for lane in range(mask.bit_length()) if mask >> lane & 1)


def _lanes(lanes: tuple[int, ...]) -> str:
    if len(lanes) > 1 and lanes == tuple(range(lanes[0], lanes[-1] + 1)):
        return f"lanes {lanes[0]} to {lanes[-1]}"
    return "lane" + ("s " if len(lanes) > 1 else " ") + ", ".join(map(str, lanes))
