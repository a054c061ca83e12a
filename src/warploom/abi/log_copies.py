"""Writes into the log of a kernel that runs (`abi.log`) what copies of the Tensor Memory
Accelerator move, and the mbarriers that warps look at or tell: plain functions, compiled by Numba.

Of a copy the sectors of global memory are accesses, 32 of them one, as if each were a lane's. Its
last access has the mbarrier that it tells. Where a warp looks at mbarriers or arrives at them,
there is a row without bytes for each.
"""

from __future__ import annotations

from typing import Any

from warploom.abi.log import (
    A_PHASE,
    ACCESS_WORDS,
    ACCESSES,
    ACCESSES_AT,
    SPACES,
    append_access,
)
from warploom.asynchronous.issue.tensor_copies import prepare_box, prepare_bytes
from warploom.asynchronous.mbarrier import phase
from warploom.asynchronous.tensor_memory.layout import BLOCKS_ROW as COMMIT_BLOCKS_ROW
from warploom.asynchronous.tensor_memory.layout import SHARED_ROW as COMMIT_ROW
from warploom.asynchronous.tensors.addresses import check_shared, host_address
from warploom.asynchronous.tensors.boxes import count_rows, find_row
from warploom.asynchronous.tensors.entries import (
    BARRIER,
    CLUSTER_SHARED,
    GROUPS,
    NO_GROUP,
    ORIGIN,
    OWN_SHARED,
    REQUEST,
    ROW_ADDRESS,
    ROW_FROM,
    ROW_TO,
    SHARED_BYTES,
    SHARED_STRIDE,
    SIZE,
)
from warploom.asynchronous.tensors.requests import (
    BARRIER_ROW,
    BLOCKS_ROW,
    COPY_BYTES,
    GLOBAL_ROW,
    LOAD,
    MODE,
    OP,
    PAIR,
    PREFETCH,
    REDUCE,
    REDUCE_BYTES,
    SIZE_ROW,
    STORE,
    field,
)
from warploom.ptx.ir import Space
from warploom.simt.clusters import MOST_BLOCKS
from warploom.simt.lane_counts import jitable
from warploom.texture.texels import Memory, read_bytes

COPY_IN, COPY_OUT, COPY_ADD, AT_BARRIER = range(3, 7)
"""Operations in an access's kind, behind those of `abi.log.OPS`: a copy from global
memory, to it, one that adds to it, and a look at an mbarrier or an arrival."""

_GLOBAL = SPACES.index(Space.GLOBAL)
OP_AT, SIZE_AT = 8, 16
SECTOR_BITS, LANES, WORD_BYTES = 5, 32, 8
PHASE_BITS = 2
"""PHASE of an access: the number of the phase modulo 4, behind it the place of the mbarrier in the
shared memory of the cluster."""


def record_barriers(
    log: Any, addresses: Any, memory: Memory, scratch: Any, lanes: int, instruction: int, kind: int
) -> int:
    """Record the mbarriers at which these lanes look or arrive. Words of `scratch` say where in the
    host's memory that is: `addresses` count from OWN_SHARED, where there are SHARED_BYTES; the
    cluster's memory begins at CLUSTER_SHARED and has SIZE bytes."""
    base, limit = int(scratch[OWN_SHARED]), int(scratch[SHARED_BYTES])
    start, size = int(scratch[CLUSTER_SHARED]), int(scratch[SIZE])
    left = lanes
    for lane in range(LANES):
        if (left >> lane) & 1 == 0:
            continue
        for other in range(lane, LANES):
            if addresses[other] == addresses[lane]:
                left &= ~(1 << other)
        inside = 0 <= addresses[lane] <= limit - WORD_BYTES
        if inside and addresses[lane] % WORD_BYTES == 0:
            place = base + addresses[lane]
            inside = 0 <= place - start < size
            if inside and append_access(log, addresses, 0, 1, instruction, kind):
                note_phase(log, memory, place, start)
    return 0


def record_copies(
    log: Any, touched: Any, memory: Memory, data: Any, scratch: Any, allocations: Any, mask: int,
    instruction: int,
) -> int:  # fmt: skip
    """Record what the request (`asynchronous.tensors.requests`) in `scratch` moves. `touched` has
    room for 32 words."""
    request = int(scratch[REQUEST])
    op = field(request, OP)
    for lane in range(LANES):
        if (mask >> lane) & 1 == 0:
            continue
        scratch[GROUPS], scratch[BARRIER] = NO_GROUP, 0
        if op in (LOAD, STORE, REDUCE, PREFETCH):
            kind = prepare_box(memory, data, scratch, allocations, lane, request)
        elif op in (REDUCE_BYTES, COPY_BYTES):
            kind = prepare_bytes(memory, data, scratch, allocations, lane, request)
        else:
            return 0
        if kind != 0:
            return 0  # a fault, which the copy itself will be
        written = _GLOBAL | write_kind(op) << OP_AT
        count = 0
        if op in (REDUCE_BYTES, COPY_BYTES):
            if field(request, MODE):
                start, size = data[LANES * GLOBAL_ROW + lane], data[LANES * SIZE_ROW + lane]
                count = append_stretch(
                    log, touched, count, int(start), int(start + size), instruction, written
                )
        else:
            for row in range(count_rows(scratch)):
                find_row(scratch, row)
                start, end = scratch[ROW_ADDRESS] + scratch[ROW_FROM], scratch[ROW_ADDRESS]
                end += scratch[ROW_TO]
                count = append_stretch(
                    log, touched, count, int(start), int(end), instruction, written
                )
        blocks = int(data[LANES * BLOCKS_ROW + lane])
        finish_copy(log, touched, memory, scratch, blocks, count, instruction, written)
    return 0


def record_commits(
    log: Any, touched: Any, memory: Memory, data: Any, scratch: Any, mask: int, instruction: int,
    kind: int,
) -> int:  # fmt: skip
    """Record the mbarriers that each lane's `tcgen05.commit` names, whose operands stand in
    rows."""
    for lane in range(LANES):
        if (mask >> lane) & 1 == 0:
            continue
        address = int(data[LANES * COMMIT_ROW + lane])
        scratch[REQUEST], scratch[BARRIER] = 0, 0
        if check_shared(scratch, address, WORD_BYTES) == 0:
            scratch[BARRIER] = host_address(scratch, address)
        blocks = int(data[LANES * COMMIT_BLOCKS_ROW + lane])
        finish_copy(log, touched, memory, scratch, blocks, 0, instruction, kind)
    return 0


def record_bytes(
    log: Any, touched: Any, memory: Memory, data: Any, scratch: Any, mask: int, instruction: int,
    kind: int,
) -> int:  # fmt: skip
    """Record a copy of bytes side by side by each lane, whose operands stand in rows; MODE of the
    request in `scratch` says that one end is in global memory. The mbarrier's address is less than
    0 for none."""
    for lane in range(LANES):
        if (mask >> lane) & 1 == 0:
            continue
        count = 0
        if field(int(scratch[REQUEST]), MODE):
            start, size = data[LANES * GLOBAL_ROW + lane], data[LANES * SIZE_ROW + lane]
            count = append_stretch(
                log, touched, count, int(start), int(start + size), instruction, kind
            )
        barrier = int(data[LANES * BARRIER_ROW + lane])
        scratch[BARRIER] = 0
        if barrier >= 0 and check_shared(scratch, barrier, WORD_BYTES) == 0:
            scratch[BARRIER] = host_address(scratch, barrier)
        finish_copy(log, touched, memory, scratch, 0, count, instruction, kind)
    return 0


@jitable
def write_kind(op: int) -> int:
    """Return the operation in an access's kind of a copy."""
    if op in (REDUCE, REDUCE_BYTES):
        return COPY_ADD
    return COPY_OUT if op == STORE else COPY_IN


@jitable
def append_stretch(
    log: Any, touched: Any, count: int, start: int, end: int, instruction: int, kind: int
) -> int:
    """Add the sectors of bytes side by side to those that are touched, `count` so far; what has no
    room goes into the log. Returns how many are touched now."""
    if end > start:
        for sector in range(start >> SECTOR_BITS, ((end - 1) >> SECTOR_BITS) + 1):
            if count == LANES:
                append_access(log, touched, 0, (1 << LANES) - 1, instruction, sector_kind(kind))
                count = 0
            touched[count] = sector << SECTOR_BITS
            count += 1
    return count


@jitable
def sector_kind(kind: int) -> int:
    """Return the kind of an access of sectors."""
    return kind | 1 << SECTOR_BITS + SIZE_AT


@jitable
def finish_copy(
    log: Any, touched: Any, memory: Memory, scratch: Any, blocks: int, count: int,
    instruction: int, kind: int,
) -> None:  # fmt: skip
    """Append the sectors that are left, or a row without bytes; it has the mbarrier. Where copies
    go to several blocks, a bit each, there is a row without bytes for each further mbarrier."""
    lanes, whole = (1 << count) - 1, sector_kind(kind)
    if count == 0:
        touched[0] = 0
        lanes, whole = 1, kind
    first = append_access(log, touched, 0, lanes, instruction, whole)
    barrier, start = int(scratch[BARRIER]), int(scratch[CLUSTER_SHARED])
    if barrier == 0:
        return
    stride = max(int(scratch[SHARED_STRIDE]), 1)
    own = (barrier - start) // stride
    pair = field(int(scratch[REQUEST]), PAIR)
    for rank in range(MOST_BLOCKS):
        if ((blocks >> rank) & 1 if blocks else int(rank == own)) == 0:
            continue
        if first == 0:
            touched[0] = 0
            first = append_access(log, touched, 0, 1, instruction, kind)
        if first:
            leading = rank & ~1 if blocks and pair else rank
            note_phase(log, memory, barrier + (leading - own) * stride, start)
        first = 0


@jitable
def note_phase(log: Any, memory: Memory, place: int, start: int) -> None:
    """Give the last access the mbarrier at a place, behind where the cluster's memory begins, and
    its phase."""
    word = read_bytes(memory, place - ORIGIN, WORD_BYTES)
    at = log[ACCESSES_AT] + (log[ACCESSES] - 1) * ACCESS_WORDS
    log[at + A_PHASE] = (place - start) << PHASE_BITS | phase(word)
