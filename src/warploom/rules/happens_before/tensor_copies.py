"""Takes copies of tensors: the rows of each box in global memory, and its bytes in shared memory.

Boxes in the shared memory of other blocks of a cluster, reductions in global memory and copies
between blocks are not looked at.
"""

from __future__ import annotations

from typing import Any

from warploom.rules.distinct import jitable
from warploom.rules.happens_before.accesses import word_at
from warploom.rules.happens_before.bounds import allocation
from warploom.rules.happens_before.copies import complete_copy
from warploom.rules.happens_before.detect import begin_event
from warploom.rules.happens_before.knowledge import become, become_lane
from warploom.rules.happens_before.memory_words import check_words, check_written
from warploom.rules.happens_before.words import (
    AGENT,
    E_BASE,
    E_INSTRUCTION,
    E_LANES,
    E_LIMIT,
    E_OP,
    E_PART,
    E_SIZE,
    E_SPACE,
    E_WARP,
    GLOBAL,
    INIT,
    L_COPIES,
    ME_ADDRESS,
    ME_AGENT,
    ME_BLOCK,
    ME_LANE_AT,
    ME_SIZE,
    ME_SPACE,
    ME_THREAD,
    ME_TIME,
    RACE,
    SHARED,
    SITE_WORDS,
    SITES_AT,
    TOOLS,
)
from warploom.rules.happens_before.words import LOAD as READS
from warploom.rules.happens_before.words import STORE as WRITES
from warploom.rules.tensors.boxes import count_rows, find_row
from warploom.rules.tensors.entries import (
    BARRIER,
    CLUSTER_SHARED,
    OWN_SHARED,
    REQUEST,
    ROW_ADDRESS,
    ROW_FROM,
    ROW_TO,
    SHARED_BYTES,
    SHARED_STRIDE,
    SIZE,
    TARGET,
)
from warploom.rules.tensors.entries import SHARED as BOX_SHARED
from warploom.rules.tensors.issue import prepare_box
from warploom.rules.tensors.requests import BLOCKS_ROW, LOAD, OP, REDUCE, STORE, field

LANES = 32
PIECE = 16
"""So many bytes are looked at at once."""


def detect_copies(
    s: Any, e: Any, plan: Any, memory: Any, all_memory: Any, rows: Any, scratch: Any,
    starts: Any, ends: Any, flags: Any, values: Any, request: int,
) -> int:  # fmt: skip
    """Take the copies that the lanes of an event `e` begin by a request (`rules.tensors.issue`,
    whose operands these are). `all_memory` is that of the host by address; `values` has room for
    what lanes store, which stands for a copy's bytes. Faults are left to who does the copies."""
    op = field(request, OP)
    if op != LOAD and op != STORE and op != REDUCE:
        return 0
    begin_event(s, e, plan)
    become(s, e[E_WARP] << 5)
    for lane in range(LANES):
        if (e[E_LANES] >> lane) & 1 == 0:
            continue
        scratch[REQUEST], scratch[BARRIER] = request, 0
        if prepare_box(memory, rows, scratch, starts, ends, flags, lane, request):
            continue
        become_lane(s, (e[E_WARP] << 5) + lane)
        if is_here(scratch, int(rows[LANES * BLOCKS_ROW + lane])):
            take_box(s, e, all_memory, scratch, values, lane, op)
        if op == LOAD and int(scratch[BARRIER]) >= int(scratch[OWN_SHARED]):
            at = int(scratch[BARRIER]) - int(scratch[OWN_SHARED])
            if at < int(scratch[SHARED_BYTES]):
                key = -1 - (s[ME_BLOCK] << 24 | at)
                complete_copy(s, key, word_at(all_memory, int(scratch[BARRIER])))
    return 0


@jitable
def is_here(scratch: Any, blocks: int) -> int:
    """Return whether a box lies in the shared memory of the block that copies it, or, of a copy to
    the blocks of a mask, in this one's too."""
    if blocks == 0:
        return int(scratch[BOX_SHARED] == scratch[OWN_SHARED])
    behind = int(scratch[OWN_SHARED]) - int(scratch[CLUSTER_SHARED])
    return blocks >> (behind // max(int(scratch[SHARED_STRIDE]), 1)) & 1


@jitable
def take_box(s: Any, e: Any, memory: Any, scratch: Any, values: Any, lane: int, op: int) -> None:
    """Take the accesses of one box."""
    copy = s[s[ME_LANE_AT] + L_COPIES] + 1 + (s[ME_THREAD] << 8) + (s[ME_BLOCK] << 18)
    for byte in range(PIECE):
        values[lane * PIECE + byte] = copy >> 8 * (byte & 3) & 255
    near = int(scratch[TARGET]) - int(scratch[BOX_SHARED])
    e[E_SPACE], e[E_BASE], e[E_LIMIT] = SHARED, scratch[OWN_SHARED], scratch[SHARED_BYTES]
    e[E_OP] = WRITES if op == LOAD else READS
    take_stretch(s, e, memory, values, lane, near, near + int(scratch[SIZE]))
    if op == REDUCE:
        return
    e[E_SPACE], e[E_BASE] = GLOBAL, 0
    e[E_OP] = READS if op == LOAD else WRITES
    for row in range(count_rows(scratch)):
        find_row(scratch, row)
        start = int(scratch[ROW_ADDRESS])
        first, last = start + int(scratch[ROW_FROM]), start + int(scratch[ROW_TO])
        take_stretch(s, e, memory, values, lane, first, last)


@jitable
def take_stretch(s: Any, e: Any, memory: Any, values: Any, lane: int, start: int, end: int) -> None:
    """Take an access of the current thread's agent to bytes side by side, piece by piece."""
    flags = s[s[SITES_AT] + e[E_INSTRUCTION] * SITE_WORDS]
    s[ME_AGENT], s[ME_TIME] = AGENT, s[s[ME_LANE_AT] + L_COPIES]
    s[ME_SPACE] = e[E_SPACE]
    at = start
    while at < end:
        size = min(PIECE - at % PIECE, end - at)
        e[E_SIZE] = e[E_PART] = s[ME_SIZE] = size
        s[ME_ADDRESS] = at
        row = 1
        if e[E_SPACE] == GLOBAL:
            row = allocation(s, at)
        if row > 0:
            if s[TOOLS] & INIT:
                check_written(s, e, flags, row)
            if s[TOOLS] & RACE:
                check_words(s, e, memory, values, lane, row, int(e[E_OP] != READS))
        at += size
