"""Reports, for the race detector's tool `sync`, barriers that threads skip: they end without
executing them, though they execute the code after them.

A barrier does not wait for threads that have exited, so a launch with such a mistake ends. Threads
that exit before a barrier, as CUDA allows, do not execute the code after it
(`layout.PASSED_BY_ALL`).
"""

from __future__ import annotations

from warploom.detector.layout import K_SKIPPED, PASSED_BY_ALL, SYNC
from warploom.detector.pool import report
from warploom.detector.records import DetectorState, InstructionSite, ResidentBlock, WarpKnowledge
from warploom.simt.lane_counts import first_lane, jitable


@jitable
def report_skips(state: DetectorState, slot: ResidentBlock, block: int) -> None:
    """Reports the first thread of block number `block`, whose state is `slot`, that has
    not arrived at the barrier of all threads at which others have (`report_skip`); in lockstep a
    warp of which a lane has arrived counts whole. Nothing if none has arrived, all have, or without
    SYNC. Called when the next interval begins or the block has ended."""
    barrier = slot.barrier_line - 1
    if barrier < 0 or state.tools & SYNC == 0:
        return
    for warp in range(state.warps):
        own_warp = WarpKnowledge(state, slot.at + state.slot_warps, warp)
        arrived = own_warp.arrived if own_warp.interval == slot.interval else 0
        count = min(state.block_threads - (warp << 5), 32)
        missing = ((1 << count) - 1) & ~arrived
        if state.lockstep and arrived:
            missing = 0  # a warp counts whole
        if missing:
            own = state.current_block
            state.current_block = block
            report_skip(state, barrier, (warp << 5) + first_lane(missing))
            state.current_block = own
            return


@jitable
def report_skip(state: DetectorState, barrier: int, thread: int) -> None:
    """Reports (K_SKIPPED) that thread `thread` of block `current_block` has skipped a barrier
    (`barrier`: its instruction), if all threads execute the code after that (PASSED_BY_ALL) and
    SYNC is on. The current instruction and thread are as before afterwards."""
    passed = state.words[state.sites_at + barrier * InstructionSite.WORDS] & PASSED_BY_ALL
    if state.tools & SYNC and passed:
        instruction, current = state.current_instruction, state.current_thread
        state.current_instruction, state.current_thread = barrier, thread
        # No other instruction or thread (-1), and no address, size or detail.
        report(state, K_SKIPPED, -1, -1, 0, 0, 0)
        state.current_instruction, state.current_thread = instruction, current
