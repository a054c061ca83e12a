"""The issue of one operation: when its unit takes it, and what follows from it."""

from __future__ import annotations

from warploom.simt.host_prefetch import prefetch
from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.bulk import enqueue
from warploom.timing.engine.flow import advance, arrive
from warploom.timing.engine.machine import Machine, Words
from warploom.timing.engine.phases import is_awaited, tell_of_products
from warploom.timing.engine.waits import awaited, ended, sleep
from warploom.timing.work.costs import TICKS, UNITS

LSU, TEXTURE = UNITS.index("lsu"), UNITS.index("texture")
OF_MIO = sum(1 << UNITS.index(name) for name in ("special", "bits", "convert", "shuffle", "lsu"))
"""Units behind the queue for memory input and output."""


@jitable
def unit_at(g: Machine, m: Words, warp: int, unit: int) -> int:
    """Returns where it stands when a unit is free: a scheduler's own, or the one of the SM."""
    if (g.p[w.SHARED_UNITS_MASK] >> unit) & 1:
        return int(g.p[w.AT_UNITS] + unit)
    return int(m[warp + w.V_UNITS] + unit)


@jitable
def blocked_until(g: Machine, m: Words, s: int, warp: int, now: int) -> int:
    """Return the cycle in which the unit of a warp's operation takes it: `now`, a later one, or
    NEVER where the queue of the load/store unit is full. V_TRY says why it does not now."""
    row = m[warp + w.V_OP] * w.OP_WORDS
    unit = g.ops[row + w.OP_UNIT]
    free = m[unit_at(g, m, warp, unit)]
    if free >= (now + 1) * TICKS:
        m[warp + w.V_TRY] = w.MATH_PIPE_THROTTLE
        if unit == TEXTURE:
            m[warp + w.V_TRY] = w.TEX_THROTTLE
        elif (OF_MIO >> unit) & 1:
            m[warp + w.V_TRY] = w.MIO_THROTTLE
            if unit == LSU and g.ops[row + w.OP_X]:
                m[warp + w.V_TRY] = w.LG_THROTTLE
        return int(free // TICKS)
    read = reads_until(g, m, s, warp, row, now)
    if read > now:
        m[warp + w.V_TRY] = w.DISPATCH_STALL
        return read
    kind = g.ops[row + w.OP_KIND]
    full = m[s + w.S_QUEUED] >= g.p[w.LSU_QUEUE] and kind != w.BULK
    if (full or m[w.FREE_COUNT] == 0) and is_access(kind):
        m[warp + w.V_TRY] = w.LG_THROTTLE if g.ops[row + w.OP_X] else w.MIO_THROTTLE
        if unit == TEXTURE:
            m[warp + w.V_TRY] = w.TEX_THROTTLE
        return w.NEVER
    return now


@jitable
def reads_of(g: Machine, m: Words, s: int, warp: int, row: int, bank: int) -> int:
    """Returns how many registers of a bank a warp's operation reads."""
    reads = g.ops[row + w.OP_READS] >> w.READ_BITS * bank
    mask = (1 << w.READ_BITS) - 1
    kept = reads >> w.READ_BITS * w.REGISTER_BANKS & mask
    return int((reads & mask) - kept * int(m[s + w.S_LAST] == warp))


@jitable
def reads_until(g: Machine, m: Words, s: int, warp: int, row: int, now: int) -> int:
    """Return the cycle in which a warp's operation can issue so that the banks of the register file
    serve it in time."""
    until = now
    if g.ops[row + w.OP_READS] != 0:
        for bank in range(w.REGISTER_BANKS):
            reads = reads_of(g, m, s, warp, row, bank)
            if reads > 0:
                until = max(until, m[s + w.S_BANKS + bank] + reads - w.READ_WINDOW)
    return int(until)


@jitable
def read_registers(g: Machine, m: Words, s: int, warp: int, row: int, now: int) -> None:
    """Take the banks of the register file for a warp's operation."""
    if g.ops[row + w.OP_READS] != 0:
        for bank in range(w.REGISTER_BANKS):
            at = s + w.S_BANKS + bank
            m[at] = max(m[at], now) + reads_of(g, m, s, warp, row, bank)


@jitable
def is_access(kind: int) -> bool:
    """Returns whether an operation of this kind makes accesses."""
    return kind == w.MEMORY or kind == w.POLL or kind == w.BULK


@jitable
def issue(g: Machine, m: Words, s: int, warp: int, now: int) -> None:
    """Issue a warp's operation, or one slot of it, in this cycle."""
    op = m[warp + w.V_OP]
    row = op * w.OP_WORDS
    unit = unit_at(g, m, warp, g.ops[row + w.OP_UNIT])
    m[unit] = max(m[unit], now * TICKS) + g.ops[row + w.OP_INTERVAL]
    read_registers(g, m, s, warp, row, now)
    m[w.INSTRUCTIONS] += 1
    g.totals[g.p[w.OPERATIONS] * w.REASON_COUNT + op] += 1
    slots = g.ops[row + w.OP_SLOTS]
    if m[warp + w.V_LEFT] == slots:
        m[warp + w.V_FIRST] = now
    m[warp + w.V_LEFT] -= 1
    if m[warp + w.V_LEFT] > 0:
        wake = now + g.ops[row + w.OP_GAP]
        sleep(g, m, warp, max(wake, now + 1), w.WAIT, now + 1)
        return
    kind = g.ops[row + w.OP_KIND]
    # A late slot delays the result as much.
    late = now - m[warp + w.V_FIRST] - (slots - 1) * g.ops[row + w.OP_GAP]
    done = m[warp + w.V_FIRST] + g.ops[row + w.OP_LATENCY] + max(late, 0)
    if is_access(kind) and access_count(g, m, warp, row) > 0:
        done = start_flight(g, m, s, warp, op, now)
    else:
        done = max(done, now + 1) << w.REASON_BITS | g.ops[row + w.OP_WAIT]
    base = m[warp + w.V_REGISTERS]
    first = g.ops[row + w.OP_WRITES_AT]
    for place in range(first, first + g.ops[row + w.OP_WRITES]):
        m[base + g.registers[place]] = done
    go_on(g, m, warp, row, kind, now)


@jitable
def go_on(g: Machine, m: Words, warp: int, row: int, kind: int, now: int) -> None:
    """Bring a warp to what comes after an operation that has been issued."""
    waits = False
    if kind == w.BLOCK_BARRIER:
        waits = arrive(g, m, warp, row // w.OP_WORDS, now)
    elif kind == w.COMMIT:
        if g.ops[row + w.OP_Y]:
            open_next(m, warp + w.V_PRODUCT, warp + w.V_PRODUCTS)
        else:
            open_next(m, warp + w.V_GROUP, warp + w.V_GROUPS)
    elif kind == w.PRODUCT:
        unit = unit_at(g, m, warp, g.ops[row + w.OP_UNIT])
        group = warp + w.V_PRODUCTS + m[warp + w.V_PRODUCT] % w.GROUPS
        m[group] = max(m[group], m[unit] // TICKS + g.ops[row + w.OP_LATENCY])
    elif kind == w.TELL:
        tell_of_products(g, m, warp, access_count(g, m, warp, row), now)
    elif kind == w.POLL:
        m[w.COME] += 1
        m[warp + w.V_AWAITS] = -1
    advance(g, m, warp, now + 1, now + max(1, g.ops[row + w.OP_STALL]))
    if m[warp + w.V_STATE] == w.NOT_THERE:
        return
    if waits:
        sleep(g, m, warp, w.NEVER, w.BARRIER, now + 1)
    elif kind == w.BLOCK_BARRIER and g.ops[row + w.OP_Y] >= 0:
        hold(g, m, warp, now + g.p[w.LATENCY_BARRIER], w.BARRIER, now + 1)
    elif kind == w.POLL:
        sleep(g, m, warp, w.NEVER, w.LONG_SCOREBOARD, now + 1)
    elif kind == w.SLEEP:
        hold(g, m, warp, now + g.ops[row + w.OP_X], w.SLEEPING, now + 1)
    elif kind == w.AWAIT and g.ops[row + w.OP_Y]:
        left, group = g.ops[row + w.OP_X], m[warp + w.V_PRODUCT]
        until = ended(m, warp + w.V_PRODUCTS, group, left, now + 1)
        hold(g, m, warp, until, w.WAIT, now + 1)
    elif kind == w.FENCE or kind == w.AWAIT:
        awaits = 2 * g.ops[row + w.OP_X] + (1 if kind == w.FENCE else 2)
        m[warp + w.V_AWAITS] = awaits
        why = w.MEMBAR if kind == w.FENCE else w.LONG_SCOREBOARD
        if m[warp + w.V_FLIGHTS] > 0:
            sleep(g, m, warp, w.NEVER, why, now + 1)
        else:
            m[warp + w.V_AWAITS] = 0
            hold(g, m, warp, awaited(m, warp, awaits, now + 1), why, now + 1)


@jitable
def open_next(m: Words, number: int, ends: int) -> None:
    """Open the next group of copies or products; it has nothing yet that ends."""
    m[number] += 1
    m[ends + m[number] % w.GROUPS] = 0


@jitable
def hold(g: Machine, m: Words, warp: int, until: int, why: int, now: int) -> None:
    """Hold a warp back until then, if it does not sleep longer anyway."""
    m[warp + w.V_EARLIEST] = max(m[warp + w.V_EARLIEST], until)
    awake = m[warp + w.V_STATE] == w.READY
    if until > now and (awake or m[m[warp + w.V_WAKE_AT]] < until):
        sleep(g, m, warp, until, why, now)


@jitable
def access_count(g: Machine, m: Words, warp: int, row: int) -> int:
    """Returns how many accesses a warp's instruction makes: they come next in its stream."""
    stop = g.entries[(m[warp + w.V_ENTRY] + 1) * w.ENTRY_WORDS + w.ENTRY_ACCESS]
    access, found = m[warp + w.V_ACCESS], 0
    instruction = g.ops[row + w.OP_INSTRUCTION]
    while access + found < stop:
        if g.accesses[(access + found) * w.ACCESS_WORDS + w.A_INSTRUCTION] != instruction:
            break
        found += 1
    return found


@jitable
def start_flight(g: Machine, m: Words, s: int, warp: int, op: int, now: int) -> int:
    """Put a memory instruction into the queue; gives what its registers wait for."""
    row = op * w.OP_WORDS
    count = access_count(g, m, warp, row)
    m[w.FREE_COUNT] -= 1
    number = m[g.p[w.AT_FREE] + m[w.FREE_COUNT]]
    flight = g.p[w.AT_FLIGHTS] + number * w.F_WORDS
    prefetch(g.warps, m[warp + w.V_WARP] * g.p[w.WARP_WORDS])  # where its accesses are, soon
    m[flight + w.F_WARP] = warp
    m[flight + w.F_OP] = op
    m[flight + w.F_TIME] = 0
    m[flight + w.F_LEFT] = count
    m[flight + w.F_AGE] = m[warp + w.V_AGE]
    m[flight + w.F_GROUP] = m[warp + w.V_GROUP] if g.ops[row + w.OP_Y] else w.NEVER
    m[flight + w.F_NEEDED] = m[flight + w.F_NEXT] = 0
    m[flight + w.F_BLOCK] = m[m[warp + w.V_BLOCK] + w.B_NUMBER]
    m[flight + w.F_NUMBER] = m[warp + w.V_WARP]
    m[flight + w.F_SINCE] = now
    first = m[warp + w.V_ACCESS]
    m[flight + w.F_FIRST], m[flight + w.F_COUNT] = first, count
    m[warp + w.V_ACCESS] += count
    m[warp + w.V_FLIGHTS] += int(is_awaited(g, row))
    why = w.LONG_SCOREBOARD if g.ops[row + w.OP_X] else w.SHORT_SCOREBOARD
    if g.ops[row + w.OP_KIND] == w.BULK:
        enqueue(g, m, flight, first, count)
        return int(w.PENDING | number << w.REASON_BITS | why)
    capacity = g.p[w.SCHEDULERS] * g.p[w.LSU_QUEUE]
    place = m[w.QUEUE_HEAD] + m[w.QUEUE_COUNT]
    place -= capacity if place >= capacity else 0
    queued = g.p[w.AT_QUEUE] + place * w.Q_WORDS
    m[queued + w.Q_FLIGHT] = flight
    m[queued + w.Q_ACCESS] = first
    m[queued + w.Q_LEFT] = count
    m[w.QUEUE_COUNT] += 1
    m[s + w.S_QUEUED] += 1
    m[warp + w.V_QUEUED] += 1
    return int(w.PENDING | number << w.REASON_BITS | why)
