"""Ends memory instructions, of which it is known when they are over, and lets those go on that wait
for a phase of an mbarrier.

Who adds to which phase, and how often that has to be before it is complete, is known from the
functional run (`timing.record.mbarriers`); when it happens is the replay's.
"""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.machine import Machine, Words
from warploom.timing.engine.waits import recheck


@jitable
def land_at(m: Words, flight: int, time: int) -> None:
    """Let a part of a flight end then."""
    m[flight + w.F_TIME] = max(m[flight + w.F_TIME], time)


@jitable
def phase_at(g: Machine, m: Words, warp: int, event: int) -> int:
    """Return where a phase of a warp's own block stands."""
    block = m[warp + w.V_BLOCK]
    place = (block - g.p[w.AT_BLOCKS]) // w.B_WORDS
    return int(g.p[w.AT_PHASES] + (place * g.p[w.PHASES] + event - 1) * w.PHASE_WORDS)


@jitable
def request_phase(g: Machine, m: Words, flight: int, access: int, now: int) -> None:
    """Let a warp add to the phase of an mbarrier, or wait for one."""
    at = access * w.ACCESS_WORDS
    event, needed = g.accesses[at + w.A_EVENT], g.accesses[at + w.A_NEEDED]
    if event == 0:
        return
    phase = phase_at(g, m, m[flight + w.F_WARP], event)
    if needed == 0:
        tell(g, m, flight, access, now, now)
    elif m[phase + w.H_COUNT] >= needed:
        land_at(m, flight, max(now, m[phase + w.H_TIME]) + g.p[w.LATENCY_SHARED])
    else:
        m[flight + w.F_NEEDED], m[flight + w.F_NEXT] = needed, m[phase + w.H_WAITING]
        m[phase + w.H_WAITING] = flight
        m[flight + w.F_LEFT] += 1


@jitable
def tell(g: Machine, m: Words, flight: int, access: int, time: int, now: int) -> None:
    """Add to the phase of an access of a flight what is there at that time."""
    at = access * w.ACCESS_WORDS
    event, owner = g.accesses[at + w.A_EVENT], g.accesses[at + w.A_OWNER]
    if event == 0:
        return
    if owner != 0:
        block = m[flight + w.F_NUMBER] // g.p[w.WARPS_PER_BLOCK] + owner
        send(g, m, block, event, time)
    elif is_resident(m, flight):
        add_to(g, m, phase_at(g, m, m[flight + w.F_WARP], event), time, now)


@jitable
def tell_of_products(g: Machine, m: Words, warp: int, count: int, now: int) -> None:
    """Let a warp's next accesses add to their phases when all its products are over."""
    time = now
    for group in range(w.GROUPS):
        time = max(time, m[warp + w.V_PRODUCTS + group])
    first = m[warp + w.V_ACCESS]
    m[warp + w.V_ACCESS] += count
    for access in range(first, first + count):
        at = access * w.ACCESS_WORDS
        event, owner = g.accesses[at + w.A_EVENT], g.accesses[at + w.A_OWNER]
        if event != 0 and owner != 0:
            send(g, m, m[warp + w.V_WARP] // g.p[w.WARPS_PER_BLOCK] + owner, event, time)
        elif event != 0:
            add_to(g, m, phase_at(g, m, warp, event), time, now)


@jitable
def send(g: Machine, m: Words, block: int, event: int, time: int) -> None:
    """Send a note to another block of the cluster, if there is room: without it, that goes on when
    nothing else can."""
    if m[w.SENT_COUNT] < g.p[w.NOTES]:
        note = g.p[w.AT_SENT] + m[w.SENT_COUNT] * w.NOTE_WORDS
        m[note + w.N_BLOCK], m[note + w.N_EVENT] = block, event
        m[note + w.N_TIME] = time + g.p[w.LATENCY_CLUSTER]
        m[w.SENT_COUNT] += 1


@jitable
def take_notes(g: Machine, m: Words, now: int) -> None:
    """Add to phases what other blocks have sent."""
    for number in range(m[w.TOLD_COUNT]):
        note = g.p[w.AT_TOLD] + number * w.NOTE_WORDS
        add_to(g, m, m[note + w.N_BLOCK], m[note + w.N_TIME], now)
    m[w.TOLD_COUNT] = 0


@jitable
def add_to(g: Machine, m: Words, phase: int, time: int, now: int) -> None:
    """Add to a phase what is there at that time; those that waited for it alone go on."""
    m[phase + w.H_COUNT] += 1
    m[phase + w.H_TIME] = max(m[phase + w.H_TIME], time)
    waiting = m[phase + w.H_WAITING]
    left = 0
    while waiting != 0:
        following = m[waiting + w.F_NEXT]
        if m[phase + w.H_COUNT] >= m[waiting + w.F_NEEDED]:
            go_on_after(g, m, waiting, m[phase + w.H_TIME], now)
        else:
            m[waiting + w.F_NEXT] = left
            left = waiting
        waiting = following
    m[phase + w.H_WAITING] = left


@jitable
def go_on_after(g: Machine, m: Words, flight: int, time: int, now: int) -> None:
    """Let a flight go on that waited for a phase, complete at that time."""
    land_at(m, flight, max(time, now) + g.p[w.LATENCY_SHARED])
    m[flight + w.F_LEFT] -= 1
    if m[flight + w.F_LEFT] == 0:
        land(g, m, flight, now)


@jitable
def clear_phases(g: Machine, m: Words, block: int) -> None:
    """Begin with the phases of a new block in its place."""
    place = (block - g.p[w.AT_BLOCKS]) // w.B_WORDS
    first = g.p[w.AT_PHASES] + place * g.p[w.PHASES] * w.PHASE_WORDS
    for word in range(g.p[w.PHASES] * w.PHASE_WORDS):
        m[first + word] = 0


@jitable
def release_phases(g: Machine, m: Words, now: int) -> None:
    """Let all go on that wait for a phase: the functional run says that they did."""
    for number in range(g.p[w.BLOCK_SLOTS] * g.p[w.PHASES]):
        phase = g.p[w.AT_PHASES] + number * w.PHASE_WORDS
        while m[phase + w.H_WAITING] != 0:
            flight = m[phase + w.H_WAITING]
            m[phase + w.H_WAITING] = m[flight + w.F_NEXT]
            go_on_after(g, m, flight, now, now)


@jitable
def finish(g: Machine, m: Words, flight: int, now: int) -> None:
    """Land a flight; a copy adds to the phases of its accesses."""
    if g.ops[m[flight + w.F_OP] * w.OP_WORDS + w.OP_KIND] == w.BULK:
        m[flight + w.F_TIME] += g.p[w.LATENCY_TMA]
        note_copy(g, m, flight)
        first, time = m[flight + w.F_FIRST], m[flight + w.F_TIME]
        for access in range(first, first + m[flight + w.F_COUNT]):
            tell(g, m, flight, access, time, now)
    land(g, m, flight, now)


@jitable
def note_copy(g: Machine, m: Words, flight: int) -> None:
    """Note for the timeline how long a copy was on its way, if there is room."""
    if m[w.EVENT_COUNT] < g.p[w.EVENTS]:
        at = g.p[w.AT_EVENTS] + m[w.EVENT_COUNT] * w.EVENT_WORDS
        m[at + w.E_SLOT] = (m[flight + w.F_WARP] - g.p[w.AT_WARPS]) // w.V_WORDS
        m[at + w.E_WARP] = m[flight + w.F_NUMBER]
        m[at + w.E_STATE] = w.IN_FLIGHT
        m[at + w.E_SINCE] = m[flight + w.F_SINCE]
        m[at + w.E_UNTIL] = m[flight + w.F_TIME]
        m[at + w.E_OP] = m[flight + w.F_OP]
        m[w.EVENT_COUNT] += 1


@jitable
def is_resident(m: Words, flight: int) -> bool:
    """Returns whether the block of a flight has not given its place to another."""
    block = m[m[flight + w.F_WARP] + w.V_BLOCK]
    return bool(m[flight + w.F_BLOCK] == m[block + w.B_NUMBER])


@jitable
def land(g: Machine, m: Words, flight: int, now: int) -> None:
    """Land a flight of which it is known when it ends: its registers are ready then."""
    number = (flight - g.p[w.AT_FLIGHTS]) // w.F_WORDS
    warp, row = m[flight + w.F_WARP], m[flight + w.F_OP] * w.OP_WORDS
    time = m[flight + w.F_TIME]
    m[g.p[w.AT_FREE] + m[w.FREE_COUNT]] = number
    m[w.FREE_COUNT] += 1
    if m[warp + w.V_AGE] != m[flight + w.F_AGE] or m[warp + w.V_STATE] == w.NOT_THERE:
        return
    base = m[warp + w.V_REGISTERS]
    first = g.ops[row + w.OP_WRITES_AT]
    for place in range(first, first + g.ops[row + w.OP_WRITES]):
        settle_register(m, base + g.registers[place], number, time)
    if g.p[w.COPIES]:
        for register in range(g.p[w.REGISTERS]):
            settle_register(m, base + register, number, time)
    if is_awaited(g, row):
        m[warp + w.V_ACK] = max(m[warp + w.V_ACK], time)
        m[warp + w.V_FLIGHTS] -= 1
    if m[flight + w.F_GROUP] != w.NEVER:
        at = warp + w.V_GROUPS + m[flight + w.F_GROUP] % w.GROUPS
        m[at] = max(m[at], time)
    recheck(g, m, warp, now)


@jitable
def is_awaited(g: Machine, row: int) -> bool:
    """Returns whether its warp's fences and waits for groups look at an operation: not at copies
    that tell an mbarrier."""
    return g.ops[row + w.OP_KIND] != w.BULK or g.ops[row + w.OP_Y] != 0


@jitable
def settle_register(m: Words, register: int, number: int, time: int) -> None:
    """Make a register that waits for a flight ready at that time."""
    value = m[register]
    if value >= w.PENDING and (value & ~w.PENDING) >> w.REASON_BITS == number:
        m[register] = time << w.REASON_BITS | (value & w.REASON_MASK)
