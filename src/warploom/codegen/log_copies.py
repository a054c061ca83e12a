"""Writes into the log of a kernel that runs (`codegen.log`) what copies of the Tensor Memory
Accelerator move, and the mbarriers that warps look at or tell: plain functions, compiled by Numba.

Of a copy the sectors of global memory are accesses, 32 of them one, as if each were a lane's. Its
last access has the mbarrier that it tells. Where a warp looks at mbarriers or arrives at them,
there is a row without bytes for each.
"""

from __future__ import annotations

from typing import Any

from warploom.codegen.log import A_PHASE, ACCESS_WORDS, ACCESSES, ACCESSES_AT, append_access
from warploom.rules.distinct import jitable
from warploom.rules.mbarrier import phase
from warploom.rules.tensors.boxes import count_rows, find_row
from warploom.rules.tensors.entries import (
    BARRIER,
    GROUPS,
    NO_GROUP,
    ORIGIN,
    OWN_SHARED,
    REQUEST,
    ROW_ADDRESS,
    ROW_FROM,
    ROW_TO,
    SHARED_BYTES,
)
from warploom.rules.tensors.issue import prepare_box, prepare_bytes
from warploom.rules.tensors.requests import (
    BARRIER_ROW,
    COPY_BYTES,
    GLOBAL_ROW,
    LOAD,
    MODE,
    OP,
    PREFETCH,
    REDUCE,
    REDUCE_BYTES,
    SIZE_ROW,
    STORE,
    field,
)
from warploom.rules.texels import Memory, read_bytes

COPY_IN, COPY_OUT, COPY_ADD, AT_BARRIER = range(3, 7)
"""Operations in an access's kind, behind those of `codegen.recording.OPS`: a copy from global
memory, to it, one that adds to it, and a look at an mbarrier or an arrival."""

OP_AT, SIZE_AT = 8, 16
SECTOR_BITS, LANES, WORD_BYTES = 5, 32, 8
PHASE_BITS = 2
"""PHASE of an access: the number of the phase modulo 4, behind it the address of the mbarrier."""


def record_barriers(
    log: Any, addresses: Any, memory: Memory, lanes: int, instruction: int, kind: int,
    base: int, limit: int, own: int, size: int,
) -> int:  # fmt: skip
    """Record the mbarriers at which these lanes look or arrive: `addresses` count from the host's
    address `base`, where there are `limit` bytes; the own block's begin at `own`."""
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
            if 0 <= place - own < size and append_access(log, addresses, 0, 1, instruction, kind):
                note_phase(log, memory, place, own)
    return 0


def record_copies(
    log: Any, touched: Any, memory: Memory, data: Any, scratch: Any, starts: Any, ends: Any,
    flags: Any, mask: int, instruction: int, space: int, request: int,
) -> int:  # fmt: skip
    """Record what a request (`rules.tensors.requests`) moves. `touched` has room for 32 words."""
    op = field(request, OP)
    for lane in range(LANES):
        if (mask >> lane) & 1 == 0:
            continue
        scratch[REQUEST], scratch[GROUPS], scratch[BARRIER] = request, NO_GROUP, 0
        if op in (LOAD, STORE, REDUCE, PREFETCH):
            kind = prepare_box(memory, data, scratch, starts, ends, flags, lane, request)
        elif op in (REDUCE_BYTES, COPY_BYTES):
            kind = prepare_bytes(memory, data, scratch, starts, ends, flags, lane, request)
        else:
            return 0
        if kind != 0:
            return 0  # a fault, which the copy itself will be
        written = space | write_kind(op) << OP_AT
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
        finish_copy(log, touched, memory, scratch, count, instruction, written)
    return 0


def record_bytes(
    log: Any, touched: Any, memory: Memory, data: Any, scratch: Any, mask: int, instruction: int,
    kind: int, far: int,
) -> int:  # fmt: skip
    """Record a copy of bytes side by side by each lane, whose operands stand in rows; `far` says
    that one end is in global memory. The mbarrier's address is one of the own block's, or less
    than 0 for none."""
    for lane in range(LANES):
        if (mask >> lane) & 1 == 0:
            continue
        count = 0
        if far:
            start, size = data[LANES * GLOBAL_ROW + lane], data[LANES * SIZE_ROW + lane]
            count = append_stretch(
                log, touched, count, int(start), int(start + size), instruction, kind
            )
        barrier = int(data[LANES * BARRIER_ROW + lane])
        inside = 0 <= barrier <= int(scratch[SHARED_BYTES]) - WORD_BYTES
        scratch[BARRIER] = int(scratch[OWN_SHARED]) + barrier if inside else 0
        finish_copy(log, touched, memory, scratch, count, instruction, kind)
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
    log: Any, touched: Any, memory: Memory, scratch: Any, count: int, instruction: int, kind: int
) -> None:
    """Append the sectors that are left, or a row without bytes; it has the mbarrier."""
    lanes, whole = (1 << count) - 1, sector_kind(kind)
    if count == 0:
        touched[0] = 0
        lanes, whole = 1, kind
    if append_access(log, touched, 0, lanes, instruction, whole):
        barrier, own = int(scratch[BARRIER]), int(scratch[OWN_SHARED])
        if barrier != 0 and 0 <= barrier - own < int(scratch[SHARED_BYTES]):
            note_phase(log, memory, barrier, own)


@jitable
def note_phase(log: Any, memory: Memory, place: int, own: int) -> None:
    """Give the last access the mbarrier at a place, and its phase."""
    word = read_bytes(memory, place - ORIGIN, WORD_BYTES)
    at = log[ACCESSES_AT] + (log[ACCESSES] - 1) * ACCESS_WORDS
    log[at + A_PHASE] = (place - own) << PHASE_BITS | phase(word)
