"""Moves warps through their streams: from operation to operation, through barriers to the end;
brings blocks into an SM, and out of it."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.machine import Machine, Words
from warploom.timing.engine.phases import clear_phases, release_phases
from warploom.timing.engine.waits import close_gap, set_state, settle, sleep, stop_ready


@jitable
def enter(g: Machine, m: Words, warp: int) -> None:
    """Enter the basic block of a warp's new entry."""
    entry = m[warp + w.V_ENTRY] * w.ENTRY_WORDS
    block = g.entries[entry + w.ENTRY_BLOCK] * w.BLOCK_WORDS
    m[warp + w.V_OP] = g.blocks[block + w.BLOCK_START]
    m[warp + w.V_OP_STOP] = g.blocks[block + w.BLOCK_STOP]
    m[warp + w.V_ACCESS] = g.entries[entry + w.ENTRY_ACCESS]


@jitable
def advance(g: Machine, m: Words, warp: int, now: int, earliest: int) -> None:
    """Go to the next operation, from `now` on, which does not issue before `earliest`; copies are
    made on the way. A warp that comes to the end of its stream has left."""
    why = w.WAIT
    m[warp + w.V_OP] += 1
    while True:
        while m[warp + w.V_OP] >= m[warp + w.V_OP_STOP]:
            stop = m[warp + w.V_OP_STOP]
            m[warp + w.V_ENTRY] += 1
            if m[warp + w.V_ENTRY] >= m[warp + w.V_ENTRY_STOP]:
                leave(g, m, warp, now)
                return
            enter(g, m, warp)
            if m[warp + w.V_OP] != stop:
                earliest = max(earliest, now - 1 + g.p[w.LATENCY_BRANCH])
                why = w.BRANCH_RESOLVING
                if not fetched(g, m, warp):
                    earliest = max(earliest, now + g.p[w.LATENCY_FETCH])
                    why = w.NO_INSTRUCTION
        op = m[warp + w.V_OP]
        if op & ((1 << g.p[w.FETCH_LINE_BITS]) - 1) == 0:
            fetched(g, m, warp)  # those that follow are fetched ahead
        if g.ops[op * w.OP_WORDS + w.OP_KIND] != w.COPY:
            break
        copy(g, m, warp, op)
        m[warp + w.V_OP] += 1
    m[warp + w.V_LEFT] = g.ops[op * w.OP_WORDS + w.OP_SLOTS]
    settle(g, m, warp, now, earliest, why)


@jitable
def fetched(g: Machine, m: Words, warp: int) -> bool:
    """Returns whether the instruction cache of the warp's scheduler has its operation; it has it
    then."""
    line = m[warp + w.V_OP] >> g.p[w.FETCH_LINE_BITS]
    number = (m[warp + w.V_SCHEDULER] - g.p[w.AT_SCHEDULERS]) // w.S_WORDS
    cache = g.p[w.AT_FETCH] + number * g.p[w.FETCH_LINES]
    at = cache + line % g.p[w.FETCH_LINES]
    known = m[at] == line + 1
    m[at] = line + 1
    return bool(known)


@jitable
def copy(g: Machine, m: Words, warp: int, op: int) -> None:
    """Make what a copy writes ready when what it reads is."""
    base, row, latest = m[warp + w.V_REGISTERS], op * w.OP_WORDS, 0
    first = g.ops[row + w.OP_NEEDS_AT]
    for place in range(first, first + g.ops[row + w.OP_NEEDS]):
        latest = max(latest, m[base + g.registers[place]])
    first = g.ops[row + w.OP_WRITES_AT]
    for place in range(first, first + g.ops[row + w.OP_WRITES]):
        m[base + g.registers[place]] = latest


# ---- barriers -----------------------------------------------------------------------------------


@jitable
def arrive(g: Machine, m: Words, warp: int, op: int, now: int) -> bool:
    """Let a warp come to a barrier; returns whether it has to wait there."""
    row, block = op * w.OP_WORDS, m[warp + w.V_BLOCK]
    number, need = g.ops[row + w.OP_X] % w.BARRIERS, g.ops[row + w.OP_Y]
    waits = need >= 0
    if not waits:
        need = -1 - need
    at = block + w.B_ARRIVED + number
    m[at] += 1
    m[block + w.B_WAITING] += int(waits)
    m[warp + w.V_BARRIER] = number
    expected = need if need > 0 else m[block + w.B_WARPS]
    if m[at] >= expected:
        m[block + w.B_WAITING] -= int(waits)
        release(g, m, block, number, now)
        return False
    if m[block + w.B_WAITING] >= m[block + w.B_WARPS]:
        # All wait, as parts of warps did: the functional run says that they went on.
        m[block + w.B_WAITING] -= int(waits)
        for other in range(w.BARRIERS):
            release(g, m, block, other, now)
        return False
    return bool(waits)


@jitable
def release(g: Machine, m: Words, block: int, number: int, now: int) -> None:
    """Let the warps go on that wait at a barrier of a block."""
    m[block + w.B_ARRIVED + number] = 0
    place = (block - g.p[w.AT_BLOCKS]) // w.B_WORDS
    first = g.p[w.AT_WARPS] + place * g.p[w.WARPS_PER_BLOCK] * w.V_WORDS
    for index in range(g.p[w.WARPS_PER_BLOCK]):
        warp = first + index * w.V_WORDS
        waits = m[warp + w.V_STATE] == w.ASLEEP and m[warp + w.V_WHY] == w.BARRIER
        if waits and m[warp + w.V_BARRIER] == number and m[m[warp + w.V_WAKE_AT]] == w.NEVER:
            m[block + w.B_WAITING] -= 1
            sleep(g, m, warp, now + g.p[w.LATENCY_BARRIER], w.BARRIER, now)


@jitable
def release_after_exit(g: Machine, m: Words, block: int, now: int) -> None:
    """Note that a warp has ended: those left may be all that a barrier waits for."""
    if m[block + w.B_WAITING] > 0 and m[block + w.B_WAITING] >= m[block + w.B_WARPS]:
        for number in range(w.BARRIERS):
            release(g, m, block, number, now)


@jitable
def part(g: Machine, m: Words, now: int) -> None:
    """Let the warps part that have met those of other SMs: those of this one go on, once they have
    been told."""
    m[w.MET] = 0
    if g.p[w.PHASES] > 0:
        release_phases(g, m, now)
    told = now + (g.p[w.LATENCY_L2] if g.p[w.L2_SETS] > 0 else g.p[w.LATENCY_DRAM])
    for slot in range(g.p[w.SLOTS]):
        warp = g.p[w.AT_WARPS] + slot * w.V_WORDS
        if m[warp + w.V_STATE] == w.ASLEEP and m[warp + w.V_AWAITS] < 0:
            m[warp + w.V_AWAITS] = 0
            settle(g, m, warp, now, max(told, m[warp + w.V_EARLIEST]), w.LONG_SCOREBOARD)


# ---- blocks -------------------------------------------------------------------------------------


@jitable
def leave(g: Machine, m: Words, warp: int, now: int) -> None:
    """End a warp; with the last of its block, the block, and another one may come."""
    s, block = m[warp + w.V_SCHEDULER], m[warp + w.V_BLOCK]
    count_live(m, now)
    set_state(g, m, warp, w.NOT_SELECTED, now)
    m[s + w.S_WARPS + w.NOT_SELECTED] -= 1
    stop_ready(m, warp)
    if m[warp + w.V_ACTIVE]:
        m[s + w.S_ACTIVE] -= 1
    m[warp + w.V_STATE] = w.NOT_THERE
    m[m[warp + w.V_WAKE_AT]] = w.NEVER
    m[w.LIVE_WARPS] -= 1
    m[block + w.B_WARPS] -= 1
    if m[block + w.B_WARPS] == 0:
        m[w.LIVE_BLOCKS] -= 1
        m[w.BLOCKS_DONE] += 1
        m[w.LAST_DONE] = now
    else:
        release_after_exit(g, m, block, now)


@jitable
def launch_reserved(g: Machine, m: Words, now: int) -> None:
    """Launch blocks that are reserved for this SM in its free places."""
    for index in range(g.p[w.BLOCK_SLOTS]):
        if m[w.RESERVED_COUNT] == 0:
            return
        place = g.p[w.AT_BLOCKS] + index * w.B_WORDS
        if m[place + w.B_WARPS] == 0:
            launch(g, m, place, now)


@jitable
def launch(g: Machine, m: Words, place: int, now: int) -> None:
    """Launch the next reserved block in a free place."""
    head = m[w.RESERVED_HEAD]
    number = m[g.p[w.AT_RESERVED] + head]
    m[w.RESERVED_HEAD] = (head + 1) % g.p[w.RESERVED]
    m[w.RESERVED_COUNT] -= 1
    count_live(m, now)
    warps = g.p[w.WARPS_PER_BLOCK]
    m[place + w.B_WARPS] = warps
    m[place + w.B_WAITING] = 0
    m[place + w.B_NUMBER], m[place + w.B_GRID] = m[w.LAUNCHED], number
    clear_phases(g, m, place)
    for barrier in range(w.BARRIERS):
        m[place + w.B_ARRIVED + barrier] = 0
    first = g.p[w.AT_WARPS] + (place - g.p[w.AT_BLOCKS]) // w.B_WORDS * warps * w.V_WORDS
    m[w.LIVE_BLOCKS] += 1
    m[w.LIVE_WARPS] += warps
    for index in range(warps):
        begin(g, m, first + index * w.V_WORDS, number * warps + index, place, now)


@jitable
def begin(g: Machine, m: Words, warp: int, number: int, block: int, now: int) -> None:
    """Put a warp of the launch into a slot."""
    for word in range(w.V_WORDS):
        m[warp + word] = 0
    slot = (warp - g.p[w.AT_WARPS]) // w.V_WORDS
    own = slot % g.p[w.SCHEDULERS]
    s = g.p[w.AT_SCHEDULERS] + own * w.S_WORDS
    base = g.p[w.AT_READY] + slot * g.p[w.REGISTERS]
    m[warp + w.V_SCHEDULER], m[warp + w.V_REGISTERS] = s, base
    m[warp + w.V_WAKE_AT] = s + w.S_WAKES + slot // g.p[w.SCHEDULERS]
    m[m[warp + w.V_WAKE_AT]] = w.NEVER
    m[warp + w.V_UNITS] = g.p[w.AT_UNITS] + own * g.p[w.UNIT_COUNT]
    for register in range(g.p[w.REGISTERS]):
        m[base + register] = 0
    close_gap(m, s, now)
    stream = g.warps[number * g.p[w.WARP_WORDS]] * w.STREAM_WORDS
    m[warp + w.V_WARP] = number
    m[warp + w.V_BLOCK] = block
    m[warp + w.V_AGE] = m[w.LAUNCHED]
    m[w.LAUNCHED] += 1
    m[warp + w.V_ENTRY] = g.streams[stream + w.STREAM_ENTRIES]
    m[warp + w.V_ENTRY_STOP] = g.streams[stream + w.STREAM_STOP]
    m[warp + w.V_SINCE] = now
    m[warp + w.V_WHY] = m[warp + w.V_COUNTED] = w.NO_INSTRUCTION
    m[s + w.S_WARPS + w.NO_INSTRUCTION] += 1
    enter(g, m, warp)
    m[warp + w.V_OP] -= 1
    advance(g, m, warp, now, now)
    if m[warp + w.V_STATE] != w.NOT_THERE:
        m[warp + w.V_EARLIEST] = now + g.p[w.BLOCK_LAUNCH_CYCLES]
        sleep(g, m, warp, now + g.p[w.BLOCK_LAUNCH_CYCLES], w.NO_INSTRUCTION, now)


@jitable
def count_live(m: Words, now: int) -> None:
    """Account for the resident warps before `now`."""
    passed = now - m[w.LIVE_SINCE]
    if passed > 0:
        m[w.ACTIVE_WARP_CYCLES] += passed * m[w.LIVE_WARPS]
        if m[w.LIVE_WARPS] > 0:
            m[w.ACTIVE_CYCLES] += passed
        m[w.LIVE_SINCE] = now
