"""Records in the log of a launch (`abi.log`) the bulk and tensor copies of the Tensor Memory
Accelerator, and the waits and arrivals of warps at mbarriers; compiled by Numba.

A copy is recorded as accesses to the sectors of global memory that it touches, up to 32 in each, as
if every sector were a lane's; the last access also names the mbarrier that the copy signals. Each
mbarrier that a warp waits on or arrives at is an access of size 0.

    cp.async.bulk of 2048 bytes from 0x1000, mbarrier at 0x40 of the cluster's first block, phase 1
    ->   COPY_IN, 32 sectors from 0x1000;  COPY_IN, 32 sectors from 0x1400, phase = 0x40 << 2 | 1
"""

from __future__ import annotations

from typing import Any

from warploom.abi.log import SPACES, LogAccess, LogHead, append_access
from warploom.asynchronous.issue.box_copies import prepare_box
from warploom.asynchronous.issue.tensor_copies import prepare_bytes
from warploom.asynchronous.mbarrier import phase
from warploom.asynchronous.records import LANES, WarpIssue
from warploom.asynchronous.tensors.addresses import check_shared, host_address
from warploom.asynchronous.tensors.boxes import count_rows, find_row
from warploom.asynchronous.tensors.entries import NO_GROUP, ORIGIN
from warploom.asynchronous.tensors.requests import (
    COPY_BYTES,
    LOAD,
    MODE,
    OP,
    PAIR,
    PREFETCH,
    REDUCE,
    REDUCE_BYTES,
    STORE,
    field,
)
from warploom.isa.instruction import Space
from warploom.simt.clusters import MOST_BLOCKS
from warploom.simt.lane_counts import jitable
from warploom.simt.records import Words
from warploom.texture.texels import Memory, read_bytes

COPY_IN, COPY_OUT, COPY_ADD, AT_BARRIER = range(3, 7)
"""Operations in an access's kind, after those of `abi.log.OPS`: a copy from global memory, a copy
to it, a reduction into it, and a wait or arrival at an mbarrier."""

_GLOBAL = SPACES.index(Space.GLOBAL)
OP_AT, SIZE_AT = 8, 16
SECTOR_BITS, WORD_BYTES = 5, 8
LANE_0, ALL_LANES = 1, (1 << LANES) - 1
"""Masks: lane 0 alone, whose element has the one address of an access; and a full buffer."""
PHASE_BITS = 2
"""The low bits of an access's `phase` hold the number of the phase modulo 4; the bits above hold
the mbarrier's offset in the shared memory of the cluster."""


def record_barriers(
    log_words: Words,
    addresses: Any,
    memory: Memory,
    issue_words: Any,
    lanes: int,
    instruction: int,
    kind: int,
) -> int:
    """Appends to the log an access of size 0, of a kind (`abi.access_kinds`), for each mbarrier
    that these lanes wait on or arrive at, once each, with its current phase. Misaligned addresses,
    and those outside of the block's shared memory or the cluster's, are left out. Returns 0.

    `addresses` are offsets in the block's shared memory, of `shared_bytes` from `own_shared` on
    the host; the cluster's shared memory has `entry.size` bytes from `cluster_shared` on (of
    `issue`)."""
    log, issue = LogHead(log_words, 0), WarpIssue(issue_words, 0)
    base, limit = issue.own_shared, issue.shared_bytes
    start, size = issue.cluster_shared, issue.entry.size
    remaining = lanes
    for lane in range(LANES):
        if (remaining >> lane) & 1 == 0:
            continue
        for later_lane in range(lane, LANES):
            if addresses[later_lane] == addresses[lane]:
                remaining &= ~(1 << later_lane)
        inside = 0 <= addresses[lane] <= limit - WORD_BYTES
        if inside and addresses[lane] % WORD_BYTES == 0:
            address = base + addresses[lane]
            inside = 0 <= address - start < size
            if inside and append_access(log, addresses, 0, LANE_0, instruction, kind):
                note_phase(log, memory, address, start)
    return 0


def record_copies(
    log_words: Words, touched: Any, memory: Memory, issue_words: Any, allocations: Any,
    instruction: int,
) -> int:  # fmt: skip
    """Appends to the log what the request in `issue` (`asynchronous.tensors.requests`) will do in
    each lane that issues it: the sectors of global memory that a copy, a reduction or a prefetch
    moves, and the mbarrier that it signals. Contiguous bytes have sectors only if MODE states that
    one end is in global memory. The first lane whose operands are at fault ends the recording,
    since the request will stop there, too. Nothing is appended for other requests: changes and
    copies of tensor maps, and `try_cancel`. Returns 0.

    `touched` is a buffer of 32 words. Overwrites the entry in `issue`, which is filled as for
    execution, and the words for a fault."""
    log, issue = LogHead(log_words, 0), WarpIssue(issue_words, 0)
    operands, entry, request = issue.operands, issue.entry, issue.request
    op, entry.request = field(request, OP), request
    for lane in range(LANES):
        if (issue.mask >> lane) & 1 == 0:
            continue
        entry.groups, entry.barrier = NO_GROUP, 0
        if op in (LOAD, STORE, REDUCE, PREFETCH):
            kind = prepare_box(memory, issue, allocations, lane)
        elif op in (REDUCE_BYTES, COPY_BYTES):
            kind = prepare_bytes(memory, issue, allocations, lane)
        else:
            return 0
        if kind != 0:
            return 0  # a fault, which the copy itself will be
        written = _GLOBAL | copy_kind(op) << OP_AT
        count = 0
        if op in (REDUCE_BYTES, COPY_BYTES):
            if field(request, MODE):
                start, size = operands.opposite[lane], operands.size[lane]
                count = append_sectors(
                    log, touched, count, int(start), int(start + size), instruction, written
                )
        else:
            for row in range(count_rows(entry)):
                find_row(entry, row)
                start, end = entry.row_address + entry.row_from, entry.row_address + entry.row_to
                count = append_sectors(log, touched, count, start, end, instruction, written)
        blocks = int(operands.blocks[lane])
        finish_copy(log, touched, memory, issue, blocks, count, instruction, written)
    return 0


def record_commits(
    log_words: Words, touched: Any, memory: Memory, issue_words: Any, instruction: int, kind: int
) -> int:
    """Appends to the log, for each lane that issues, an access of `kind` for each mbarrier that its
    `tcgen05.commit` signals (in several blocks if it has a mask of them); one without mbarrier if
    its address is invalid, which also writes the words for a fault in `issue`. `touched` is a
    buffer of 32 words; `request` of the entry in `issue` becomes 0, `barrier` that of the last
    lane. Returns 0."""
    log, issue = LogHead(log_words, 0), WarpIssue(issue_words, 0)
    operands, entry = issue.tensor_operands, issue.entry
    for lane in range(LANES):
        if (issue.mask >> lane) & 1 == 0:
            continue
        address = int(operands.shared[lane])
        entry.request, entry.barrier = 0, 0
        if check_shared(issue, address, WORD_BYTES) == 0:
            entry.barrier = host_address(issue, address)
        blocks = int(operands.blocks[lane])
        finish_copy(log, touched, memory, issue, blocks, 0, instruction, kind)
    return 0


def record_bytes(
    log_words: Words, touched: Any, memory: Memory, issue_words: Any, instruction: int, kind: int
) -> int:
    """Appends to the log, for each active lane, its copy of contiguous bytes, with the sectors that
    it touches in global memory if MODE of the request in `issue` states that one end is there. An
    mbarrier that it signals, if its operand is a valid address in shared memory, is recorded with
    the copy. Afterwards `request` of the entry is that of `issue`, `barrier` that of the last
    active lane. Returns 0: a bad address is no fault here, though the words for one are written.

    `touched` is a buffer of 32 words; a negative mbarrier address is none."""
    log, issue = LogHead(log_words, 0), WarpIssue(issue_words, 0)
    operands, entry = issue.operands, issue.entry
    entry.request = issue.request
    for lane in range(LANES):
        if (issue.mask >> lane) & 1 == 0:
            continue
        count = 0
        if field(entry.request, MODE):
            start, size = operands.opposite[lane], operands.size[lane]
            count = append_sectors(
                log, touched, count, int(start), int(start + size), instruction, kind
            )
        barrier = int(operands.barrier[lane])
        entry.barrier = 0
        if barrier >= 0 and check_shared(issue, barrier, WORD_BYTES) == 0:
            entry.barrier = host_address(issue, barrier)
        finish_copy(log, touched, memory, issue, 0, count, instruction, kind)
    return 0


@jitable
def copy_kind(op: int) -> int:
    """Returns the operation of a copy request as an access's kind has it: COPY_ADD for reductions,
    COPY_OUT for stores, else COPY_IN."""
    if op in (REDUCE, REDUCE_BYTES):
        return COPY_ADD
    return COPY_OUT if op == STORE else COPY_IN


@jitable
def append_sectors(
    log: LogHead, touched: Any, count: int, start: int, end: int, instruction: int, kind: int
) -> int:
    """Adds the addresses of the sectors of the bytes from `start` to `end` (none if that is not
    greater) to the buffer `touched`, which has `count`; a full buffer (32) is appended to the log
    and emptied first. Returns the new count."""
    if end > start:
        for sector in range(start >> SECTOR_BITS, ((end - 1) >> SECTOR_BITS) + 1):
            if count == LANES:
                append_access(log, touched, 0, ALL_LANES, instruction, sector_kind(kind))
                count = 0
            touched[count] = sector << SECTOR_BITS
            count += 1
    return count


@jitable
def sector_kind(kind: int) -> int:
    """Returns a packed kind, whose bytes per lane are 0, with those of a sector, 32, instead."""
    return kind | 1 << SECTOR_BITS + SIZE_AT


@jitable
def finish_copy(
    log: LogHead, touched: Any, memory: Memory, issue: WarpIssue, blocks: int, count: int,
    instruction: int, kind: int,
) -> None:  # fmt: skip
    """Appends the last `count` sectors of a copy, from `touched`, and the mbarriers that it signals
    (`issue.entry.barrier`, 0 for none).

    The access with the sectors (of size 0 if there are none) names the first mbarrier. A copy to
    several thread blocks of the cluster, whose ranks are bits of `blocks` (0: only the mbarrier's
    own block), has an access of size 0 for each further one. With PAIR in the request, unless
    `blocks` is 0, both blocks of a pair signal the mbarrier of the even rank.
    """
    entry = issue.entry
    lanes, whole = (1 << count) - 1, sector_kind(kind)
    if count == 0:
        touched[0] = 0
        lanes, whole = LANE_0, kind
    copy_access = append_access(log, touched, 0, lanes, instruction, whole)
    barrier, start = entry.barrier, issue.cluster_shared
    if barrier == 0:
        return
    stride = max(issue.shared_stride, 1)
    own = (barrier - start) // stride
    pair = field(entry.request, PAIR)
    for rank in range(MOST_BLOCKS):
        if ((blocks >> rank) & 1 if blocks else int(rank == own)) == 0:
            continue
        if copy_access == 0:
            touched[0] = 0
            copy_access = append_access(log, touched, 0, LANE_0, instruction, kind)
        if copy_access:
            # Copies for a pair of blocks signal the mbarrier of the pair's even rank.
            receiver = rank & ~1 if blocks and pair else rank
            note_phase(log, memory, barrier + (receiver - own) * stride, start)
        copy_access = 0


@jitable
def note_phase(log: LogHead, memory: Memory, address: int, start: int) -> None:
    """Sets `phase` of the last access: the offset of the mbarrier at host address `address` from
    the cluster's shared memory at `start`, shifted left by PHASE_BITS, plus the mbarrier's current
    phase."""
    word = read_bytes(memory, address - ORIGIN, WORD_BYTES)
    access = LogAccess(log, log.accesses.start, log.accesses.count - 1)
    access.phase = (address - start) << PHASE_BITS | phase(word)
