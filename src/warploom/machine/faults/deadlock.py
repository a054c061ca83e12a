"""Builds the error for a launch in which no thread can make progress; both machines use it.

The machines find a deadlock when every resident warp waits; here each group of lanes is reported
with what it waits for: a barrier, the lanes of a member mask, the reconvergence of diverged lanes,
or a value in memory that it polls. A warp in a loop that reads nothing which another thread could
write is an endless loop instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.core.errors import DeadlockError, WaitingGroup
from warploom.isa.kinds import OpKind
from warploom.machine.lanes_off import nodes_in_use, parked_records
from warploom.machine.launch import Launch
from warploom.program.accesses import accesses
from warploom.program.cfg import ProgramBlock
from warploom.program.program import Program
from warploom.simt.member_masks import synced_lanes
from warploom.simt.schedule_layout import (
    BARRIER_WAIT,
    BARRIERS,
    CLUSTER_BARRIER,
    ENDED,
    REGISTER_WAIT,
    WarpState,
)
from warploom.simt.warp_table import AT_BARRIER, AT_SYNC, NONE, Split, WarpTable

Words = npt.NDArray[np.int64]
SPINS = "a value that no runnable thread can change"
LOOPS = "a loop that has no exit and reads no memory"
VERBS = {SPINS: "spin on", LOOPS: "run"}
"""The verb for what lanes do that do not wait for other threads."""
END_LOOPS = "Check the condition that ends the loop."
FIND_WAITS = (
    "Look for a __syncthreads() that some threads skip, a lock that one lane of a warp holds "
    "while another lane waits for it, or a flag that no thread sets."
)
SHOWN = 12
"""The most groups that a message lists; the error object holds all of them."""


@dataclass(frozen=True, slots=True)
class WaitingLanes:
    """Lanes of a warp that wait at an instruction, and what they wait for.

    `lanes` is a mask, `waits_for` a text for the message. At a barrier, `barrier` is its number and
    `threads` the number of threads that it awaits (0: all). An `instruction` of NONE records that
    `threads` threads have arrived at the barrier without waiting.
    """

    block: int
    warp: int
    lanes: int
    instruction: int
    waits_for: str
    barrier: int = NONE
    threads: int = 0


def waiting_lanes(
    program: Program, block: int, warp: int, state: WarpState, table: WarpTable
) -> Iterator[WaitingLanes]:
    """Yields what the lanes of a warp wait for, from its scheduler state and its state table. For a
    warp that waits as a whole at a barrier, it is that; for others, each split (diverged lanes with
    one program counter) that is parked, and the lanes that wait at each reconvergence point but the
    exit. First yields, for each barrier, the threads that have arrived without waiting; only these
    if the warp has ended."""
    for barrier in range(BARRIERS):
        if state.arrivals[barrier]:
            yield WaitingLanes(block, warp, 0, NONE, "", barrier, int(state.arrivals[barrier]))
    if state.status == ENDED:
        return
    # The warp waits as a whole, so its splits wait for nothing else.
    if state.status == BARRIER_WAIT:
        awaited = state.barrier, state.barrier_threads
        offset = state.instruction
        yield WaitingLanes(block, warp, table.mask, offset, _awaited_at_barrier(*awaited), *awaited)
        return
    for split in parked_records(table):
        yield _parked_lanes(program, block, warp, table, split)
    for node in nodes_in_use(table):
        # Lanes that wait at the exit block have ended.
        if node.arrived and node.point < program.exit:
            start = program.blocks[node.point].start
            missing = _mask_text(node.expected & table.live & ~node.arrived)
            reconvergence = f"reconvergence with {missing}"
            yield WaitingLanes(block, warp, node.arrived, start, reconvergence)


def _parked_lanes(
    program: Program, block: int, warp: int, table: WarpTable, split: Split
) -> WaitingLanes:
    """Returns the lanes of a parked split, whose record in the state table begins `split`, with
    what they wait for and the instruction at which they wait. That is a barrier, with its number
    and the number of threads that it awaits. Otherwise they wait at the first instruction of the
    block where they resume: for the lanes of a member mask, or for a value in memory that their
    loop polls (SPINS); LOOPS if the loop reads nothing."""
    status, lanes, start = split.status, split.mask, split.block
    if status == AT_BARRIER:
        # For a split at a barrier, these words hold its number and the threads that it awaits.
        barrier, threads = split.argument, split.argument_2
        # A barrier ends its basic block, so the split resumes in the next one. A barrier with a
        # vote is instead the first instruction of the block where the split resumes.
        end = program.blocks[start].start if start < program.exit else len(program.instructions)
        position = end if split.vote else end - 1
        waits_for = _awaited_at_barrier(barrier, threads)
        return WaitingLanes(block, warp, lanes, position, waits_for, barrier, threads)
    first_index = program.blocks[start].start
    if status == AT_SYNC:
        members = split.argument
        return WaitingLanes(block, warp, lanes, first_index, _awaited_members(table, members))
    return WaitingLanes(
        block, warp, lanes, first_index, SPINS if _reads_in_loop(program, start) else LOOPS
    )


def _reads_in_loop(program: Program, start: int) -> bool:
    """Returns true if a basic block on a loop with block `start` accesses memory, or has a
    call: it may poll what another thread could write."""
    return any(
        accesses(instruction) or instruction.operation.kind is OpKind.CALL
        for basic_block in _loop(program, start)
        for instruction in program.instructions[basic_block.start : basic_block.stop]
    )


def _loop(program: Program, start: int) -> list[ProgramBlock]:
    """Returns, in the program's order, the basic blocks that are on a cycle with basic block
    `start`, and that block; never the exit block."""
    # A basic block is on a cycle with `start` if each can be reached from the other.
    after = _reachable({b.index: b.successors for b in program.blocks}, start)
    before: dict[int, list[int]] = {}
    for basic_block in program.blocks:
        for successor in basic_block.successors:
            before.setdefault(successor, []).append(basic_block.index)
    both = after & _reachable(before, start)
    return [program.blocks[index] for index in sorted(both | {start}) if index < program.exit]


def _reachable(edges: Mapping[int, Sequence[int]], start: int) -> set[int]:
    """Returns the nodes that are reachable from `start` over at least one edge."""
    reachable: set[int] = set()
    worklist = [*edges.get(start, ())]
    while worklist:
        node = worklist.pop()
        if node not in reachable:
            reachable.add(node)
            worklist += edges.get(node, ())
    return reachable


def _awaited_members(table: WarpTable, members: int) -> str:
    """Returns the text that names a member mask and those of its live lanes that have not
    arrived."""
    missing = members & table.live & ~synced_lanes(table, members)
    return (
        f"the lanes in member mask {members:#010x}, of which {_mask_text(missing)} have not arrived"
    )


def _awaited_at_barrier(barrier: int, threads: int) -> str:
    """Returns the text for what lanes await at a barrier: `threads` threads of the block (0: all);
    all threads of the cluster for the number CLUSTER_BARRIER, registers for REGISTER_WAIT, or the
    other warps of the warp group for other numbers from BARRIERS on."""
    if barrier == REGISTER_WAIT:
        return f"{threads} registers per thread, which other warps have not released"
    if barrier == CLUSTER_BARRIER:
        return "all remaining threads of the cluster (cluster barrier)"
    if barrier >= BARRIERS:
        return "the other warps of the warpgroup (wgmma.wait_group)"
    awaited = f"{threads} threads" if threads else "all remaining threads of the block"
    return f"{awaited} at barrier {barrier}"


def deadlock_error(
    program: Program, launch: Launch, waiting: Sequence[WaitingLanes], started: int
) -> DeadlockError:
    """Returns the error to raise: titled "endless loop" if all lanes are in loops that read no
    memory, else "deadlock". It lists up to SHOWN groups of lanes, then the barriers, then how many
    blocks have not started. `waiting` are all lanes that are left of the thread blocks that have
    started, `started` the number of these blocks."""
    groups = tuple(
        WaitingGroup(
            launch.block_index(w.block),
            w.warp,
            _lanes_of(w.lanes),
            program.line(w.instruction),
            w.waits_for,
        )
        for w in waiting
        if w.instruction != NONE
    )
    lines = [
        f"    block {g.block}, warp {g.warp}, {_lanes_text(g.lanes)} at {g.line}:"
        f" {VERBS.get(g.waits_for, 'wait for')} {g.waits_for}"
        for g in groups[:SHOWN]
    ]
    if len(groups) > SHOWN:
        lines.append(f"    and {len(groups) - SHOWN} more groups")
    lines += _barrier_lines(launch, waiting)
    if left := launch.blocks - started:
        lines.append(
            f"    {left} {'block has' if left == 1 else 'blocks have'} not started: another block "
            "starts only when a running block ends. A kernel whose blocks wait for each other "
            "requires a cooperative launch"
        )
    if queued := launch.cancellation.queued_after:
        lines.append(
            f"    launches queued behind it in its stream: {queued}. A kernel can wait for a "
            "launch in another stream, which may run concurrently, but not for a later launch in "
            "its own stream"
        )
    if crowded_out := launch.cancellation.crowded_out:
        lines.append(
            f"    launches that do not fit on the device together with the blocks of this launch: "
            f"{crowded_out}. A kernel can wait for another kernel only if the device can hold "
            "blocks of both kernels at once: launch fewer blocks"
        )
    text = "\n".join(lines)
    # Only loops that cannot end at all; one lane that waits for something makes it a deadlock.
    endless = bool(groups) and all(group.waits_for == LOOPS for group in groups)
    title, advice = ("endless loop", END_LOOPS) if endless else ("deadlock", FIND_WAITS)
    if any(lanes.barrier == REGISTER_WAIT for lanes in waiting):
        advice = _register_advice(launch)
    return DeadlockError(
        f"{title} in kernel {program.title}: no remaining thread can make progress\n{text}\n"
        f"    {advice}",
        groups,
    )


def _register_advice(launch: Launch) -> str:
    """Returns what to do about warps that wait for registers."""
    return (
        'PTX ISA, "setmaxnreg": a warp waits until other warps have released enough registers. The '
        f"block was launched with {launch.registers} registers for each thread of its "
        f"{launch.warps_per_block} warps: request fewer registers in one warpgroup, or release "
        "more in another."
    )


def _barrier_lines(launch: Launch, waiting: Sequence[WaitingLanes]) -> Iterator[str]:
    """Yields a line of the message for each named barrier of a block at which lanes wait (at most
    SHOWN lines): how many threads have arrived, waiting or not, and which lanes of the block are
    elsewhere."""
    barriers = dict.fromkeys(
        (w.block, w.barrier) for w in waiting if NONE != w.barrier < BARRIERS and w.lanes
    )
    for block, barrier in list(barriers)[:SHOWN]:
        in_block = [w for w in waiting if w.block == block]
        at_barrier = [w for w in in_block if w.barrier == barrier]
        arrived = sum(w.lanes.bit_count() if w.lanes else w.threads for w in at_barrier)
        awaited = max(w.threads for w in at_barrier if w.lanes)
        absent = [
            f"warp {w.warp} {_mask_text(w.lanes)}"
            for w in in_block
            if w.lanes and w.barrier != barrier
        ]
        missing = ", ".join(absent[:SHOWN]) or "none of the remaining threads"
        yield (
            f"    barrier {barrier} of block {launch.block_index(block)}: {arrived} of "
            f"{awaited or 'all'} threads have arrived; not at the barrier: {missing}"
        )


def _mask_text(mask: int) -> str:
    """Returns a text that lists the lanes of a mask (`_lanes_text`)."""
    return _lanes_text(_lanes_of(mask))


def _lanes_of(mask: int) -> tuple[int, ...]:
    """Returns the numbers of the lanes in a mask, in rising order."""
    return tuple(lane for lane in range(mask.bit_length()) if mask >> lane & 1)


def _lanes_text(lanes: tuple[int, ...]) -> str:
    """Returns a text that lists lanes: "lanes 0 to 7", "lane 3", "lanes 1, 4"."""
    if len(lanes) > 1 and lanes == tuple(range(lanes[0], lanes[-1] + 1)):
        return f"lanes {lanes[0]} to {lanes[-1]}"
    return "lane" + ("s " if len(lanes) > 1 else " ") + ", ".join(map(str, lanes))
