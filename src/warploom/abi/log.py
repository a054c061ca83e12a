"""Defines the log of a recorded launch, from which traces and modelled time are made, and the
functions by which compiled kernels write it, compiled by Numba.

A log is one array of 64-bit words: a head, then regions of rows. A kernel appends an entry for each
basic block that a warp enters, and rows for each guard and each access in that block; where lanes
have diverged, an entry also has a copy of the warp's SIMT stack. Rows that exceed the capacity of a
region are dropped, and marked as lost. `observe.compiled_trace` reads the log."""

from __future__ import annotations

from typing import Annotated, Any

from warploom.isa.instruction import Space
from warploom.program.accesses import GENERIC_SPACES
from warploom.simt.lane_counts import jitable
from warploom.simt.records import WordRecord, Words
from warploom.simt.warp_table import NONE, WarpTable, node_count, node_of, split_of
from warploom.texture.descriptors import TexelIssue


class LogRegion(WordRecord):
    """A region of rows."""

    count: int  # of rows
    capacity: int
    start: int  # the offset of its first word


class LogHead(WordRecord):
    """The head of a log."""

    entries: LogRegion
    guards: LogRegion
    accesses: LogRegion
    scattered: LogRegion
    controls: LogRegion  # rows of a word
    warps: int  # the warps that are recorded
    warp_capacity: int
    # The number in the log plus 1 of each warp of the launch (0: not seen yet, -1: left out).
    numbers_at: int
    steps_at: int  # the recorded instructions of each, or LEFT_OUT
    step_capacity: int
    left_steps: int  # the instructions that are left out
    left_warps: int
    current: int  # the entry being executed, or NONE
    divergences: int  # the sum of the branches' counts at the last entry
    reconvergences: int
    table_at: int  # a hash table of TABLE_SLOTS words: of a row's hash, the row's number plus 1


TABLE_SLOTS = 4096
"""The size of the hash table that finds equal scattered rows."""


class LogEntry(WordRecord):
    """A basic block that a warp enters."""

    warp: int  # its number in the log
    block: int  # the index of the basic block
    mask: int  # active lanes
    live: int  # lanes that have not exited
    control: int  # the offset in `controls` of the warp's diverged state, or NONE
    marks: int  # of `observe.schema` for the block's last instruction, and LOST


class LogGuard(WordRecord):
    """The lanes in which the guard of an instruction holds."""

    entry: int
    instruction: int
    lanes: int


class LogAccess(WordRecord):
    """An access."""

    entry: int
    instruction: int
    kind: int  # space, operation and bytes (`access_kinds`)
    lanes: int  # active ones
    first_address: int  # the address of the lowest of these
    stride: int  # bytes from lane to lane
    scattered: int  # if lanes have no common stride, the number of the row, else NONE
    # The mbarrier that is waited on or arrived at, and its phase (`abi.log_copies`), or NONE.
    phase: int


class ScatteredRow(WordRecord):
    """Offsets of 32 lanes from the address of the lowest active one."""

    offsets: Annotated[Words, 32]


class LogControl(WordRecord):
    """The head of the diverged state of a warp, which the nodes and the splits follow."""

    nodes: int  # how many
    splits: int
    top: int


class LogNode(WordRecord):
    """A node of the SIMT stack (`simt.warp_table.StackNode`)."""

    number: int
    point: int
    expected: int
    arrived: int
    other_block: int
    other_mask: int
    parent: int


class LogSplit(WordRecord):
    """A parked split."""

    number: int
    mask: int
    block: int
    status: int


MOST_STATE_WORDS = 1024
"""Words in `controls` that hold the diverged state of any warp."""

OPS = ("load", "store", "atomic")
TEXEL_SPACES = (Space.TEXTURE, Space.SURFACE)
SPACES = (*GENERIC_SPACES, Space.CONST, *TEXEL_SPACES)
"""Operations and spaces, by their numbers in the kind of an access. An access to a texel space
holds the sectors that a texture or surface request touched, one in each lane."""
LOST = 1 << 8
"""The mark of an entry of which some accesses were dropped."""
LEFT_OUT = 1 << 62
"""The steps of a warp of which some instructions were left out."""


def record_block(
    log_words: Words,
    context: Words,
    counts: Any,
    first_branch: int,
    branches: int,
    warp: int,
    block: int,
    size: int,
) -> int:
    """Appends an entry for a warp that enters a basic block of `size` instructions, with a copy of
    the warp's state if lanes have diverged (`write_control`), and makes it the current entry.
    Returns 0. If the warp is not recorded, or the log or the warp's share is full, only counts the
    instructions as left out, as all later ones of the warp (LEFT_OUT), and no entry is current. A
    warp that enters its first block gets a number in the log, or NONE beyond `warp_capacity`.

    `warp` is the warp's number in the launch, `context` begins with its table, whose head the
    caller has stored; `counts` the array of counts, in which those of `branches` branches begin at
    `first_branch` (`abi.environment.CountLayout`). If these have risen since the last entry, its
    last instruction diverged or reconverged, and is marked."""
    log, table = LogHead(log_words, 0), WarpTable(context, 0)
    divergences, reconvergences = 0, 0
    for branch in range(branches):
        divergences += counts[first_branch + 2 * branch]
        reconvergences += counts[first_branch + 2 * branch + 1]
    if log.current != NONE:
        # Bit 0: the block's last instruction diverged; bit 1: it reconverged (`observe.schema`).
        current_entry(log).marks |= int(divergences > log.divergences) + 2 * int(
            reconvergences > log.reconvergences
        )
    log.divergences, log.reconvergences, log.current = divergences, reconvergences, NONE
    number = log.numbers_at + warp
    if log_words[number] == 0:
        recorded = log.warps < log.warp_capacity
        log.warps += int(recorded)
        log.left_warps += int(not recorded)
        log_words[number] = log.warps if recorded else NONE
    steps, controls = log.steps_at + warp, log.controls
    # `write_control` does not check its region.
    full = controls.count + MOST_STATE_WORDS > controls.capacity
    full = full or log.entries.count >= log.entries.capacity
    if log_words[number] == NONE or log_words[steps] >= log.step_capacity or full:
        log_words[steps] = LEFT_OUT
        log.left_steps += size
        return 0
    log_words[steps] += size
    log.current = log.entries.count
    log.entries.count += 1
    entry = current_entry(log)
    entry.warp, entry.block = log_words[number] - 1, block
    entry.mask, entry.live = table.mask, table.live
    entry.control, entry.marks = NONE, 0
    if table.top != NONE or table.parked != 0:
        entry.control = controls.count
        write_control(log, table)
    return 0


@jitable
def current_entry(log: LogHead) -> LogEntry:
    """Returns a view of the log's entry at `log.current`, which must not be NONE."""
    return LogEntry(log, log.entries.start, log.current)


@jitable
def write_control(log: LogHead, table: WarpTable) -> None:
    """Appends to `controls` the diverged state of a warp, from its table (`LogControl`): the nodes
    of its SIMT stack that are in use, and its parked splits. The caller has checked that
    MOST_STATE_WORDS fit."""
    control = LogControl(log, log.controls.start + log.controls.count)
    control.nodes, control.splits, control.top = 0, 0, table.top
    at = control.at + LogControl.WORDS
    for number in range(node_count(table.lanes)):
        if (table.free >> number) & 1 == 0:
            node, logged = node_of(table, number), LogNode(log, at, control.nodes)
            logged.number, logged.point = number, node.point
            logged.expected, logged.arrived = node.expected, node.arrived
            logged.other_block, logged.other_mask = node.other_block, node.other_mask
            logged.parent = node.parent
            control.nodes += 1
    at += control.nodes * LogNode.WORDS
    for number in range(table.lanes):
        if (table.parked >> number) & 1 == 1:
            split, logged = split_of(table, number), LogSplit(log, at, control.splits)
            logged.number, logged.mask = number, split.mask
            logged.block, logged.status = split.block, split.status
            control.splits += 1
    log.controls.count += at + control.splits * LogSplit.WORDS - control.at


def record_guard(log_words: Words, instruction: int, lanes: int) -> int:
    """Appends to the current entry the lanes in which the guard of an instruction holds; nothing if
    no entry is current or the region is full, which sets no mark. Returns 0."""
    log = LogHead(log_words, 0)
    if log.current != NONE and log.guards.count < log.guards.capacity:
        guard = LogGuard(log, log.guards.start, log.guards.count)
        guard.entry, guard.instruction, guard.lanes = log.current, instruction, lanes
        log.guards.count += 1
    return 0


def record_access(log_words: Words, addresses: Any, lanes: int, instruction: int, kind: int) -> int:
    """Appends to the current entry an access by the bits of `lanes`. `addresses` has 32 words;
    `kind` packs space, operation and size (`access_kinds`). Returns 1, or 0 if it is not recorded:
    no lane is active, no entry is current, or a region is full."""
    return append_access(LogHead(log_words, 0), addresses, 0, lanes, instruction, kind)


def record_texels(log_words: Words, issue_words: Any, instruction: int, kind: int) -> int:
    """Records the sectors that a texture or surface request touched, as accesses of up to 32 lanes
    with a sector each, of a kind (`access_kinds`). The issue words have their number and the
    sectors (`TexelIssue`), whose numbers are replaced in place by byte addresses. Returns 0."""
    log, issue = LogHead(log_words, 0), TexelIssue(issue_words, 0)
    touched, sectors = issue.touched, issue.sectors
    # From numbers of 32-byte sectors to their addresses.
    for index in range(touched):
        sectors[index] <<= 5
    for first_sector in range(0, touched, 32):
        lanes = (1 << min(32, touched - first_sector)) - 1
        append_access(log, sectors, first_sector, lanes, instruction, kind)
    return 0


@jitable
def append_access(
    log: LogHead, addresses: Any, lane_0: int, lanes: int, instruction: int, kind: int
) -> int:
    """Appends to the current entry an access by the bits of `lanes`, of a kind (`access_kinds`);
    lane 0's address is at index `lane_0`. STRIDE is that of all active lanes (0 for a single one);
    if they have none, SCATTERED names a row of their offsets. Returns 1, or 0 if no lane is active,
    no entry is current, or a region is full (the entry is marked LOST)."""
    if lanes == 0 or log.current == NONE:
        return 0
    if log.accesses.count >= log.accesses.capacity:
        current_entry(log).marks |= LOST
        return 0
    leader, last, stride, even = -1, -1, 0, 1
    for lane in range(32):
        if (lanes >> lane) & 1:
            if leader < 0:
                leader = lane
            elif last == leader:
                step = addresses[lane_0 + lane] - addresses[lane_0 + last]
                stride = step // (lane - last)
                even = int(step == stride * (lane - last))
            elif addresses[lane_0 + lane] - addresses[lane_0 + last] != stride * (lane - last):
                even = 0
            last = lane
    scattered = NONE
    if even == 0:
        scattered = scattered_row(log, addresses, lane_0, lanes, leader)
        if scattered == NONE:
            current_entry(log).marks |= LOST
            return 0
    access = LogAccess(log, log.accesses.start, log.accesses.count)
    access.entry, access.instruction = log.current, instruction
    access.kind, access.lanes = kind, lanes
    access.first_address, access.stride = addresses[lane_0 + leader], stride
    access.scattered, access.phase = scattered, NONE
    log.accesses.count += 1
    return 1


@jitable
def scattered_row(log: LogHead, addresses: Any, lane_0: int, lanes: int, leader: int) -> int:
    """Returns the number of the scattered row with the lanes' offsets from the address of lane
    `leader`, 0 in inactive lanes; appends it, unless the last row with the same hash is equal. NONE
    if it is new and the region is full. `lane_0` is the index of lane 0 in `addresses`."""
    base = addresses[lane_0 + leader]
    rows, words = log.scattered, log.words
    offsets = ScatteredRow(log, rows.start, rows.count).offsets
    full = rows.count >= rows.capacity
    hashed = lanes
    for lane in range(32):
        offset = (addresses[lane_0 + lane] - base) * ((lanes >> lane) & 1)
        # A linear congruential step, cut to 30 bits so that products stay within 64.
        hashed = (hashed * 0x5851F42D + offset) & 0x3FFFFFFF
        if not full:
            offsets[lane] = offset
    hash_slot = log.table_at + (hashed ^ hashed >> 12) % TABLE_SLOTS
    if words[hash_slot] > 0:
        stored_offsets = ScatteredRow(log, rows.start, words[hash_slot] - 1).offsets
        equal = 1
        for lane in range(32):
            offset = (addresses[lane_0 + lane] - base) * ((lanes >> lane) & 1)
            equal &= int(stored_offsets[lane] == offset)
        if equal:
            return int(words[hash_slot] - 1)
    if full:
        return NONE
    rows.count += 1
    words[hash_slot] = rows.count
    return rows.count - 1
