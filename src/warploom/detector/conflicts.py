"""Decides, for the race detector, whether the memory model calls two accesses to the same bytes a
race, and of which class, and reports it. Of ordered accesses, reports bulk copies without a proxy
fence before them and reads of texels that the launch has written.

`st.relaxed.cta [a]` in block 0 and in block 1 are strong but not in each other's scope: a race,
with D_NARROW set. `st.volatile [a]` in both: "unpromised". Two weak stores of one value:
"same-value".
"""

from __future__ import annotations

from warploom.detector.knowledge import is_ordered
from warploom.detector.layout import (
    AGENT,
    ALL_BYTES,
    ATOMIC,
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
    LOAD,
    LOW,
    OP_AT,
    OP_BITS,
    SCOPE_AT,
    SCOPE_BITS,
    SITE_BITS,
    STORE,
    STRONG,
    TENSOR,
    TEXELS,
    THREAD_BITS,
    TIME_AT,
    VOLATILE,
)
from warploom.detector.pool import report
from warploom.detector.records import DetectorState, ResidentBlock, ThreadKnowledge
from warploom.detector.shared_memory_owners import is_peer
from warploom.detector.tensor_fences import check_fences
from warploom.simt.lane_counts import jitable

D_OP, D_OTHER_OP, D_NARROW, D_COPY, D_OTHER_COPY = 0, 2, 4, 5, 6
"""Bit positions in the detail of a race: the two ops, whether the scope of one is too narrow,
whether each is a copy of an agent."""


@jitable
def check_record(
    state: DetectorState,
    interval_word: int,
    thread_word: int,
    access_word: int,
    old: int,
    own_access: int,
    value: int,
) -> None:
    """Checks the current access, with access word `own_access`, against an earlier record of the
    same four bytes, given by its three words; `old` and `value` are what the two wrote. Nothing if
    they have no byte in common or both are loads. Accesses that are not ordered are passed to
    `report_race`; ordered ones are checked for a missing fence: in tensor memory by `check_fences`,
    else by `check_proxy`."""
    bytes_ = access_word >> BYTES_AT & own_access >> BYTES_AT & ALL_BYTES
    op, own_op = access_word >> OP_AT & OP_BITS, own_access >> OP_AT & OP_BITS
    if bytes_ == 0 or op == own_op == LOAD:
        return
    if is_ordered(state, interval_word, thread_word):
        if state.current_space == TENSOR:
            check_fences(state, interval_word, thread_word, access_word, own_access)
        else:
            check_proxy(state, interval_word, thread_word, access_word, own_access)
    else:
        report_race(
            state,
            interval_word,
            thread_word,
            access_word,
            own_access,
            int(bytes_agree(old, value, bytes_)),
        )


@jitable
def bytes_agree(old: int, value: int, bytes_: int) -> int:
    """Returns whether two 32-bit words agree on the bytes whose bits are set in the mask
    `bytes_`."""
    for byte in range(4):
        if bytes_ >> byte & 1 and (old ^ value) >> 8 * byte & 255:
            return 0
    return 1


@jitable
def report_race(
    state: DetectorState,
    interval_word: int,
    thread_word: int,
    access_word: int,
    own_access: int,
    same_value: int,
) -> None:
    """Reports two unordered accesses to common bytes, an earlier one, given by its three words, and
    the current one (`own_access`). Does not report morally strong ones (both strong, on the same
    bytes, in each other's scope) that are not volatile (PTX ISA, "Morally strong operations", "Data
    races"). The kind is K_UNPROMISED if they are morally strong but volatile, K_SAME_VALUE if they
    are two stores of one value (`same_value`) and not both strong, else K_RACE. The detail has both
    ops, D_NARROW if only the scope is too narrow, D_COPY if the current access is an agent's,
    D_OTHER_COPY if the earlier one is."""
    flags, own_flags = access_word >> FLAGS_AT, own_access >> FLAGS_AT
    op, own_op = access_word >> OP_AT & OP_BITS, own_access >> OP_AT & OP_BITS
    block = interval_word >> BLOCK_AT
    # Both have to include the other thread, so that the narrower scope decides.
    scope = min(flags >> SCOPE_AT & SCOPE_BITS, own_flags >> SCOPE_AT & SCOPE_BITS)
    both = flags & STRONG and own_flags & STRONG
    in_scope = block == state.current_block + 1 or scope >= GPU
    if scope == CLUSTER and not in_scope:
        in_scope = is_peer(state, block) != 0
    whole = access_word >> BYTES_AT & ALL_BYTES == own_access >> BYTES_AT & ALL_BYTES
    kind, detail = K_RACE, own_op | op << D_OTHER_OP
    if both and whole and in_scope:
        if (flags | own_flags) & VOLATILE == 0:
            return
        kind = K_UNPROMISED
    elif op == own_op == STORE and same_value and not both:
        kind = K_SAME_VALUE
    detail |= int(both and whole and not in_scope) << D_NARROW
    detail |= (
        int(state.current_agent != 0) << D_COPY | int(thread_word & AGENT != 0) << D_OTHER_COPY
    )
    # The block, without the one that is added to it in records, and the thread that issued a copy.
    other_agent = (interval_word >> BLOCK_AT) - 1 << 32 | thread_word & THREAD_BITS & ~AGENT
    report(
        state,
        kind,
        access_word & SITE_BITS,
        other_agent,
        state.current_address,
        state.current_size,
        detail,
    )


@jitable
def check_proxy(
    state: DetectorState, interval_word: int, thread_word: int, access_word: int, own_access: int
) -> None:
    """Checks an earlier access, given by its three words, and the current one (`own_access`), which
    is ordered after it, and reports two errors. K_STALE: a texel is read that the launch has
    written. K_PROXY: a bulk copy reads what ordinary accesses of its block wrote, without a proxy
    fence by the writer after its write, by the reader in a later interval, or by any thread in an
    interval between the two (PTX ISA, "Causality order": proxy-preserved)."""
    if own_access >> FLAGS_AT & TEXELS and own_access >> OP_AT & OP_BITS == LOAD:
        detail = access_word >> OP_AT & OP_BITS
        other_agent = (interval_word >> BLOCK_AT) - 1 << 32 | thread_word & THREAD_BITS & ~AGENT
        report(
            state,
            K_STALE,
            access_word & SITE_BITS,
            other_agent,
            state.current_address,
            state.current_size,
            detail,
        )
        return
    reads = (
        state.current_agent
        and own_access >> FLAGS_AT & BULK
        and own_access >> OP_AT & OP_BITS == LOAD
    )
    if not reads or thread_word & AGENT or interval_word >> BLOCK_AT != state.current_block + 1:
        return
    interval, time = interval_word & LOW, thread_word >> TIME_AT
    writer = ThreadKnowledge(
        state, state.current_slot + state.slot_lanes, thread_word & THREAD_BITS
    )
    fence_interval = writer.proxy_interval - 1
    if fence_interval > interval or (fence_interval == interval and writer.proxy_time > time):
        return
    # The interval of the current thread's last proxy fence, and below that of any thread's in the
    # block; -1 for none.
    own_fence = ThreadKnowledge(state, state.current_lane_at).proxy_interval - 1
    between = ResidentBlock(state, state.current_slot).fenced - 1
    if own_fence > interval or interval < between < state.current_interval:
        return
    detail = int(access_word >> OP_AT & OP_BITS == ATOMIC)
    other_agent = state.current_block << 32 | thread_word & THREAD_BITS
    report(
        state,
        K_PROXY,
        access_word & SITE_BITS,
        other_agent,
        state.current_address,
        state.current_size,
        detail,
    )
