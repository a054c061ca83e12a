"""Takes an access of a warp: by runs of lanes where these are few, else lane by lane."""

from __future__ import annotations

from typing import Any

from warploom.cost.atomics import lane_order
from warploom.detector.bounds import is_allowed, row_of_range
from warploom.detector.knowledge import become, become_lane
from warploom.detector.launches import block_has_waited
from warploom.detector.layout import (
    AGENT,
    ARRIVES,
    ASYNC,
    ATOMIC,
    BULK,
    COMPARES,
    COMPLETES,
    COPIES,
    E_BLOCK,
    E_INSTRUCTION,
    E_LANES,
    E_OP,
    E_SIZE,
    E_SPACE,
    E_WARP,
    EXACT,
    GLOBAL,
    INIT,
    L_COPIES,
    LOAD,
    MBARRIER,
    ME_ADDRESS,
    ME_AGENT,
    ME_BASE,
    ME_LANE_AT,
    ME_SIZE,
    ME_SPACE,
    ME_STRIDE,
    ME_TIME,
    ME_WARP_AT,
    MEM,
    MOST_STRIDE,
    RACE,
    RELEASES,
    SHARED,
    SITE_WORDS,
    SITES_AT,
    STORE,
    STRONG,
    TOOLS,
    V_TIME,
)
from warploom.detector.lone_lanes import fetch_records, take_lone_lane
from warploom.detector.memory_words import check_words, check_written, take_lines
from warploom.detector.releases import read_strongly, write_strongly
from warploom.detector.shared_memory_owners import NOWHERE, shared_key, turn_to
from warploom.detector.tensor.copies import complete_copy, is_mbarrier, mbarrier
from warploom.detector.touched import touch_lane
from warploom.simt.lane_counts import ALL_LANES, count_lanes, first_lane, jitable, last_lane

WORD_OF_MBARRIER = 8
"""Bytes of an mbarrier; bulk copies move 16 at a time."""

WORD = 4
"""Lanes of so many bytes and more may be missing in a run (`runs`)."""

MANY = 8
"""An access in more runs than that is taken lane by lane."""


@jitable
def access(s: Any, e: Any, plan: Any, memory: Any, addresses: Any, data: Any) -> int:
    """Takes an access; returns the lanes that may do it."""
    lanes = e[E_LANES]
    flags = s[s[SITES_AT] + e[E_INSTRUCTION] * SITE_WORDS]
    s[ME_SPACE], s[ME_SIZE] = e[E_SPACE], e[E_SIZE]
    become(s, e[E_WARP] << 5)
    weak = e[E_OP] != ATOMIC and flags & ~COPIES == 0
    if weak and e[E_SPACE] <= SHARED and block_has_waited(s):
        kept = take_runs(s, e, plan, memory, addresses, data)
    else:
        kept = take_lanes(s, e, plan, memory, addresses, data, lanes)
    if flags & (RELEASES | STRONG | ARRIVES | COMPLETES) and s[EXACT]:
        s[s[ME_WARP_AT] + V_TIME] += 1
    return kept if s[TOOLS] & MEM else lanes


@jitable
def take_runs(s: Any, e: Any, plan: Any, memory: Any, addresses: Any, data: Any) -> int:
    """Takes a weak access, by runs of lanes that reach consecutive memory if there are few; returns
    the lanes that may do it. A warp whose addresses fall is one run from its last lane on."""
    lanes, wanted, falls = e[E_LANES], e[E_LANES], 0
    begins = first_lanes_of_rows(addresses, lanes, e[E_SIZE])
    rows = 1
    if begins & begins - 1:
        if s[EXACT] == 0 and e[E_OP] == LOAD:
            wanted = without_repeats(addresses, lanes)
            begins = first_lanes_of_rows(addresses, wanted, e[E_SIZE])
        if count_lanes(begins) > MANY:
            falls = int(lanes == ALL_LANES and falls_by(addresses, e[E_SIZE]) != 0)
            rows = 0
            begins = 1
            if falls == 0:
                begins = first_lanes_of_strided_runs(addresses, wanted, e[E_SIZE])
    if count_lanes(begins) > MANY:
        return int(take_lanes(s, e, plan, memory, addresses, data, lanes))
    while begins:
        following = begins & begins - 1
        run = wanted & -(begins & -begins)
        if following:
            run &= (following & -following) - 1
        lane, last = first_lane(begins) + 31 * falls, last_lane(run)
        behind = last - first_lane(begins)
        s[ME_ADDRESS] = address_of(s, e, addresses[lane])
        stride = e[E_SIZE]
        if behind and rows | falls == 0:
            stride = addresses[lane + 1] - addresses[lane]
        s[ME_STRIDE] = -stride if falls else stride
        end = s[ME_ADDRESS] + behind * stride + e[E_SIZE]
        row = row_of_range(s, e, s[ME_ADDRESS], end)
        if row < 0:
            return int(take_lanes(s, e, plan, memory, addresses, data, lanes))
        if row > 0:
            become_lane(s, (e[E_WARP] << 5) + lane)
            take_lines(s, e, memory, addresses, data, run >> first_lane(begins), end, row)
        begins = following
    return int(lanes)


@jitable
def without_repeats(addresses: Any, lanes: int) -> int:
    """Returns some lanes without those that have the address of the lane before and that of the
    lane behind: for what these load, the other two stand for them (`cells.keep_read`)."""
    same = 0
    for lane in range(1, 32):
        same |= int(addresses[lane] == addresses[lane - 1]) << lane
    same &= lanes & lanes << 1  # as the lane before, which is among them
    return int(lanes & ~(same & same >> 1))


@jitable
def falls_by(addresses: Any, size: int) -> int:
    """Returns whether the address of each lane of a warp is so many bytes before that of the lane
    before it."""
    differs = 0
    for lane in range(1, 32):
        differs |= addresses[lane] ^ addresses[lane - 1] - size
    return int(differs == 0)


@jitable
def first_lanes_of_rows(addresses: Any, lanes: int, size: int) -> int:
    """Returns those of some lanes that do not go on what the lanes before them began, where each
    lane reaches what follows the lane before it. Lanes between them need not be among them, unless
    they reach less than a word each (`runs`)."""
    begins, begin, before = 0, 0, -2
    for lane in range(32):
        if lanes >> lane & 1:
            at = addresses[lane] - lane * size
            if before < 0 or at != begin or (size < WORD and before != lane - 1):
                begins |= 1 << lane
            begin, before = at, lane
    return begins


@jitable
def first_lanes_of_strided_runs(addresses: Any, lanes: int, size: int) -> int:
    """Return those of some lanes that do not go on what the lanes before them began: addresses that
    rise by one stride, a multiple of the size."""
    begins, stride, before = 0, 0, 0
    for lane in range(32):
        here = lanes >> lane & 1
        rise = addresses[lane] - addresses[lane - 1] if here and before else 0
        if stride == 0 and size <= rise <= MOST_STRIDE and rise % size == 0:
            stride = rise
        elif here and (stride == 0 or rise != stride):
            begins |= 1 << lane
            stride = 0
        before = here
    return begins


@jitable
def take_lanes(
    s: Any, e: Any, plan: Any, memory: Any, addresses: Any, data: Any, lanes: int
) -> int:
    """Takes the access of some lanes one by one; returns those that may do it."""
    kept, wrote, plain = 0, 0, 0
    flags = s[s[SITES_AT] + e[E_INSTRUCTION] * SITE_WORDS]
    if s[TOOLS] & RACE:
        plain = fetch_records(s, e, addresses, lanes)
    order = 1 << 5
    if e[E_OP] == ATOMIC:
        order = lane_order(addresses, lanes, plan, e[E_BLOCK])
    for turn in range(32):
        lane = (order + turn * (order >> 5)) % 32
        thread = (e[E_WARP] << 5) + lane
        if (
            plain
            and lanes >> lane & 1
            and take_lone_lane(s, e, data, addresses[lane], lane, thread, plain)
        ):
            kept |= 1 << lane
        elif lanes >> lane & 1:
            become_lane(s, thread)
            s[ME_ADDRESS] = address_of(s, e, addresses[lane])
            if s[ME_ADDRESS] == NOWHERE:
                kept |= 1 << lane  # a fault, which stops the launch
                continue
            row = is_allowed(s, e)
            if row >= 0:
                kept |= 1 << lane
                if row > 0 and s[TOOLS] & (RACE | INIT):
                    writes = int(e[E_OP] != LOAD)
                    if flags & COMPARES:
                        at = s[ME_BASE] + s[ME_ADDRESS]
                        writes = swaps(e, memory, at, addresses, data, lane, wrote)
                    wrote |= writes << lane
                    take_access(s, e, memory, addresses, data, lane, row, writes)
    return int(kept)


@jitable
def address_of(s: Any, e: Any, address: int) -> int:
    """Turn to the memory to which an address of the event's space leads; return the address there,
    NOWHERE where the cluster has no such block."""
    return int(turn_to(s, e, address) if e[E_SPACE] == SHARED else address)


@jitable
def take_access(
    s: Any, e: Any, memory: Any, addresses: Any, data: Any, lane: int, row: int, writes: int
) -> None:
    """Takes the access of one lane to memory that it may reach."""
    at, flags = s[ME_ADDRESS], s[s[SITES_AT] + e[E_INSTRUCTION] * SITE_WORDS]
    key = at if e[E_SPACE] == GLOBAL else shared_key(s, at)
    completes = flags & BULK and e[E_OP] == STORE and e[E_SIZE] == WORD_OF_MBARRIER
    if flags & COMPLETES:
        completes = e[E_OP] == ATOMIC and is_mbarrier(s, key)
    if flags & MBARRIER or completes:
        word = word_at(memory, s[ME_BASE] + at)
        if flags & MBARRIER:
            mbarrier(s, key, word, flags)
        else:
            complete_copy(s, key, word)
        return
    touch_lane(s, e, row, writes)
    if flags & ASYNC:
        s[ME_AGENT], s[ME_TIME] = AGENT, s[s[ME_LANE_AT] + L_COPIES]
    if s[TOOLS] & INIT:
        check_written(s, e, flags, row)
    if s[TOOLS] & RACE:
        check_words(s, e, memory, addresses, data, lane, row, writes)
        if s[EXACT] and flags & STRONG:
            if e[E_OP] != STORE:
                read_strongly(s, key, flags)
            if writes:
                write_strongly(s, key, flags, int(e[E_OP] == ATOMIC))


@jitable
def swaps(e: Any, memory: Any, at: int, addresses: Any, data: Any, lane: int, wrote: int) -> int:
    """Returns whether a compare-and-swap finds the value that it compares with: in memory, whose
    byte `at` on the host it reaches, or what a lane before it has left there. `wrote` are the lanes
    that swapped."""
    size = e[E_SIZE]
    left = -1
    for other in range(32):
        if wrote >> other & 1 and addresses[other] == addresses[lane]:
            left = other
    for byte in range(size):
        old = memory[at + byte]
        if left >= 0:
            old = data[(32 + left) * size + byte]
        if old != data[lane * size + byte]:
            return 0
    return 1


@jitable
def word_at(memory: Any, address: int) -> int:
    """Returns the 64-bit word at an address of the host, as a signed number."""
    word = 0
    for byte in range(8):
        word |= int(memory[address + byte]) << 8 * byte
    return word
