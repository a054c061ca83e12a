"""Ends flights (memory instructions in flight), and models arrivals at, and waits for, the phases
of mbarriers.

The functional run determines which accesses arrive at a phase and how many arrivals complete it
(`timing.record.mbarriers`); the replay determines when.
"""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.machine import EngineArrays
from warploom.timing.engine.waits import recheck_waits
from warploom.timing.records import (
    ArrivalMessage,
    BlockSlot,
    Flight,
    PhaseState,
    SmState,
    TimedAccess,
    TimedOperation,
    TimelineEvent,
    WarpSlot,
)


@jitable
def extend_flight(flight: Flight, time: int) -> None:
    """Sets the end of a flight (memory instruction in flight) to the cycle `time`, if that is
    later."""
    flight.end = max(flight.end, time)


@jitable
def phase_at(arrays: EngineArrays, warp: WarpSlot, phase_id: int) -> int:
    """Returns the offset, in the state of an SM, of the record (`PhaseState`) of a phase of an
    mbarrier of a warp's block; `phase_id` is the number of the phase in the block, from 1."""
    block = warp.block
    slot = (block - arrays.params.at_blocks) // BlockSlot.WORDS
    return int(
        arrays.params.at_phases + (slot * arrays.params.phases + phase_id - 1) * PhaseState.WORDS
    )


@jitable
def request_phase(arrays: EngineArrays, sm: SmState, flight: Flight, access: int, now: int) -> None:
    """Makes an access to an mbarrier arrive at the phase that it names (`arrivals` 0), or wait
    until the phase has `arrivals` arrivals. A complete phase extends the flight (the access's
    memory instruction) to its last arrival, or `now` if later, plus the latency of shared memory;
    for an incomplete one the flight joins the phase's list of waiting flights, with one
    more open request. Nothing if it names no phase."""
    timed_access = TimedAccess(arrays.accesses, 0, access)
    phase_id, arrivals = (timed_access.phase_id, timed_access.arrivals)
    if phase_id == 0:
        return
    phase = PhaseState(sm, phase_at(arrays, WarpSlot(sm, flight.warp), phase_id))
    # The access arrives, in this cycle.
    if arrivals == 0:
        signal_phase(arrays, sm, flight, access, time=now, now=now)
    # The phase is complete already.
    elif phase.arrivals >= arrivals:
        extend_flight(flight, max(now, phase.time) + arrays.params.latency_shared)
    else:
        flight.arrivals, flight.next = arrivals, phase.waiter
        phase.waiter = flight.at
        flight.open_requests += 1


@jitable
def signal_phase(
    arrays: EngineArrays, sm: SmState, flight: Flight, access: int, time: int, now: int
) -> None:
    """Adds an arrival, at the cycle `time`, at the phase that an access of a flight (memory
    instruction in flight) names. Adds it to a phase of its own block if that is still resident in
    its slot, and sends it by a message to another block of the cluster (`owner`). Nothing if it
    names none. Warps that it wakes continue from `now` on."""
    timed_access = TimedAccess(arrays.accesses, 0, access)
    phase_id, owner = (timed_access.phase_id, timed_access.owner)
    if phase_id == 0:
        return
    if owner != 0:
        block = flight.warp_number // arrays.params.warps_per_block + owner
        send_message(arrays, sm, block, phase_id, time)
    elif is_resident(sm, flight):
        add_arrival(
            arrays,
            sm,
            PhaseState(sm, phase_at(arrays, WarpSlot(sm, flight.warp), phase_id)),
            time,
            now,
        )


@jitable
def signal_after_products(
    arrays: EngineArrays, sm: SmState, warp: WarpSlot, count: int, now: int
) -> None:
    """Makes the warp's next `count` accesses arrive at their phases, of its own block or by
    messages to others, at the cycle in which all groups of its matrix products have ended, `now` at
    the earliest (`tcgen05.commit`), and moves the warp past them. Those that name no phase only
    count."""
    time = now
    for group in range(w.GROUPS):
        time = max(time, warp.products[group])
    first = warp.access
    warp.access += count
    for access in range(first, first + count):
        timed_access = TimedAccess(arrays.accesses, 0, access)
        phase_id, owner = (timed_access.phase_id, timed_access.owner)
        if phase_id != 0 and owner != 0:
            send_message(
                arrays, sm, warp.warp // arrays.params.warps_per_block + owner, phase_id, time
            )
        elif phase_id != 0:
            add_arrival(arrays, sm, PhaseState(sm, phase_at(arrays, warp, phase_id)), time, now)


@jitable
def send_message(arrays: EngineArrays, sm: SmState, block: int, phase_id: int, time: int) -> None:
    """Appends an arrival at phase `phase_id` of block number `block`, another one of the cluster,
    to the messages that this SM sends, `latency_cluster` after `time`. A message beyond the buffer
    is dropped: the waiting block then goes on when nothing else can
    (`replay.Replay._release_stalled`)."""
    if sm.sent_count < arrays.params.messages:
        message = ArrivalMessage(sm, arrays.params.at_sent, sm.sent_count)
        message.block, message.phase_id = block, phase_id
        message.time = time + arrays.params.latency_cluster
        sm.sent_count += 1


@jitable
def receive_messages(arrays: EngineArrays, sm: SmState, now: int) -> None:
    """Applies the arrivals at mbarriers that this SM has received from other SMs, each at the time
    of its message, and empties the buffer; warps that an arrival wakes continue from the cycle
    `now` on."""
    for number in range(sm.received_count):
        message = ArrivalMessage(sm, arrays.params.at_received, number)
        add_arrival(arrays, sm, PhaseState(sm, message.block), message.time, now)
    sm.received_count = 0


@jitable
def add_arrival(arrays: EngineArrays, sm: SmState, phase: PhaseState, time: int, now: int) -> None:
    """Adds an arrival to a phase of an mbarrier, whose time becomes the latest of its arrivals'
    (`time`: the cycle of this one). Resumes, from `now` on, those flights (memory instructions) in
    its list (`waiter`) that wait for no more arrivals than the phase now has; the others stay in
    the list."""
    phase.arrivals += 1
    phase.time = max(phase.time, time)
    waiter = Flight(sm, phase.waiter)
    # Rebuilds the linked list of those that wait for more arrivals.
    still_waiting = 0
    while waiter.at != 0:
        next_waiter = waiter.next
        if phase.arrivals >= waiter.arrivals:
            resume_waiter(arrays, sm, waiter, phase.time, now)
        else:
            waiter.next = still_waiting
            still_waiting = waiter.at
        waiter = Flight(sm, next_waiter)
    phase.waiter = still_waiting


@jitable
def resume_waiter(arrays: EngineArrays, sm: SmState, flight: Flight, time: int, now: int) -> None:
    """Ends the wait of a flight (memory instruction in flight) for a phase that was complete at the
    cycle `time`. Extends the flight to the later of `time` and `now` plus the latency of shared
    memory, and completes it if none of its accesses and requests is open. The caller removes it
    from the phase's list."""
    extend_flight(flight, max(time, now) + arrays.params.latency_shared)
    flight.open_requests -= 1
    if flight.open_requests == 0:
        complete_flight(arrays, sm, flight, now)


@jitable
def clear_phases(arrays: EngineArrays, sm: SmState, block: int) -> None:
    """Resets the phases of mbarriers of the block slot at offset `block`, for a new block: no
    arrivals, no waiting flights."""
    slot = (block - arrays.params.at_blocks) // BlockSlot.WORDS
    first = arrays.params.at_phases + slot * arrays.params.phases * PhaseState.WORDS
    for word in range(arrays.params.phases * PhaseState.WORDS):
        sm.words[first + word] = 0


@jitable
def release_phases(arrays: EngineArrays, sm: SmState, now: int) -> None:
    """Resumes all flights (memory instructions) of an SM that wait for a phase of an mbarrier, as
    if it were complete in the cycle `now`, and empties the phases' lists; arrivals stay as they
    are. For replays in which nothing else can go on: in the functional run these warps did."""
    for number in range(arrays.params.block_slots * arrays.params.phases):
        phase = PhaseState(sm, arrays.params.at_phases, number)
        while phase.waiter != 0:
            flight = Flight(sm, phase.waiter)
            phase.waiter = flight.next
            # The phase counts as complete in this cycle.
            resume_waiter(arrays, sm, flight, time=now, now=now)


@jitable
def finish_flight(arrays: EngineArrays, sm: SmState, flight: Flight, now: int) -> None:
    """Completes a flight (memory instruction in flight) whose parts have all ended
    (`complete_flight`). Before that, a copy of the Tensor Memory Accelerator (BULK) gets an end
    `latency_tma` later, is recorded in the timeline, and arrives, at that end, at the phases of its
    accesses."""
    if TimedOperation(arrays.ops, 0, flight.op).kind == w.BULK:
        flight.end += arrays.params.latency_tma
        record_copy(arrays, sm, flight)
        first, time = flight.first, flight.end
        for access in range(first, first + flight.count):
            signal_phase(arrays, sm, flight, access, time, now)
    complete_flight(arrays, sm, flight, now)


@jitable
def record_copy(arrays: EngineArrays, sm: SmState, flight: Flight) -> None:
    """Appends the interval from issue to end of a flight, a copy of the Tensor Memory Accelerator,
    to the timeline of its SM as IN_FLIGHT; dropped if that is full."""
    if sm.event_count < arrays.params.events:
        event = TimelineEvent(sm, arrays.params.at_events, sm.event_count)
        event.slot = (flight.warp - arrays.params.at_warps) // WarpSlot.WORDS
        event.warp = flight.warp_number
        event.state = w.IN_FLIGHT
        event.since = flight.since
        event.until = flight.end
        event.op = flight.op
        sm.event_count += 1


@jitable
def is_resident(sm: SmState, flight: Flight) -> bool:
    """Returns whether the block that issued a flight (memory instruction in flight) still has its
    slot: no block was launched there since. A block that has ended counts as long as none was."""
    block = BlockSlot(sm, WarpSlot(sm, flight.warp).block)
    return bool(flight.block_number == block.launch_number)


@jitable
def complete_flight(arrays: EngineArrays, sm: SmState, flight: Flight, now: int) -> None:
    """Frees the record of a flight (memory instruction in flight) whose end is known. The rest is
    done only if its warp still occupies its slot. Destination registers, and copies of them, that
    wait for the flight become ready at that end. The end of its group of copies, if any, is
    updated; so are the warp's `last_end` and `flights` if fences await the operation (`is_fenced`:
    not a bulk copy outside of a group). The warp is scheduled if it sleeps and nothing else holds
    it back (`recheck_waits`)."""
    number = (flight.at - arrays.params.at_flights) // Flight.WORDS
    warp, operation = WarpSlot(sm, flight.warp), TimedOperation(arrays.ops, 0, flight.op)
    time = flight.end
    sm.words[arrays.params.at_free + sm.free_count] = number
    sm.free_count += 1
    # Another warp has the slot by now.
    if warp.age != flight.age or warp.state == w.VACANT:
        return
    base = warp.registers
    first = operation.writes_at
    for index in range(first, first + operation.writes):
        resolve_register(sm, base + arrays.registers[index], number, time)
    # Register copies have spread the flight's number to other registers.
    if arrays.params.copies:
        # Looks at every register: where copies went is not recorded.
        for register in range(arrays.params.registers):
            resolve_register(sm, base + register, number, time)
    # Fences wait for the end of the flight.
    if is_fenced(operation):
        warp.last_end = max(warp.last_end, time)
        warp.flights -= 1
    if flight.group != w.NEVER:
        group_end = warp.at + WarpSlot.groups + flight.group % w.GROUPS
        group = sm.words[group_end]
        # None is left in a slot of the ring buffer that a later group has taken.
        left = max(0, (group >> w.GROUP_END_BITS) - 1)
        end = max(group & ((1 << w.GROUP_END_BITS) - 1), time)
        sm.words[group_end] = left << w.GROUP_END_BITS | end
    recheck_waits(arrays, sm, warp, now)


@jitable
def is_fenced(operation: TimedOperation) -> bool:
    """Returns whether the warp's fences and waits for groups await an operation that makes
    accesses: all but bulk copies (BULK) outside of groups, which signal an mbarrier instead."""
    is_bulk = operation.kind == w.BULK
    return not is_bulk or operation.joins_group != 0


@jitable
def resolve_register(sm: SmState, register: int, number: int, time: int) -> None:
    """Makes the register at offset `register` ready at the cycle `time`, for the same stall reason,
    if it waits (PENDING) for the flight (memory instruction) with the number `number`; leaves
    others."""
    value = sm.words[register]
    if value >= w.PENDING and (value & ~w.PENDING) >> w.REASON_BITS == number:
        sm.words[register] = time << w.REASON_BITS | (value & w.REASON_MASK)
