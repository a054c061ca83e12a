"""Ends flights (memory instructions in flight), and models arrivals at, and waits for, the phases
of mbarriers.

The functional run determines which accesses arrive at a phase and how many arrivals complete it
(`timing.record.mbarriers`); the replay determines when.
"""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.machine import EngineArrays, Words
from warploom.timing.engine.waits import recheck_waits


@jitable
def extend_flight(sm: Words, flight: int, time: int) -> None:
    """Sets the end of a flight (memory instruction in flight) to the cycle `time`, if that is
    later."""
    sm[flight + w.F_END] = max(sm[flight + w.F_END], time)


@jitable
def phase_at(arrays: EngineArrays, sm: Words, warp: int, phase_id: int) -> int:
    """Returns the offset of the record (H_) of a phase of an mbarrier, of the block of a warp;
    `phase_id` is the number that the phase has in the block, from 1."""
    block = sm[warp + w.V_BLOCK]
    slot = (block - arrays.params[w.AT_BLOCKS]) // w.B_WORDS
    return int(
        arrays.params[w.AT_PHASES] + (slot * arrays.params[w.PHASES] + phase_id - 1) * w.PHASE_WORDS
    )


@jitable
def request_phase(arrays: EngineArrays, sm: Words, flight: int, access: int, now: int) -> None:
    """Makes an access to an mbarrier arrive at the phase that it names or, if it has A_ARRIVALS,
    wait until the phase has that many. A complete phase extends the flight to its last arrival plus
    the latency of shared memory; an incomplete one adds the flight to its list of waiting ones.
    Nothing if it names no phase."""
    access_offset = access * w.ACCESS_WORDS
    phase_id, arrivals = (
        arrays.accesses[access_offset + w.A_PHASE_ID],
        arrays.accesses[access_offset + w.A_ARRIVALS],
    )
    if phase_id == 0:
        return
    phase = phase_at(arrays, sm, sm[flight + w.F_WARP], phase_id)
    # The access arrives, in this cycle.
    if arrivals == 0:
        signal_phase(arrays, sm, flight, access, time=now, now=now)
    # The phase is complete already.
    elif sm[phase + w.H_ARRIVALS] >= arrivals:
        extend_flight(sm, flight, max(now, sm[phase + w.H_TIME]) + arrays.params[w.LATENCY_SHARED])
    else:
        sm[flight + w.F_ARRIVALS], sm[flight + w.F_NEXT] = arrivals, sm[phase + w.H_WAITER]
        sm[phase + w.H_WAITER] = flight
        sm[flight + w.F_OPEN_REQUESTS] += 1


@jitable
def signal_phase(
    arrays: EngineArrays, sm: Words, flight: int, access: int, time: int, now: int
) -> None:
    """Arrives at the phase that an access of a flight names, if any, at the cycle `time`: that of
    the own block, if this is still resident, or by a message to another block of the cluster."""
    access_offset = access * w.ACCESS_WORDS
    phase_id, owner = (
        arrays.accesses[access_offset + w.A_PHASE_ID],
        arrays.accesses[access_offset + w.A_OWNER],
    )
    if phase_id == 0:
        return
    if owner != 0:
        block = sm[flight + w.F_WARP_NUMBER] // arrays.params[w.WARPS_PER_BLOCK] + owner
        send_message(arrays, sm, block, phase_id, time)
    elif is_resident(sm, flight):
        add_arrival(arrays, sm, phase_at(arrays, sm, sm[flight + w.F_WARP], phase_id), time, now)


@jitable
def signal_after_products(arrays: EngineArrays, sm: Words, warp: int, count: int, now: int) -> None:
    """Makes the warp's next `count` accesses arrive at their phases, of its own block or by
    messages to others, at the cycle in which all its matrix products have ended (`tcgen05.commit`),
    and moves the warp past them."""
    time = now
    for group in range(w.GROUPS):
        time = max(time, sm[warp + w.V_PRODUCTS + group])
    first = sm[warp + w.V_ACCESS]
    sm[warp + w.V_ACCESS] += count
    for access in range(first, first + count):
        access_offset = access * w.ACCESS_WORDS
        phase_id, owner = (
            arrays.accesses[access_offset + w.A_PHASE_ID],
            arrays.accesses[access_offset + w.A_OWNER],
        )
        if phase_id != 0 and owner != 0:
            send_message(
                arrays,
                sm,
                sm[warp + w.V_WARP] // arrays.params[w.WARPS_PER_BLOCK] + owner,
                phase_id,
                time,
            )
        elif phase_id != 0:
            add_arrival(arrays, sm, phase_at(arrays, sm, warp, phase_id), time, now)


@jitable
def send_message(arrays: EngineArrays, sm: Words, block: int, phase_id: int, time: int) -> None:
    """Appends an arrival at phase `phase_id` of another block of the cluster to the messages that
    this SM sends, LATENCY_CLUSTER after `time`. A message beyond the buffer is dropped: the waiting
    block then goes on when nothing else can (`replay.Replay._release_stalled`)."""
    if sm[w.SENT_COUNT] < arrays.params[w.MESSAGES]:
        message = arrays.params[w.AT_SENT] + sm[w.SENT_COUNT] * w.MESSAGE_WORDS
        sm[message + w.MSG_BLOCK], sm[message + w.MSG_PHASE_ID] = block, phase_id
        sm[message + w.MSG_TIME] = time + arrays.params[w.LATENCY_CLUSTER]
        sm[w.SENT_COUNT] += 1


@jitable
def receive_messages(arrays: EngineArrays, sm: Words, now: int) -> None:
    """Applies the arrivals that blocks on other SMs have sent, and empties the buffer."""
    for number in range(sm[w.RECEIVED_COUNT]):
        message = arrays.params[w.AT_RECEIVED] + number * w.MESSAGE_WORDS
        add_arrival(arrays, sm, sm[message + w.MSG_BLOCK], sm[message + w.MSG_TIME], now)
    sm[w.RECEIVED_COUNT] = 0


@jitable
def add_arrival(arrays: EngineArrays, sm: Words, phase: int, time: int, now: int) -> None:
    """Adds an arrival at the cycle `time` to a phase of an mbarrier (offset of its record), and
    resumes the flights that wait for as many arrivals as it now has."""
    sm[phase + w.H_ARRIVALS] += 1
    sm[phase + w.H_TIME] = max(sm[phase + w.H_TIME], time)
    waiter = sm[phase + w.H_WAITER]
    # Rebuilds the linked list of those that wait for more arrivals.
    still_waiting = 0
    while waiter != 0:
        next_waiter = sm[waiter + w.F_NEXT]
        if sm[phase + w.H_ARRIVALS] >= sm[waiter + w.F_ARRIVALS]:
            resume_waiter(arrays, sm, waiter, sm[phase + w.H_TIME], now)
        else:
            sm[waiter + w.F_NEXT] = still_waiting
            still_waiting = waiter
        waiter = next_waiter
    sm[phase + w.H_WAITER] = still_waiting


@jitable
def resume_waiter(arrays: EngineArrays, sm: Words, flight: int, time: int, now: int) -> None:
    """Ends the wait of a flight for a phase that was complete at the cycle `time`: extends it to
    the latency of shared memory after that, and completes it if none of its accesses and requests
    is open."""
    extend_flight(sm, flight, max(time, now) + arrays.params[w.LATENCY_SHARED])
    sm[flight + w.F_OPEN_REQUESTS] -= 1
    if sm[flight + w.F_OPEN_REQUESTS] == 0:
        complete_flight(arrays, sm, flight, now)


@jitable
def clear_phases(arrays: EngineArrays, sm: Words, block: int) -> None:
    """Resets the phases of mbarriers of the slot `block` for a new block: no arrivals, no waiting
    flights."""
    slot = (block - arrays.params[w.AT_BLOCKS]) // w.B_WORDS
    first = arrays.params[w.AT_PHASES] + slot * arrays.params[w.PHASES] * w.PHASE_WORDS
    for word in range(arrays.params[w.PHASES] * w.PHASE_WORDS):
        sm[first + word] = 0


@jitable
def release_phases(arrays: EngineArrays, sm: Words, now: int) -> None:
    """Resumes all flights of an SM that wait for a phase of an mbarrier, complete or not. For
    replays in which nothing else can go on: in the functional run these warps did."""
    for number in range(arrays.params[w.BLOCK_SLOTS] * arrays.params[w.PHASES]):
        phase = arrays.params[w.AT_PHASES] + number * w.PHASE_WORDS
        while sm[phase + w.H_WAITER] != 0:
            flight = sm[phase + w.H_WAITER]
            sm[phase + w.H_WAITER] = sm[flight + w.F_NEXT]
            # The phase counts as complete in this cycle.
            resume_waiter(arrays, sm, flight, time=now, now=now)


@jitable
def finish_flight(arrays: EngineArrays, sm: Words, flight: int, now: int) -> None:
    """Completes a flight whose parts have all ended; a copy of the Tensor Memory Accelerator first
    takes its latency, is recorded in the timeline, and arrives at the phases of its accesses."""
    if arrays.ops[sm[flight + w.F_OP] * w.OP_WORDS + w.OP_KIND] == w.BULK:
        sm[flight + w.F_END] += arrays.params[w.LATENCY_TMA]
        record_copy(arrays, sm, flight)
        first, time = sm[flight + w.F_FIRST], sm[flight + w.F_END]
        for access in range(first, first + sm[flight + w.F_COUNT]):
            signal_phase(arrays, sm, flight, access, time, now)
    complete_flight(arrays, sm, flight, now)


@jitable
def record_copy(arrays: EngineArrays, sm: Words, flight: int) -> None:
    """Appends the interval in which a copy was in flight to the timeline, if it has space."""
    if sm[w.EVENT_COUNT] < arrays.params[w.EVENTS]:
        event = arrays.params[w.AT_EVENTS] + sm[w.EVENT_COUNT] * w.EVENT_WORDS
        sm[event + w.E_SLOT] = (sm[flight + w.F_WARP] - arrays.params[w.AT_WARPS]) // w.V_WORDS
        sm[event + w.E_WARP] = sm[flight + w.F_WARP_NUMBER]
        sm[event + w.E_STATE] = w.IN_FLIGHT
        sm[event + w.E_SINCE] = sm[flight + w.F_SINCE]
        sm[event + w.E_UNTIL] = sm[flight + w.F_END]
        sm[event + w.E_OP] = sm[flight + w.F_OP]
        sm[w.EVENT_COUNT] += 1


@jitable
def is_resident(sm: Words, flight: int) -> bool:
    """Returns whether the block that issued a flight still occupies its slot: the slot has the same
    launch number."""
    block = sm[sm[flight + w.F_WARP] + w.V_BLOCK]
    return bool(sm[flight + w.F_BLOCK_NUMBER] == sm[block + w.B_NUMBER])


@jitable
def complete_flight(arrays: EngineArrays, sm: Words, flight: int, now: int) -> None:
    """Frees the record of a flight whose end is known. If its warp still occupies its slot: its
    destination registers become ready at that end; fences and its group of copies, if any, get the
    end; the warp is scheduled again if it waits."""
    number = (flight - arrays.params[w.AT_FLIGHTS]) // w.F_WORDS
    warp, op_offset = sm[flight + w.F_WARP], sm[flight + w.F_OP] * w.OP_WORDS
    time = sm[flight + w.F_END]
    sm[arrays.params[w.AT_FREE] + sm[w.FREE_COUNT]] = number
    sm[w.FREE_COUNT] += 1
    # Another warp has the slot by now.
    if sm[warp + w.V_AGE] != sm[flight + w.F_AGE] or sm[warp + w.V_STATE] == w.VACANT:
        return
    base = sm[warp + w.V_REGISTERS]
    first = arrays.ops[op_offset + w.OP_WRITES_AT]
    for index in range(first, first + arrays.ops[op_offset + w.OP_WRITES]):
        resolve_register(sm, base + arrays.registers[index], number, time)
    # Register copies have spread the flight's number to other registers.
    if arrays.params[w.COPIES]:
        # Looks at every register: where copies went is not recorded.
        for register in range(arrays.params[w.REGISTERS]):
            resolve_register(sm, base + register, number, time)
    # Fences wait for the end of the flight.
    if is_fenced(arrays, op_offset):
        sm[warp + w.V_LAST_END] = max(sm[warp + w.V_LAST_END], time)
        sm[warp + w.V_FLIGHTS] -= 1
    if sm[flight + w.F_GROUP] != w.NEVER:
        group_end = warp + w.V_GROUPS + sm[flight + w.F_GROUP] % w.GROUPS
        sm[group_end] = max(sm[group_end], time)
    recheck_waits(arrays, sm, warp, now)


@jitable
def is_fenced(arrays: EngineArrays, op_offset: int) -> bool:
    """Returns whether the warp's fences and group waits include an operation (`op_offset`: its
    row): all but bulk copies outside of groups, which signal an mbarrier."""
    is_bulk = arrays.ops[op_offset + w.OP_KIND] == w.BULK
    return not is_bulk or arrays.ops[op_offset + w.OP_JOINS_GROUP] != 0


@jitable
def resolve_register(sm: Words, register: int, number: int, time: int) -> None:
    """Makes the register at offset `register` ready at the cycle `time`, with the reason that it
    has, if it waits for flight `number`; leaves others."""
    value = sm[register]
    if value >= w.PENDING and (value & ~w.PENDING) >> w.REASON_BITS == number:
        sm[register] = time << w.REASON_BITS | (value & w.REASON_MASK)
