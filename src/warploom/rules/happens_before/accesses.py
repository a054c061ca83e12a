"""Takes an access of a warp: its bounds, bytes never written, and what it conflicts with."""

from __future__ import annotations

from typing import Any

from warploom.rules.atomics import lane_order
from warploom.rules.distinct import ALL_LANES, first_lane, jitable
from warploom.rules.happens_before.cells import third_word, touch
from warploom.rules.happens_before.knowledge import become, become_lane
from warploom.rules.happens_before.lines import open_line, stamp, take_line
from warploom.rules.happens_before.pool import report
from warploom.rules.happens_before.releases import (
    complete_copy,
    forget_releases,
    mbarrier,
    read_strongly,
    write_strongly,
)
from warploom.rules.happens_before.words import (
    A_CELLS,
    A_CONSTANT,
    A_END,
    A_LINES,
    A_START,
    A_WRITTEN,
    AGENT,
    ALLOCATION_WORDS,
    ALLOCATIONS,
    ALLOCATIONS_AT,
    ARRIVES,
    ASYNC,
    ATOMIC,
    BULK,
    CELL_WORDS,
    COMPARES,
    COMPLETES,
    COPIES,
    E_BASE,
    E_BLOCK,
    E_INSTRUCTION,
    E_LANES,
    E_LIMIT,
    E_OP,
    E_PART,
    E_SIZE,
    E_SPACE,
    E_WARP,
    EXACT,
    GLOBAL,
    H_STATE,
    IN_CELLS,
    INIT,
    K_MISALIGNED,
    K_OUT_OF_BOUNDS,
    K_READ_ONLY,
    K_UNWRITTEN,
    L_COPIES,
    LAST_ALLOCATION,
    LINE_BYTES,
    LINE_WORDS,
    LOAD,
    MBARRIER,
    ME_ADDRESS,
    ME_AGENT,
    ME_BLOCK,
    ME_LANE_AT,
    ME_SIZE,
    ME_SLOT,
    ME_SPACE,
    ME_TIME,
    ME_WARP_AT,
    MEM,
    RACE,
    RELEASES,
    SHARED,
    SITE_WORDS,
    SITES_AT,
    SLOT_CELLS,
    SLOT_LINES,
    SLOT_WRITTEN,
    STORE,
    STRONG,
    TOOLS,
    V_TIME,
)

WORD_OF_MBARRIER = 8
"""Bytes of an mbarrier; bulk copies move 16 at a time."""


@jitable
def access(s: Any, e: Any, plan: Any, memory: Any, addresses: Any, data: Any) -> int:
    """Takes an access; returns the lanes that may do it."""
    lanes, op = e[E_LANES], e[E_OP]
    flags = s[s[SITES_AT] + e[E_INSTRUCTION] * SITE_WORDS]
    s[ME_SPACE], s[ME_SIZE] = e[E_SPACE], e[E_SIZE]
    become(s, e[E_WARP] << 5)
    if op != ATOMIC and flags & ~COPIES == 0 and lies_in_lines(e, addresses):
        row = row_of_range(s, e, addresses[0])
        if row > 0:
            take_lines(s, e, memory, addresses, data, row)
            return int(lanes)
    kept = take_lanes(s, e, plan, memory, addresses, data)
    if flags & (RELEASES | STRONG | ARRIVES | COMPLETES) and s[EXACT]:
        s[s[ME_WARP_AT] + V_TIME] += 1
    return kept if s[TOOLS] & MEM else lanes


@jitable
def take_lanes(s: Any, e: Any, plan: Any, memory: Any, addresses: Any, data: Any) -> int:
    """Takes an access lane by lane; returns the lanes that may do it."""
    lanes, kept, wrote = e[E_LANES], 0, 0
    flags = s[s[SITES_AT] + e[E_INSTRUCTION] * SITE_WORDS]
    order, needed = 1 << 5, lanes
    if e[E_OP] == ATOMIC:
        order = lane_order(addresses, lanes, plan, e[E_BLOCK])
    elif e[E_OP] == LOAD and s[EXACT] == 0 and lanes and agree(addresses, lanes):
        needed = lanes & -lanes | 1 << last_lane(lanes)
    for turn in range(32):
        lane = (order + turn * (order >> 5)) % 32
        if lanes >> lane & 1:
            become_lane(s, (e[E_WARP] << 5) + lane)
            s[ME_ADDRESS] = addresses[lane]
            row = is_allowed(s, e)
            if row >= 0:
                kept |= 1 << lane
                if row > 0 and s[TOOLS] & (RACE | INIT) and needed >> lane & 1:
                    writes = int(e[E_OP] != LOAD)
                    if flags & COMPARES:
                        writes = swaps(e, memory, addresses, data, lane, wrote)
                    wrote |= writes << lane
                    take_access(s, e, memory, data, lane, row, writes)
    return int(kept)


@jitable
def agree(addresses: Any, lanes: int) -> int:
    """Returns whether all of these lanes have one address."""
    first = addresses[first_lane(lanes)]
    for lane in range(32):
        if lanes >> lane & 1 and addresses[lane] != first:
            return 0
    return 1


@jitable
def last_lane(lanes: int) -> int:
    """Returns the highest lane of some."""
    lane = 31
    while lanes >> lane & 1 == 0:
        lane -= 1
    return lane


# ---- whole lines --------------------------------------------------------------------------------


@jitable
def lies_in_lines(e: Any, addresses: Any) -> int:
    """Returns whether the lanes of a whole warp reach whole lines, one behind the other."""
    size, first = e[E_SIZE], addresses[0]
    if (
        e[E_LANES] != ALL_LANES
        or size < 4
        or size > 16
        or first % LINE_BYTES
        or e[E_SPACE] > SHARED
    ):
        return 0
    differs = 0
    for lane in range(32):
        differs |= addresses[lane] ^ first + lane * size
    return int(differs == 0)


@jitable
def row_of_range(s: Any, e: Any, first: int) -> int:
    """Returns the row of the allocation that has all bytes of such an access, 1 for shared memory;
    -1 where it has not, or they may not be written."""
    end = first + 32 * e[E_SIZE]
    if e[E_SPACE] == SHARED:
        return 1 if first >= 0 and end <= e[E_LIMIT] else -1
    row = allocation(s, first)
    if row < 0 or end > s[row + A_END] or (e[E_OP] != LOAD and s[row + A_CONSTANT]):
        return -1
    return int(row)


@jitable
def take_lines(s: Any, e: Any, memory: Any, addresses: Any, data: Any, row: int) -> None:
    """Takes an access of whole lines; what a line cannot tell, lane by lane."""
    size, first, shared = e[E_SIZE], addresses[0], int(e[E_SPACE] == SHARED)
    lanes_of_line = LINE_BYTES // size
    begins = e[E_WARP] << 5
    if s[TOOLS] & INIT:
        s[ME_ADDRESS], s[ME_SIZE] = first, 32 * size
        check_written(s, e, s[s[SITES_AT] + e[E_INSTRUCTION] * SITE_WORDS], row)
        s[ME_SIZE] = size
    if s[TOOLS] & RACE == 0:
        return
    lines = s[ME_SLOT] + s[SLOT_LINES] if shared else s[row + A_LINES]
    at = first if shared else first - (s[row + A_START] & -LINE_BYTES)
    line = lines + at // LINE_BYTES * LINE_WORDS
    for number in range(size // 4):
        thread = begins + number * lanes_of_line
        become_lane(s, thread)
        stamp(s, line, shared)
        if take_line(s, line, thread, e[E_OP], size) == 0:
            for lane in range(number * lanes_of_line, (number + 1) * lanes_of_line):
                become_lane(s, begins + lane)
                s[ME_ADDRESS] = addresses[lane]
                check_words(s, e, memory, data, lane, row, 1)
        line += LINE_WORDS


# ---- one lane -----------------------------------------------------------------------------------


@jitable
def is_allowed(s: Any, e: Any) -> int:
    """Returns where the current access's allocation has its row, 1 for one of shared memory, 0 for
    what is not kept; -1 for an access that may not be, which is reported."""
    at, size = s[ME_ADDRESS], e[E_SIZE]
    kind, row = -1, 0
    if e[E_SPACE] == GLOBAL:
        row = allocation(s, at)
        if row < 0 or at + size > s[row + A_END]:
            kind = K_OUT_OF_BOUNDS
        elif e[E_OP] != LOAD and s[row + A_CONSTANT]:
            kind = K_READ_ONLY
    else:
        row = int(e[E_SPACE] == SHARED)
        if at < 0 or at + size > e[E_LIMIT]:
            kind = K_OUT_OF_BOUNDS
    if kind < 0 and at % size:
        kind = K_MISALIGNED
    if kind < 0:
        return row
    if s[TOOLS] & MEM:
        report(s, kind, -1, -1, at, size, e[E_OP])
    return -1


@jitable
def allocation(s: Any, address: int) -> int:
    """Returns the row of the allocation that the byte at an address belongs to, -1 for none."""
    row = s[LAST_ALLOCATION]
    if row and s[row + A_START] <= address < s[row + A_END]:
        return int(row)
    low, high = 0, s[ALLOCATIONS]
    while low < high:
        middle = (low + high) // 2
        if s[s[ALLOCATIONS_AT] + middle * ALLOCATION_WORDS + A_START] <= address:
            low = middle + 1
        else:
            high = middle
    row = s[ALLOCATIONS_AT] + (low - 1) * ALLOCATION_WORDS
    if low == 0 or address >= s[row + A_END]:
        return -1
    s[LAST_ALLOCATION] = row
    return int(row)


@jitable
def swaps(e: Any, memory: Any, addresses: Any, data: Any, lane: int, wrote: int) -> int:
    """Returns whether a compare-and-swap finds the value that it compares with: in memory, or what
    a lane before it has left there. `wrote` are the lanes that swapped."""
    size = e[E_SIZE]
    left = -1
    for other in range(32):
        if wrote >> other & 1 and addresses[other] == addresses[lane]:
            left = other
    for byte in range(size):
        old = memory[e[E_BASE] + addresses[lane] + byte]
        if left >= 0:
            old = data[(32 + left) * size + byte]
        if old != data[lane * size + byte]:
            return 0
    return 1


@jitable
def take_access(s: Any, e: Any, memory: Any, data: Any, lane: int, row: int, writes: int) -> None:
    """Takes the access of one lane to memory that it may reach."""
    at, flags = s[ME_ADDRESS], s[s[SITES_AT] + e[E_INSTRUCTION] * SITE_WORDS]
    key = at if e[E_SPACE] == GLOBAL else -1 - (s[ME_BLOCK] << 24 | at)
    completes = flags & BULK and e[E_OP] == STORE and e[E_SIZE] == WORD_OF_MBARRIER
    if flags & MBARRIER or completes or (flags & COMPLETES and e[E_OP] == ATOMIC):
        word = word_at(memory, e[E_BASE] + at)
        if flags & MBARRIER:
            mbarrier(s, key, word, flags)
        else:
            complete_copy(s, key, word)
        return
    if flags & ASYNC:
        s[ME_AGENT], s[ME_TIME] = AGENT, s[s[ME_LANE_AT] + L_COPIES]
    if s[TOOLS] & INIT:
        check_written(s, e, flags, row)
    if s[TOOLS] & RACE:
        check_words(s, e, memory, data, lane, row, writes)
        if s[EXACT] and flags & STRONG:
            if e[E_OP] != STORE:
                read_strongly(s, key, flags)
            if writes:
                write_strongly(s, key, flags, int(e[E_OP] == ATOMIC))


@jitable
def word_at(memory: Any, address: int) -> int:
    """Returns the 64-bit word at an address of the host, as a signed number."""
    word = 0
    for byte in range(8):
        word |= int(memory[address + byte]) << 8 * byte
    return word


@jitable
def check_words(s: Any, e: Any, memory: Any, data: Any, lane: int, row: int, writes: int) -> None:
    """Checks each aligned four bytes of an access against those before it."""
    at, end = s[ME_ADDRESS], s[ME_ADDRESS] + e[E_SIZE]
    op = e[E_OP] if writes else LOAD
    flags = s[s[SITES_AT] + e[E_INSTRUCTION] * SITE_WORDS]
    shared = int(e[E_SPACE] == SHARED)
    lines, cells, base = s[ME_SLOT] + s[SLOT_LINES], s[ME_SLOT] + s[SLOT_CELLS], 0
    if not shared:
        lines, cells, base = s[row + A_LINES], s[row + A_CELLS], s[row + A_START] & -LINE_BYTES
    word = at & ~3
    while word < end:
        bytes_, value = 15, 0
        if word < at or word + 4 > end:
            bytes_ = (15 << max(at - word, 0) & 15) & (15 >> max(word + 4 - end, 0))
        if op == STORE:
            for byte in range(4):
                if bytes_ >> byte & 1:
                    value |= stored_byte(e, data, lane, word + byte - at) << 8 * byte
        number = (word - base) // LINE_BYTES
        line = lines + number * LINE_WORDS
        stamp(s, line, shared)
        if s[line + H_STATE] != IN_CELLS:
            first = cells + number * (LINE_BYTES // 4) * CELL_WORDS
            open_line(s, line, first, memory, e[E_BASE] + base + number * LINE_BYTES)
        cell = cells + (word - base) // 4 * CELL_WORDS
        strong = touch(s, cell, third_word(s, op, bytes_, flags), value)
        if strong and op == STORE and s[EXACT] and flags & STRONG == 0:
            forget_releases(s, -1 - (s[ME_BLOCK] << 24 | at) if shared else at)
        word += 4


@jitable
def stored_byte(e: Any, data: Any, lane: int, place: int) -> int:
    """Returns a byte of what a lane stores."""
    part = e[E_PART]
    return int(data[(place // part * 32 + lane) * part + place % part])


@jitable
def check_written(s: Any, e: Any, flags: int, row: int) -> None:
    """Reports a read of bytes that nobody has written, but not where it only copies; what is
    written is written from then on."""
    shared = e[E_SPACE] == SHARED
    bits = s[ME_SLOT] + s[SLOT_WRITTEN]
    base = 0
    if not shared:
        bits, base = s[row + A_WRITTEN], s[row + A_START]
        if bits == 0:
            return
    place = s[ME_ADDRESS] - base
    end, missing = place + s[ME_SIZE], 0
    while place < end:
        count = min(32 - (place & 31), end - place)
        mask = ((1 << count) - 1) << (place & 31)
        word = bits + (place >> 5)
        missing |= mask & ~s[word]
        if e[E_OP] != LOAD:
            s[word] |= mask
        place += count
    if missing and e[E_OP] != STORE and flags & COPIES == 0:
        report(s, K_UNWRITTEN, -1, -1, s[ME_ADDRESS], e[E_SIZE], e[E_OP])
