"""Runs the SMs of the timing model for one quantum, and then serves the requests that they have
sent to the memory system.

These are the functions that `timing.replay` calls as machine code: `run_sms`, which workers run in
parallel for different SMs, and `serve_all` after it; `run_quanta` does both for several quanta of a
few SMs. An SM skips cycles in which nothing can change: `run_cycle` returns the next cycle that has
to be run.
"""

from __future__ import annotations

from warploom.simt.host_prefetch import prefetch
from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.answers import receive_answers
from warploom.timing.engine.bulk import serve_copies
from warploom.timing.engine.flow import account_residency, launch_reserved, release_polling_warps
from warploom.timing.engine.levels import serve_requests
from warploom.timing.engine.loads import serve_queue
from warploom.timing.engine.machine import EngineArrays, Words, offset_array
from warploom.timing.engine.phases import receive_messages
from warploom.timing.engine.schedulers import step_scheduler
from warploom.timing.engine.waits import charge_scheduler, charge_warp
from warploom.timing.records import (
    EngineParameters,
    MemoryRequest,
    MemorySystem,
    SchedulerState,
    SmState,
    WarpSlot,
)

MOST_FETCHED = 6144
"""Words of an SM's state to prefetch at most: code can have many registers."""


def run_sms(
    params: Words,
    ops: Words,
    registers: Words,
    blocks: Words,
    streams: Words,
    entries: Words,
    accesses: Words,
    patterns: Words,
    lines: Words,
    warps: Words,
    totals: Words,
    sms: Words,
    chosen: Words,
    count: int,
    stop: int,
    ends: int,
) -> int:
    """Runs the first `count` SMs whose numbers are in `chosen` up to the cycle `stop` (`run_sm`);
    `sms` are the states of all SMs, the arrays before are those of `EngineArrays`, `totals` the
    worker's own. If `ends` is not 0, runs nothing but charges all cycles before `stop` to states
    and stall reasons (`finish_sm`). Returns 0."""
    parameters = EngineParameters(params, 0)
    arrays = EngineArrays(
        parameters,
        ops,
        registers,
        blocks,
        streams,
        entries,
        accesses,
        patterns,
        lines,
        warps,
        totals,
    )
    for index in range(count):
        sm = SmState(offset_array(sms, chosen[index] * parameters.sm_words), 0)
        if index + 1 < count:
            after = offset_array(sms, chosen[index + 1] * parameters.sm_words)
            fetch_sm(parameters, SmState(after, 0))
        if ends:
            finish_sm(arrays, sm, stop)
        else:
            run_sm(arrays, sm, stop)
    return 0


def run_quanta(
    params: Words,
    ops: Words,
    registers: Words,
    blocks: Words,
    streams: Words,
    entries: Words,
    accesses: Words,
    patterns: Words,
    lines: Words,
    warps: Words,
    totals: Words,
    sms: Words,
    chosen: Words,
    memory: Words,
    count: int,
    now: int,
    quantum: int,
    most: int,
) -> int:
    """Runs one quantum after the other from the cycle `now` on, `quantum` cycles each, at most
    `most` (at least one): the first `count` SMs whose numbers are in `chosen`, and then their
    requests, as `run_sms` and `serve_all` do. Returns how many it ran. Stops early where the caller
    may have something to do between two quanta (`is_undisturbed`)."""
    parameters, system = EngineParameters(params, 0), MemorySystem(memory, 0)
    arrays = EngineArrays(
        parameters,
        ops,
        registers,
        blocks,
        streams,
        entries,
        accesses,
        patterns,
        lines,
        warps,
        totals,
    )
    done, number = blocks_done(parameters, sms, chosen, count), 0
    while number < most:
        stop = now + quantum
        for index in range(count):
            run_sm(arrays, SmState(offset_array(sms, chosen[index] * parameters.sm_words), 0), stop)
        # Requests can be one cycle older than the quantum (`start` in `engine.loads`).
        serve_requests(parameters, sms, system, now - 1, stop)
        now = stop
        number += 1
        if blocks_done(parameters, sms, chosen, count) != done:
            break
        if not is_undisturbed(parameters, sms, chosen, count):
            break
    return number


@jitable
def blocks_done(params: EngineParameters, sms: Words, chosen: Words, count: int) -> int:
    """Returns how many blocks have ended on the first `count` SMs of `chosen`."""
    done = 0
    for index in range(count):
        done += SmState(sms, chosen[index] * params.sm_words).blocks_done
    return done


@jitable
def is_undisturbed(params: EngineParameters, sms: Words, chosen: Words, count: int) -> bool:
    """Returns whether each of the first `count` SMs of `chosen` has blocks or requests, and none
    has warps that poll memory, which the caller releases once all others wait."""
    for index in range(count):
        sm = SmState(sms, chosen[index] * params.sm_words)
        if sm.polling_warps > 0 or (sm.live_blocks == 0 and sm.request_count == 0):
            return False
    return True


@jitable
def fetch_sm(params: EngineParameters, sm: SmState) -> None:
    """Prefetches the state of the SM that runs next into the host's caches: its warps, schedulers
    and registers, and the answers to its requests."""
    # The states of all SMs together are larger than the host's nearest caches.
    for word in range(0, min(params.at_mshrs, MOST_FETCHED), w.LINE):
        prefetch(sm.words, word)
    first = params.at_requests
    for word in range(first, first + sm.request_count * MemoryRequest.WORDS, w.LINE):
        prefetch(sm.words, word)


@jitable
def run_sm(arrays: EngineArrays, sm: SmState, stop: int) -> None:
    """Runs an SM up to the cycle `stop`. First applies answers of the memory system and messages
    since the last quantum, and releases polling warps if `polling_done` is set. Then, in each cycle
    in which something can change, launches reserved blocks in free slots and runs the cycle. Its
    next cycle (`now`) becomes `stop`, up to which its warps' residency is counted."""
    now = sm.now
    receive_answers(arrays, sm, now)
    if sm.received_count > 0:
        receive_messages(arrays, sm, now)
    if sm.polling_done != 0:
        release_polling_warps(arrays, sm, now)
    while now < stop:
        if sm.reserved_count > 0 and sm.live_blocks < sm.block_slots:
            launch_reserved(arrays, sm, now)
        now = run_cycle(arrays, sm, now, stop)
    sm.now = stop
    account_residency(sm, stop)


@jitable
def run_cycle(arrays: EngineArrays, sm: SmState, now: int, stop: int) -> int:
    """Runs one cycle of an SM: its load/store unit, its Tensor Memory Accelerator, then those
    schedulers that can change in it (`next`). Returns the next cycle in which something can change,
    also that in which a reserved block can be launched: now + 1 at least, else at most `stop`."""
    if sm.queue_count > 0 and sm.lsu_free <= now:
        serve_queue(arrays, sm, now)
    if sm.tma_count > 0 and sm.tma_free <= now:
        serve_copies(arrays, sm, now)
    next_cycle = stop
    for number in range(arrays.params.schedulers):
        scheduler = SchedulerState(sm, arrays.params.at_schedulers, number)
        if scheduler.next <= now:
            step_scheduler(arrays, sm, number, now)
    for number in range(arrays.params.schedulers):
        next_cycle = min(next_cycle, SchedulerState(sm, arrays.params.at_schedulers, number).next)
    if sm.queue_count > 0:
        next_cycle = min(next_cycle, sm.lsu_free)
    if sm.tma_count > 0:
        next_cycle = min(next_cycle, sm.tma_free)
    if sm.reserved_count > 0 and sm.live_blocks < sm.block_slots:
        next_cycle = min(next_cycle, sm.next_launch)
    return int(max(now + 1, next_cycle))


@jitable
def finish_sm(arrays: EngineArrays, sm: SmState, stop: int) -> None:
    """Charges all cycles before `stop` that have not been charged, of an SM's schedulers to stall
    reasons and of its resident warps to their states, and counts the warps' residency; for the end
    of a replay."""
    for number in range(arrays.params.schedulers):
        charge_scheduler(SchedulerState(sm, arrays.params.at_schedulers, number), stop)
    for slot in range(arrays.params.slots):
        warp = WarpSlot(sm, arrays.params.at_warps, slot)
        if warp.state != w.VACANT:
            charge_warp(arrays, sm, warp, stop)
    account_residency(sm, stop)


def serve_all(params: Words, sms: Words, memory: Words, start: int, stop: int) -> int:
    """Serves the requests that all SMs made from cycle `start` to `stop` (`serve_requests`), on
    arrays instead of records; returns their number."""
    parameters, system = EngineParameters(params, 0), MemorySystem(memory, 0)
    return serve_requests(parameters, sms, system, start, stop)
