"""Reports, for the race detector's tool `sync`, barriers that threads skip: they end without
executing them, though they execute the code after them.

A barrier does not wait for threads that have exited, so a launch with such a mistake ends. Threads
that exit before a barrier, as CUDA allows, do not execute the code after it
(`layout.PASSED_BY_ALL`).
"""

from __future__ import annotations

from typing import Any

from warploom.detector.layout import (
    B_BARRIER_LINE,
    B_INTERVAL,
    BLOCK_THREADS,
    K_SKIPPED,
    LOCKSTEP,
    ME_BLOCK,
    ME_INSTRUCTION,
    ME_THREAD,
    PASSED_BY_ALL,
    SITE_WORDS,
    SITES_AT,
    SLOT_WARPS,
    SYNC,
    TOOLS,
    V_ARRIVED,
    V_INTERVAL,
    WARP_WORDS,
    WARPS,
)
from warploom.detector.pool import report
from warploom.simt.lane_counts import first_lane, jitable


@jitable
def report_skips(state: Any, slot: int, block: int) -> None:
    """Reports the first thread of block number `block`, whose state is at index `slot`, that has
    not arrived at the barrier of all threads at which others have (`report_skip`); in lockstep a
    warp of which a lane has arrived counts whole. Nothing if none has arrived, all have, or without
    SYNC. Called when the next interval begins or the block has ended."""
    barrier = state[slot + B_BARRIER_LINE] - 1
    if barrier < 0 or state[TOOLS] & SYNC == 0:
        return
    for warp in range(state[WARPS]):
        at = slot + state[SLOT_WARPS] + warp * WARP_WORDS
        arrived = state[at + V_ARRIVED] if state[at + V_INTERVAL] == state[slot + B_INTERVAL] else 0
        count = min(state[BLOCK_THREADS] - (warp << 5), 32)
        missing = ((1 << count) - 1) & ~arrived
        if state[LOCKSTEP] and arrived:
            missing = 0  # a warp counts whole
        if missing:
            own = state[ME_BLOCK]
            state[ME_BLOCK] = block
            report_skip(state, barrier, (warp << 5) + first_lane(missing))
            state[ME_BLOCK] = own
            return


@jitable
def report_skip(state: Any, barrier: int, thread: int) -> None:
    """Reports (K_SKIPPED) that thread `thread` of block ME_BLOCK has skipped a barrier (`barrier`:
    its instruction), if all threads execute the code after that (PASSED_BY_ALL) and SYNC is on. The
    current instruction and thread are as before afterwards."""
    passed = state[state[SITES_AT] + barrier * SITE_WORDS] & PASSED_BY_ALL
    if state[TOOLS] & SYNC and passed:
        instruction, current = state[ME_INSTRUCTION], state[ME_THREAD]
        state[ME_INSTRUCTION], state[ME_THREAD] = barrier, thread
        # No other instruction or thread (-1), and no address, size or detail.
        report(state, K_SKIPPED, -1, -1, 0, 0, 0)
        state[ME_INSTRUCTION], state[ME_THREAD] = instruction, current
