"""Two accesses to the same bytes: whether the model calls them a race, and of which class."""

from __future__ import annotations

from typing import Any

from warploom.detector.knowledge import is_ordered
from warploom.detector.layout import (
    AGENT,
    ATOMIC,
    B_FENCED,
    BLOCK_AT,
    BULK,
    BYTES_AT,
    CLUSTER,
    FLAGS_AT,
    GPU,
    K_PROXY,
    K_RACE,
    K_SAME_VALUE,
    K_STALE,
    K_UNPROMISED,
    L_PROXY_INTERVAL,
    L_PROXY_TIME,
    LANE_WORDS,
    LOAD,
    LOW,
    ME_ADDRESS,
    ME_AGENT,
    ME_BLOCK,
    ME_INTERVAL,
    ME_LANE_AT,
    ME_SIZE,
    ME_SLOT,
    ME_SPACE,
    OP_AT,
    SCOPE_AT,
    SITE_BITS,
    SLOT_LANES,
    STORE,
    STRONG,
    TENSOR,
    TEXELS,
    THREAD_BITS,
    TIME_AT,
    VOLATILE,
)
from warploom.detector.pool import report
from warploom.detector.shared_memory_owners import is_peer
from warploom.detector.tensor.tensor_fences import check_fences
from warploom.simt.lane_counts import jitable

D_OP, D_OTHER_OP, D_NARROW, D_COPY, D_OTHER_COPY = 0, 2, 4, 5, 6
"""Where the detail of a race has its parts: the two ops, whether the scope of one is too narrow,
whether each is a copy of an agent."""


@jitable
def check_record(
    s: Any, first: int, second: int, third: int, old: int, mine: int, value: int
) -> None:
    """Checks the current access, `mine` the third word of its record, against one before it; `old`
    and `value` are what they wrote."""
    bytes_ = third >> BYTES_AT & mine >> BYTES_AT & 15
    if bytes_ == 0 or (third >> OP_AT & 3 == LOAD and mine >> OP_AT & 3 == LOAD):
        return
    if is_ordered(s, first, second):
        if s[ME_SPACE] == TENSOR:
            check_fences(s, first, second, third, mine)
        else:
            check_proxy(s, first, second, third, mine)
    else:
        classify(s, first, second, third, mine, int(equal(old, value, bytes_)))


@jitable
def equal(old: int, value: int, bytes_: int) -> int:
    """Returns whether two words agree on these bytes."""
    for byte in range(4):
        if bytes_ >> byte & 1 and (old ^ value) >> 8 * byte & 255:
            return 0
    return 1


@jitable
def classify(s: Any, first: int, second: int, third: int, mine: int, same: int) -> None:
    """Reports two accesses that are not ordered (PTX ISA, "Morally strong operations", "Data
    races")."""
    flags, own = third >> FLAGS_AT, mine >> FLAGS_AT
    block, scope = first >> BLOCK_AT, min(flags >> SCOPE_AT & 3, own >> SCOPE_AT & 3)
    both = flags & STRONG and own & STRONG
    included = block == s[ME_BLOCK] + 1 or scope >= GPU
    if scope == CLUSTER and not included:
        included = is_peer(s, block) != 0
    whole = third >> BYTES_AT & 15 == mine >> BYTES_AT & 15
    kind, detail = K_RACE, (mine >> OP_AT & 3) | (third >> OP_AT & 3) << D_OTHER_OP
    if both and whole and included:
        if (flags | own) & VOLATILE == 0:
            return
        kind = K_UNPROMISED
    elif third >> OP_AT & 3 == STORE and mine >> OP_AT & 3 == STORE and same and not both:
        kind = K_SAME_VALUE
    detail |= int(both and whole and not included) << D_NARROW
    detail |= int(s[ME_AGENT] != 0) << D_COPY | int(second & AGENT != 0) << D_OTHER_COPY
    other = (first >> BLOCK_AT) - 1 << 32 | second & THREAD_BITS & ~AGENT
    report(s, kind, third & SITE_BITS, other, s[ME_ADDRESS], s[ME_SIZE], detail)


@jitable
def check_proxy(s: Any, first: int, second: int, third: int, mine: int) -> None:
    """Reports a texel that is read though the launch has written it; and a bulk copy that reads
    what ordinary stores of its block wrote, without a fence between the two proxies (PTX ISA,
    "Causality order": proxy-preserved)."""
    if mine >> FLAGS_AT & TEXELS and mine >> OP_AT & 3 == LOAD:
        detail = third >> OP_AT & 3
        other = (first >> BLOCK_AT) - 1 << 32 | second & THREAD_BITS & ~AGENT
        report(s, K_STALE, third & SITE_BITS, other, s[ME_ADDRESS], s[ME_SIZE], detail)
        return
    reads = s[ME_AGENT] and mine >> FLAGS_AT & BULK and mine >> OP_AT & 3 == LOAD
    if not reads or second & AGENT or first >> BLOCK_AT != s[ME_BLOCK] + 1:
        return
    interval, time = first & LOW, second >> TIME_AT
    writer = s[ME_SLOT] + s[SLOT_LANES] + (second & THREAD_BITS) * LANE_WORDS
    fenced = s[writer + L_PROXY_INTERVAL] - 1
    if fenced > interval or (fenced == interval and s[writer + L_PROXY_TIME] > time):
        return
    own = s[s[ME_LANE_AT] + L_PROXY_INTERVAL] - 1
    between = s[s[ME_SLOT] + B_FENCED] - 1
    if own > interval or interval < between < s[ME_INTERVAL]:
        return
    detail = int(third >> OP_AT & 3 == ATOMIC)
    other = s[ME_BLOCK] << 32 | second & THREAD_BITS
    report(s, K_PROXY, third & SITE_BITS, other, s[ME_ADDRESS], s[ME_SIZE], detail)
