"""All blocks of a launch: which warp has its turn, and what becomes of it.

The order is that of `rules.scheduling`, which the compiled engine follows too.
"""

from __future__ import annotations

import zlib

import numpy as np

from warploom.machine.deadlock import Waiting, deadlock_error, waiting_lanes
from warploom.machine.launch import Launch
from warploom.machine.reference import tensors
from warploom.machine.reference.state import (
    Block,
    Bytes,
    Run,
    Warp,
    new_block,
    new_cluster,
    new_warp,
)
from warploom.machine.reference.warp import run_turn
from warploom.rules import plan_words, scheduling
from warploom.rules.plan_words import Words
from warploom.rules.warp_table import table_words


def schedule_arrays(launch: Launch, plan: Words) -> tuple[Words, Words, Words]:
    """Return the block in each slot, and the state and the table of each warp in the slots."""
    slots: Words = np.full((int(plan[plan_words.SLOTS]),), plan_words.DONE, np.object_)
    warps = len(slots) * launch.warps_per_block
    states: Words = np.zeros((warps, plan_words.STATE_WORDS), np.object_)
    tables: Words = np.zeros((warps, table_words(launch.warp_size)), np.object_)
    return slots, states, tables


def run_blocks(run: Run) -> None:
    """Run every block to its end. Raises DeadlockError where none that is left ever can."""
    plan, warps = run.plan, run.launch.warps_per_block
    slots, states, tables = run.slots, run.states, run.tables
    resident: dict[int, list[Warp]] = {}
    clusters: dict[int, Bytes] = {}
    scheduling.start_blocks(plan, slots)
    while (number := scheduling.next_warp(plan, slots, states, tables)) >= 0:
        slot = int(plan[plan_words.SLOT])
        first = slot * warps
        if plan[plan_words.FRESH]:
            plan[plan_words.FRESH] = 0
            if slot in resident:
                tensors.retire(run, resident[slot][0].block)
            leader = slot - slot % run.launch.cluster_blocks
            if leader not in clusters:
                clusters[leader] = new_cluster(run)
            block = new_block(run, int(plan[plan_words.CURRENT_BLOCK]), clusters[leader])
            resident[slot] = [
                new_warp(block, i, states[first + i], tables[first + i]) for i in range(warps)
            ]
        warp = resident[slot][number]
        status = run_turn(warp)
        warp.state[plan_words.ISSUED] += warp.used
        scheduling.after_run(plan, warp.state, warp.splits.table, status, _digest(warp))
    for warps_of_block in resident.values():
        tensors.retire(run, warps_of_block[0].block)
    if number == plan_words.DEADLOCK:
        blocks = {slot: warps[0].block for slot, warps in resident.items() if slots[slot] >= 0}
        raise _deadlock(run, blocks, resident)


def _digest(warp: Warp) -> int:
    """A number for what a warp's registers hold; equal states have equal ones."""
    digest = 0
    for value in warp.registers.values():
        digest = zlib.crc32(value.tobytes(), digest)
    places = warp.interrupted.values()
    return zlib.crc32(repr(sorted(places)).encode(), digest) if places else digest


def _deadlock(run: Run, blocks: dict[int, Block], resident: dict[int, list[Warp]]) -> Exception:
    """The error, over every warp of the resident blocks that has not ended."""
    waiting: list[Waiting] = []
    for slot, block in blocks.items():
        for warp in resident[slot]:
            waiting += waiting_lanes(
                run.program, block.number, warp.number, warp.state, warp.splits.table
            )
    return deadlock_error(run.program, run.launch, waiting, _started(run))


def _started(run: Run) -> int:
    return int(run.plan[plan_words.NEXT_BLOCK])
