"""The log that recording code writes while a kernel runs: plain functions, compiled by Numba.

A log is one array of 64-bit words: a head, then regions of rows. A row is written for each basic
block that a warp enters, for each guard and each access in it, and for how its lanes have parted,
where they have. What a region has no room for is left out; `observe.compiled_trace` reads it all.
"""

from __future__ import annotations

from typing import Any

from warploom.program.accesses import GENERIC_SPACES
from warploom.ptx.ir import Space
from warploom.simt import warp_table
from warploom.simt.lane_counts import jitable
from warploom.texture.descriptors import TOUCHED

(
    ENTRIES,
    ENTRY_CAPACITY,
    ENTRIES_AT,
    GUARDS,
    GUARD_CAPACITY,
    GUARDS_AT,
    ACCESSES,
    ACCESS_CAPACITY,
    ACCESSES_AT,
    SCATTERED,
    SCATTERED_CAPACITY,
    SCATTERED_AT,
    CONTROLS,
    CONTROL_CAPACITY,
    CONTROLS_AT,
    WARPS,
    WARP_CAPACITY,
    NUMBERS_AT,
    STEPS_AT,
    STEP_CAPACITY,
    LEFT_STEPS,
    LEFT_WARPS,
    CURRENT,
    DIVERGENCES,
    RECONVERGENCES,
    KNOWN_AT,
    HEAD_WORDS,
) = range(27)
"""The head. Of each region how much there is, how much there can be, where it begins; CONTROLS
counts words, the others rows. WARPS: warps that are recorded, at most WARP_CAPACITY; for each warp
of the launch, NUMBERS has one more than its number (0: not come yet, -1: left out) and STEPS how
many of its instructions are recorded, at most STEP_CAPACITY, or LEFT_OUT. CURRENT: the entry that
runs now, or NONE. DIVERGENCES, MEETINGS: the branches' counts at the last entry. KNOWN: by a hash,
the scattered row and one more that had it last."""

KNOWN = 4096

ENTRY_WORDS, GUARD_WORDS, ACCESS_WORDS, SCATTERED_WORDS = 6, 3, 8, 32
E_WARP, E_BLOCK, E_MASK, E_LIVE, E_CONTROL, E_MARKS = range(6)
"""An entry: CONTROL is where the words begin that tell how the lanes have parted, or NONE; MARKS
are those of `observe.schema`, of the block's last instruction, and LOST."""
OPS = ("load", "store", "atomic")
TEXEL_SPACES = (Space.TEXTURE, Space.SURFACE)
SPACES = (*GENERIC_SPACES, Space.CONST, *TEXEL_SPACES)
"""The accesses that are recorded, by their numbers in an access's kind. Of texels it is the sectors
that a request touched, a lane for each."""
LOST = 1 << 8
"""The mark of an entry that has not all of its accesses, for want of room."""
LEFT_OUT = 1 << 62
"""A warp's steps where some of them were left out."""
G_ENTRY, G_INSTRUCTION, G_LANES = range(3)
A_ENTRY, A_INSTRUCTION, A_KIND, A_LANES, A_FIRST, A_STRIDE, A_SCATTERED, A_PHASE = range(8)
"""An access: KIND is space, op and size, a byte each (the size has the rest); FIRST the address of
the lowest lane and STRIDE the bytes from lane to lane, or SCATTERED the row that says for all lanes
how far from FIRST; equal rows are kept once, where they come soon after each other. PHASE: the
mbarrier that is looked at or told, of the cluster, and its phase (`abi.log_copies`); or
NONE."""

NODE_ROW, SPLIT_ROW = 7, 4
"""Words of a node and of a parked split behind [their numbers, TOP]: number, point, expected,
arrived, other block, other lanes, parent; and number, lanes, block, status."""


def record_block(
    log: Any, table: Any, counts: Any, first: int, branches: int, warp: int, block: int, size: int
) -> int:
    """Record that a warp enters a basic block of `size` instructions; its table's head is current.
    `first` is where the counts of the branches begin."""
    divergences, reconvergences = 0, 0
    for branch in range(branches):
        divergences += counts[first + 2 * branch]
        reconvergences += counts[first + 2 * branch + 1]
    if log[CURRENT] != warp_table.NONE:
        marks = log[ENTRIES_AT] + log[CURRENT] * ENTRY_WORDS + E_MARKS
        log[marks] |= int(divergences > log[DIVERGENCES]) + 2 * int(
            reconvergences > log[RECONVERGENCES]
        )
    log[DIVERGENCES], log[RECONVERGENCES], log[CURRENT] = (
        divergences,
        reconvergences,
        warp_table.NONE,
    )
    number = log[NUMBERS_AT] + warp
    if log[number] == 0:
        chosen = log[WARPS] < log[WARP_CAPACITY]
        log[WARPS] += int(chosen)
        log[LEFT_WARPS] += int(not chosen)
        log[number] = log[WARPS] if chosen else warp_table.NONE
    steps = log[STEPS_AT] + warp
    full = log[ENTRIES] >= log[ENTRY_CAPACITY] or log[CONTROLS] + 1024 > log[CONTROL_CAPACITY]
    if log[number] == warp_table.NONE or log[steps] >= log[STEP_CAPACITY] or full:
        log[steps] = LEFT_OUT
        log[LEFT_STEPS] += size
        return 0
    log[steps] += size
    at = log[ENTRIES_AT] + log[ENTRIES] * ENTRY_WORDS
    log[at + E_WARP] = log[number] - 1
    log[at + E_BLOCK] = block
    log[at + E_MASK] = table[warp_table.MASK]
    log[at + E_LIVE] = table[warp_table.LIVE]
    log[at + E_CONTROL] = warp_table.NONE
    log[at + E_MARKS] = 0
    if table[warp_table.TOP] != warp_table.NONE or table[warp_table.PARKED] != 0:
        log[at + E_CONTROL] = log[CONTROLS]
        write_control(log, table)
    log[CURRENT] = log[ENTRIES]
    log[ENTRIES] += 1
    return 0


@jitable
def write_control(log: Any, table: Any) -> None:
    """Append how a warp's lanes have parted: the nodes in use and the parked splits."""
    start = log[CONTROLS_AT] + log[CONTROLS]
    at = start + 3
    nodes, splits = 0, 0
    for node in range(warp_table.node_count(table[warp_table.LANES])):
        if (table[warp_table.FREE] >> node) & 1 == 0:
            row = warp_table.node_at(node)
            log[at] = node
            log[at + 1] = table[row + warp_table.POINT]
            log[at + 2] = table[row + warp_table.EXPECTED]
            log[at + 3] = table[row + warp_table.ARRIVED]
            log[at + 4] = table[row + warp_table.OTHER_BLOCK]
            log[at + 5] = table[row + warp_table.OTHER_MASK]
            log[at + 6] = table[row + warp_table.PARENT]
            at += NODE_ROW
            nodes += 1
    for split in range(table[warp_table.LANES]):
        if (table[warp_table.PARKED] >> split) & 1 == 1:
            row = warp_table.split_at(table, split)
            log[at] = split
            log[at + 1] = table[row + warp_table.S_MASK]
            log[at + 2] = table[row + warp_table.S_BLOCK]
            log[at + 3] = table[row + warp_table.S_STATUS]
            at += SPLIT_ROW
            splits += 1
    log[start] = nodes
    log[start + 1] = splits
    log[start + 2] = table[warp_table.TOP]
    log[CONTROLS] += at - start


def record_guard(log: Any, instruction: int, lanes: int) -> int:
    """Record that the guard of an instruction holds in these lanes."""
    if log[CURRENT] != warp_table.NONE and log[GUARDS] < log[GUARD_CAPACITY]:
        at = log[GUARDS_AT] + log[GUARDS] * GUARD_WORDS
        log[at + G_ENTRY] = log[CURRENT]
        log[at + G_INSTRUCTION] = instruction
        log[at + G_LANES] = lanes
        log[GUARDS] += 1
    return 0


def record_access(log: Any, addresses: Any, lanes: int, instruction: int, kind: int) -> int:
    """Record that these lanes reach into memory."""
    return append_access(log, addresses, 0, lanes, instruction, kind)


def record_texels(log: Any, scratch: Any, instruction: int, kind: int) -> int:
    """Record that a request for texels touched sectors, which `texture.texels.touch` left: 32 of
    them are an access, as if each were a lane's."""
    touched = scratch[TOUCHED]
    for index in range(TOUCHED + 1, TOUCHED + 1 + touched):
        scratch[index] <<= 5
    for first in range(0, touched, 32):
        lanes = (1 << min(32, touched - first)) - 1
        append_access(log, scratch, TOUCHED + 1 + first, lanes, instruction, kind)
    return 0


@jitable
def append_access(
    log: Any, addresses: Any, first: int, lanes: int, instruction: int, kind: int
) -> int:
    """Append a row for an access, the address of lane 0 stands at `first`; returns 1, or 0 where
    there is no room or no entry that it belongs to."""
    if lanes == 0 or log[CURRENT] == warp_table.NONE:
        return 0
    marks = log[ENTRIES_AT] + log[CURRENT] * ENTRY_WORDS + E_MARKS
    if log[ACCESSES] >= log[ACCESS_CAPACITY]:
        log[marks] |= LOST
        return 0
    leader, last, stride, even = -1, -1, 0, 1
    for lane in range(32):
        if (lanes >> lane) & 1:
            if leader < 0:
                leader = lane
            elif last == leader:
                step = addresses[first + lane] - addresses[first + last]
                stride = step // (lane - last)
                even = int(step == stride * (lane - last))
            elif addresses[first + lane] - addresses[first + last] != stride * (lane - last):
                even = 0
            last = lane
    scattered = warp_table.NONE
    if even == 0:
        scattered = scattered_row(log, addresses, first, lanes, leader)
        if scattered == warp_table.NONE:
            log[marks] |= LOST
            return 0
    at = log[ACCESSES_AT] + log[ACCESSES] * ACCESS_WORDS
    log[at + A_ENTRY] = log[CURRENT]
    log[at + A_INSTRUCTION] = instruction
    log[at + A_KIND] = kind
    log[at + A_LANES] = lanes
    log[at + A_FIRST] = addresses[first + leader]
    log[at + A_STRIDE] = stride
    log[at + A_SCATTERED] = scattered
    log[at + A_PHASE] = warp_table.NONE
    log[ACCESSES] += 1
    return 1


@jitable
def scattered_row(log: Any, addresses: Any, first: int, lanes: int, leader: int) -> int:
    """Return the row of how far lanes are from the leader's address, 0 for those that take no part;
    NONE where there is no room for it."""
    base = addresses[first + leader]
    row = log[SCATTERED_AT] + log[SCATTERED] * SCATTERED_WORDS
    full = log[SCATTERED] >= log[SCATTERED_CAPACITY]
    mixed = lanes
    for lane in range(32):
        offset = (addresses[first + lane] - base) * ((lanes >> lane) & 1)
        mixed = (mixed * 0x5851F42D + offset) & 0x3FFFFFFF
        if not full:
            log[row + lane] = offset
    known = log[KNOWN_AT] + (mixed ^ mixed >> 12) % KNOWN
    if log[known] > 0:
        other = log[SCATTERED_AT] + (log[known] - 1) * SCATTERED_WORDS
        same = 1
        for lane in range(32):
            offset = (addresses[first + lane] - base) * ((lanes >> lane) & 1)
            same &= int(log[other + lane] == offset)
        if same:
            return int(log[known] - 1)
    if full:
        return warp_table.NONE
    log[SCATTERED] += 1
    log[known] = log[SCATTERED]
    return int(log[SCATTERED] - 1)
