"""Defines the log of a recorded launch, from which traces and modelled time are made, and the
functions by which compiled kernels write it, compiled by Numba.

A log is one array of 64-bit words: a head, then regions of rows. A kernel appends an entry for each
basic block that a warp enters, and rows for each guard and each access in that block; where lanes
have diverged, an entry also has a copy of the warp's SIMT stack. Rows that exceed the capacity of a
region are dropped, and marked as lost. `observe.compiled_trace` reads the log."""

from __future__ import annotations

from typing import Any

from warploom.isa.instruction import Space
from warploom.program.accesses import GENERIC_SPACES
from warploom.simt import warp_table
from warploom.simt.lane_counts import jitable
from warploom.simt.warp_table import WarpTable
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
"""The words of the head.

Of each region: its number of rows (of CONTROLS: of words), its capacity, and the offset of its
first word (*_AT). WARPS: the warps that are recorded, at most WARP_CAPACITY. NUMBERS_AT, STEPS_AT:
offsets of arrays by warp of the launch: its number in the log plus 1 (0: not seen yet, -1: left
out); its recorded instructions, at most STEP_CAPACITY, or LEFT_OUT. LEFT_STEPS, LEFT_WARPS: the
instructions and warps that are left out. CURRENT: the entry being executed, or NONE. DIVERGENCES,
RECONVERGENCES: the sums of the branches' counts at the last entry. KNOWN_AT: the offset of a hash
table of KNOWN words: by the hash of a row of SCATTERED, that row's number plus 1."""

LogWords = Any
"""Arrays of 64-bit integers, pointers in compiled code: the log, and the table of a warp
(`simt.warp_table`)."""

KNOWN = 4096
"""The size of the hash table that finds equal rows of SCATTERED."""

ENTRY_WORDS, GUARD_WORDS, ACCESS_WORDS, SCATTERED_WORDS = 6, 3, 8, 32
E_WARP, E_BLOCK, E_MASK, E_LIVE, E_CONTROL, E_MARKS = range(6)
"""The words of an entry. WARP: the warp's number in the log. BLOCK: the basic block. MASK, LIVE:
active lanes, and lanes that have not exited. CONTROL: the offset in CONTROLS of the warp's diverged
state, or NONE. MARKS: those of `observe.schema` for the block's last instruction, and LOST."""
OPS = ("load", "store", "atomic")
TEXEL_SPACES = (Space.TEXTURE, Space.SURFACE)
SPACES = (*GENERIC_SPACES, Space.CONST, *TEXEL_SPACES)
"""Operations and spaces, by their numbers in the kind of an access. An access to a texel space
holds the sectors that a texture or surface request touched, one in each lane."""
LOST = 1 << 8
"""The mark of an entry of which some accesses were dropped."""
LEFT_OUT = 1 << 62
"""The steps of a warp of which some instructions were left out."""
G_ENTRY, G_INSTRUCTION, G_LANES = range(3)
A_ENTRY, A_INSTRUCTION, A_KIND, A_LANES, A_FIRST, A_STRIDE, A_SCATTERED, A_PHASE = range(8)
"""The words of an access. KIND: space, operation and bytes (`access_kinds`). LANES: the active
lanes. FIRST: the address of the lowest active lane. STRIDE: the bytes from lane to lane; if lanes
have no common stride, SCATTERED is the number of the row of 32 offsets from FIRST, else NONE.
PHASE: the mbarrier that the access waits on or arrives at, and its phase (`abi.log_copies`), or
NONE."""

MOST_STATE_WORDS = 1024
"""Words in CONTROLS that hold the diverged state of any warp."""
NODE_ROW, SPLIT_ROW = 7, 4
"""The words of a node of the SIMT stack and of a parked split in CONTROLS. A record there is the
number of nodes, the number of splits, TOP; then for each node: its number, point, expected,
arrived, other block, other lanes, parent; then for each split: its number, lanes, block, status."""


def record_block(
    log: LogWords,
    context: LogWords,
    counts: Any,
    first: int,
    branches: int,
    warp: int,
    block: int,
    size: int,
) -> int:
    """Appends an entry for a warp that enters a basic block of `size` instructions, which becomes
    the current one (CURRENT); returns 0. If the warp is not recorded, or the log or the warp's
    share is full, only counts the instructions as left out, as all later ones of the warp
    (LEFT_OUT), and no entry is current. A warp that enters its first block gets a number in the
    log, or NONE beyond WARP_CAPACITY.

    `warp` is the warp's number in the launch, `context` begins with its table, whose head the
    caller has stored; `counts` the array of counts, in which those of `branches` branches begin at
    `first` (`abi.environment.CountLayout`). If these have risen since the last entry, its last
    instruction diverged or reconverged, and is marked."""
    table, divergences, reconvergences = WarpTable(context, 0), 0, 0
    for branch in range(branches):
        divergences += counts[first + 2 * branch]
        reconvergences += counts[first + 2 * branch + 1]
    if log[CURRENT] != warp_table.NONE:
        marks = log[ENTRIES_AT] + log[CURRENT] * ENTRY_WORDS + E_MARKS
        # Bit 0: the block's last instruction diverged; bit 1: it reconverged (`observe.schema`).
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
        recorded = log[WARPS] < log[WARP_CAPACITY]
        log[WARPS] += int(recorded)
        log[LEFT_WARPS] += int(not recorded)
        log[number] = log[WARPS] if recorded else warp_table.NONE
    steps = log[STEPS_AT] + warp
    # `write_control` does not check its region.
    full = log[CONTROLS] + MOST_STATE_WORDS > log[CONTROL_CAPACITY]
    full = full or log[ENTRIES] >= log[ENTRY_CAPACITY]
    if log[number] == warp_table.NONE or log[steps] >= log[STEP_CAPACITY] or full:
        log[steps] = LEFT_OUT
        log[LEFT_STEPS] += size
        return 0
    log[steps] += size
    at = log[ENTRIES_AT] + log[ENTRIES] * ENTRY_WORDS
    log[at + E_WARP] = log[number] - 1
    log[at + E_BLOCK] = block
    log[at + E_MASK] = table.mask
    log[at + E_LIVE] = table.live
    log[at + E_CONTROL] = warp_table.NONE
    log[at + E_MARKS] = 0
    if table.top != warp_table.NONE or table.parked != 0:
        log[at + E_CONTROL] = log[CONTROLS]
        write_control(log, table)
    log[CURRENT] = log[ENTRIES]
    log[ENTRIES] += 1
    return 0


@jitable
def write_control(log: LogWords, table: WarpTable) -> None:
    """Appends to CONTROLS the diverged state of a warp, from its table, and advances the count of
    CONTROLS: numbers of nodes and splits, TOP; the nodes of its SIMT stack that are in use; its
    parked splits. The caller has checked that MOST_STATE_WORDS fit."""
    start = log[CONTROLS_AT] + log[CONTROLS]
    at = start + 3
    nodes, splits = 0, 0
    for node in range(warp_table.node_count(table.lanes)):
        if (table.free >> node) & 1 == 0:
            row = warp_table.node_of(table, node)
            log[at] = node
            log[at + 1] = row.point
            log[at + 2] = row.expected
            log[at + 3] = row.arrived
            log[at + 4] = row.other_block
            log[at + 5] = row.other_mask
            log[at + 6] = row.parent
            at += NODE_ROW
            nodes += 1
    for split in range(table.lanes):
        if (table.parked >> split) & 1 == 1:
            row = warp_table.split_of(table, split)
            log[at] = split
            log[at + 1] = row.mask
            log[at + 2] = row.block
            log[at + 3] = row.status
            at += SPLIT_ROW
            splits += 1
    log[start] = nodes
    log[start + 1] = splits
    log[start + 2] = table.top
    log[CONTROLS] += at - start


def record_guard(log: LogWords, instruction: int, lanes: int) -> int:
    """Appends to the current entry the lanes in which the guard of an instruction holds; nothing if
    no entry is current or the region is full. Returns 0."""
    if log[CURRENT] != warp_table.NONE and log[GUARDS] < log[GUARD_CAPACITY]:
        at = log[GUARDS_AT] + log[GUARDS] * GUARD_WORDS
        log[at + G_ENTRY] = log[CURRENT]
        log[at + G_INSTRUCTION] = instruction
        log[at + G_LANES] = lanes
        log[GUARDS] += 1
    return 0


def record_access(log: LogWords, addresses: Any, lanes: int, instruction: int, kind: int) -> int:
    """Appends to the current entry an access by the bits of `lanes`. `addresses` has 32 words;
    `kind` packs space, operation and size (see A_KIND). Returns 1, or 0 if it is not recorded: no
    entry is current, or a region is full."""
    return append_access(log, addresses, 0, lanes, instruction, kind)


def record_texels(log: LogWords, scratch: Any, instruction: int, kind: int) -> int:
    """Records the sectors that a texture or surface request touched, as accesses of 32 lanes with a
    sector each, of a kind (A_KIND). `scratch` has their number and the sectors, from TOUCHED on
    (`texture.texels`), whose numbers become addresses. Returns 0."""
    touched = scratch[TOUCHED]
    # From numbers of 32-byte sectors to their addresses.
    for index in range(TOUCHED + 1, TOUCHED + 1 + touched):
        scratch[index] <<= 5
    for first in range(0, touched, 32):
        lanes = (1 << min(32, touched - first)) - 1
        append_access(log, scratch, TOUCHED + 1 + first, lanes, instruction, kind)
    return 0


@jitable
def append_access(
    log: LogWords, addresses: Any, first: int, lanes: int, instruction: int, kind: int
) -> int:
    """Appends to the current entry an access by the bits of `lanes`, of a kind (A_KIND); lane 0's
    address is at index `first`. Its stride is that of all active lanes, or 0 with a row of
    SCATTERED if they have none. Returns 1, or 0 if no lane is active, no entry is current, or a
    region is full (the entry is marked LOST)."""
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
def scattered_row(log: LogWords, addresses: Any, first: int, lanes: int, leader: int) -> int:
    """Returns the number of the row of SCATTERED with the lanes' offsets from the address of lane
    `leader`, 0 in inactive lanes; appends it, unless the last row with the same hash is equal. NONE
    if it is new and the region is full. `first` is the index of lane 0 in `addresses`."""
    base = addresses[first + leader]
    row = log[SCATTERED_AT] + log[SCATTERED] * SCATTERED_WORDS
    full = log[SCATTERED] >= log[SCATTERED_CAPACITY]
    hashed = lanes
    for lane in range(32):
        offset = (addresses[first + lane] - base) * ((lanes >> lane) & 1)
        # A linear congruential step, cut to 30 bits so that products stay within 64.
        hashed = (hashed * 0x5851F42D + offset) & 0x3FFFFFFF
        if not full:
            log[row + lane] = offset
    hash_slot = log[KNOWN_AT] + (hashed ^ hashed >> 12) % KNOWN
    if log[hash_slot] > 0:
        other = log[SCATTERED_AT] + (log[hash_slot] - 1) * SCATTERED_WORDS
        equal = 1
        for lane in range(32):
            offset = (addresses[first + lane] - base) * ((lanes >> lane) & 1)
            equal &= int(log[other + lane] == offset)
        if equal:
            return int(log[hash_slot] - 1)
    if full:
        return warp_table.NONE
    log[SCATTERED] += 1
    log[hash_slot] = log[SCATTERED]
    return int(log[SCATTERED] - 1)
