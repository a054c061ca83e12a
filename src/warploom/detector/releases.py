"""Processes release and acquire in the race detector: fences, and strong accesses to locations,
which make one thread know what another knew.

    thread 0   st [x]; fence.acq_rel.gpu; st.relaxed.gpu [f]
    thread 40  ld.relaxed.gpu [f]; fence.acq_rel.gpu; ld [x]

The first fence writes a release record for thread 0, its store links that into the chain of f. The
load retains the chain in L_READ, and the second fence acquires its releases: thread 40 knows the
store to x. Fences order nothing between themselves.

Source: PTX ISA, "Release and Acquire Patterns", "Synchronizes-with".
"""

from __future__ import annotations

from typing import Any

from warploom.detector.knowledge import set_current_thread
from warploom.detector.layout import (
    ACQUIRES,
    B_FENCED,
    C_NEXT,
    C_RELEASE,
    CHAIN_WORDS,
    CLUSTER,
    E_LANES,
    E_WARP,
    GPU,
    L_ACQUIRED,
    L_FENCE,
    L_PROXY_INTERVAL,
    L_PROXY_TIME,
    L_READ,
    L_WIDE_FENCE,
    LOCATION_WORDS,
    LOCATIONS,
    LOCATIONS_AT,
    ME_BLOCK,
    ME_INTERVAL,
    ME_LANE_AT,
    ME_SLOT,
    ME_TIME,
    ME_WARP_AT,
    N_INTERVAL,
    N_NEXT,
    N_THREAD,
    O_CHAIN,
    O_KEY,
    REL_BLOCK,
    REL_SCOPE,
    RELEASE_WORDS,
    RELEASES,
    SCOPE_AT,
    V_TIME,
)
from warploom.detector.pool import allocate, push_record
from warploom.detector.release_notes import acquire_release, write_release
from warploom.detector.shared_memory_owners import is_peer
from warploom.simt.lane_counts import first_lane, jitable

CHAIN_DEPTH = 64
"""Nodes of a chain that are searched for an earlier one."""


@jitable
def find_location(state: Any, key: int, create: int) -> int:
    """Returns the index of the record of a location (memory that threads release to) by its key: an
    address, or `shared_key`, in a hash table. If it is absent, adds it with `create`, else returns
    0; 0 also if the table is full."""
    size = state[LOCATIONS]
    # Multiplicative hashing, linear probing.
    at = ((key >> 2) & 0xFFFFFFFF) * 0x1E3779B1 >> 12
    for _ in range(size):
        entry = state[LOCATIONS_AT] + at % size * LOCATION_WORDS
        if state[entry + O_KEY] == key:
            return int(entry)
        if state[entry + O_KEY] == 0:
            if not create:
                return 0
            state[entry + O_KEY] = key
            return int(entry)
        at += 1
    return 0


@jitable
def is_in_scope(state: Any, release: int, scope: int) -> int:
    """Returns whether a release and an acquire of scope `scope` by the current thread are in each
    other's scope: the narrower of both scopes includes both threads."""
    narrowest, block = min(state[release + REL_SCOPE], scope), state[release + REL_BLOCK]
    if narrowest >= GPU or block == state[ME_BLOCK] + 1:
        return 1
    return int(narrowest == CLUSTER and is_peer(state, block))


@jitable
def acquire_by_read(state: Any, key: int, flags: int) -> None:
    """Processes a strong read of a location: one that ACQUIRES acquires the releases of its chain;
    another retains the chain in L_READ for the thread's next fence, in place of an earlier chain
    that it continues. Nothing if the location has no chain."""
    entry = find_location(state, key, 0)
    if entry == 0 or state[entry + O_CHAIN] == 0:
        return
    chain, lane = state[entry + O_CHAIN], state[ME_LANE_AT]
    scope, last = flags >> SCOPE_AT & 3, state[lane + L_READ]
    if flags & ACQUIRES:
        acquire_chain(state, chain, scope)
    elif (
        last
        # Nodes of L_READ have a chain and a scope in place of the interval word and the thread
        # word.
        and state[last + N_THREAD] == scope
        and is_continuation(state, chain, state[last + N_INTERVAL])
    ):
        state[last + N_INTERVAL] = chain
    else:
        state[lane + L_READ] = push_record(state, last, chain, scope, 0, 0)


@jitable
def is_continuation(state: Any, chain: int, earlier: int) -> int:
    """Returns whether a chain of releases continues chain `earlier`, which is among its first
    CHAIN_DEPTH nodes; 0 if it lies deeper."""
    for _ in range(CHAIN_DEPTH):
        if chain == earlier:
            return 1
        if chain == 0:
            return 0
        chain = state[chain + C_NEXT]
    return 0


@jitable
def acquire_chain(state: Any, chain: int, scope: int) -> None:
    """Lets the current thread acquire the releases of a chain whose scopes include it, newest
    first, up to the part that it acquired last (L_ACQUIRED, updated if `scope` is gpu or wider)."""
    last_acquired, newest, lane = state[state[ME_LANE_AT] + L_ACQUIRED], chain, state[ME_LANE_AT]
    while chain and chain != last_acquired:
        if is_in_scope(state, state[chain + C_RELEASE], scope):
            acquire_release(state, state[chain + C_RELEASE])
        chain = state[chain + C_NEXT]
    # A narrower acquire may have skipped releases that a later, wider one must not.
    if scope >= GPU:
        state[lane + L_ACQUIRED] = newest


@jitable
def release_by_write(state: Any, key: int, flags: int, is_atomic: int) -> None:
    """Processes a strong write to a location: a release by itself (RELEASES) or by the fence before
    it, which is prepended to the location's chain. Read-modify-writes (`is_atomic`) continue that
    chain, other writes begin a new one, which is empty if they release nothing. Of a fence in a
    narrower scope than the write's, the last wider fence (L_WIDE_FENCE) is released, too. Nothing
    for a location without record to which nothing is released, nor for a read-modify-write that
    would repeat the newest release."""
    scope, fence = flags >> SCOPE_AT & 3, state[ME_LANE_AT] + L_FENCE
    releases = flags & RELEASES or state[fence + REL_BLOCK] == state[ME_BLOCK] + 1
    entry = find_location(state, key, releases)
    if entry == 0:
        return
    chain = state[entry + O_CHAIN] if is_atomic else 0
    # An atomic again after the same fence adds nothing: a loop of them must not lengthen the chain.
    if (
        chain
        and flags & RELEASES == 0
        and is_fence_release(state, state[chain + C_RELEASE], fence, scope)
    ):
        return
    if flags & RELEASES:
        release = allocate(state, RELEASE_WORDS + CHAIN_WORDS)
        if release:
            write_release(state, release, scope)
            chain = prepend_release(state, release, chain)
    elif releases:
        wide = state[ME_LANE_AT] + L_WIDE_FENCE
        # The write's scope is wider than that of the last fence: an earlier wide fence may be in
        # scope of threads that the last one is not.
        if scope > state[fence + REL_SCOPE] and state[wide + REL_BLOCK] == state[ME_BLOCK] + 1:
            chain = prepend_fence_release(state, wide, scope, chain)
        chain = prepend_fence_release(state, fence, scope, chain)
    state[entry + O_CHAIN] = chain


@jitable
def prepend_fence_release(state: Any, fence: int, scope: int, chain: int) -> int:
    """Returns `chain` with a copy of a fence's release (`fence`: its index) before it, in the
    narrower of the fence's scope and that of the write that publishes it (`scope`); `chain` itself
    if the pool is exhausted."""
    release = allocate(state, RELEASE_WORDS + CHAIN_WORDS)
    if release == 0:
        return chain
    for word in range(RELEASE_WORDS):
        state[release + word] = state[fence + word]
    state[release + REL_SCOPE] = min(scope, state[fence + REL_SCOPE])
    return prepend_release(state, release, chain)


@jitable
def prepend_release(state: Any, release: int, chain: int) -> int:
    """Returns the chain that begins with the release record at index `release` and continues with
    `chain`; its node is stored right after the release record, whose allocation includes it."""
    state[release + RELEASE_WORDS + C_NEXT] = chain
    state[release + RELEASE_WORDS + C_RELEASE] = release
    return int(release + RELEASE_WORDS)


@jitable
def is_fence_release(state: Any, release: int, fence: int, scope: int) -> int:
    """Returns whether a chain's release equals that of the current thread's last fence (`fence`),
    in the scope of a write: an earlier write has published it already."""
    same = state[release + REL_SCOPE] == min(scope, state[fence + REL_SCOPE])
    for word in range(REL_SCOPE):
        same &= state[release + word] == state[fence + word]
    return int(same)


@jitable
def end_chain(state: Any, key: int) -> None:
    """Empties the chain of a location, as a weak write to it does: a later read synchronises with
    no release."""
    entry = find_location(state, key, 0)
    if entry:
        state[entry + O_CHAIN] = 0


@jitable
def fence(state: Any, event: Any, flags: int) -> None:
    """Processes a fence of an event's lanes: they acquire what they read strongly before it
    (ACQUIRES), and their later strong writes release what they know now (RELEASES, L_FENCE). The
    release of a wider fence before it is kept in L_WIDE_FENCE, which a fence of gpu scope or wider
    empties. Advances the warp's time."""
    left, scope = event[E_LANES], flags >> SCOPE_AT & 3
    while left:
        set_current_thread(state, (event[E_WARP] << 5) + first_lane(left))
        left &= left - 1
        lane = state[ME_LANE_AT]
        if flags & ACQUIRES:
            acquire_strong_reads(state, scope)
        if flags & RELEASES:
            own = state[ME_BLOCK] + 1
            if scope >= GPU:
                state[lane + L_WIDE_FENCE + REL_BLOCK] = 0
            elif (
                state[lane + L_FENCE + REL_BLOCK] == own
                and state[lane + L_FENCE + REL_SCOPE] > scope
            ):
                for word in range(RELEASE_WORDS):
                    state[lane + L_WIDE_FENCE + word] = state[lane + L_FENCE + word]
            write_release(state, lane + L_FENCE, scope)
    state[state[ME_WARP_AT] + V_TIME] += 1


@jitable
def acquire_strong_reads(state: Any, scope: int) -> None:
    """Acquires the chains of releases that the current thread's strong reads have seen (L_READ),
    within the scope of the fence. A chain that was read in a wider scope is retained for a later
    fence of that scope, unless the fence is of gpu scope or wider; all others are forgotten."""
    node, pending = state[state[ME_LANE_AT] + L_READ], 0
    while node:
        following = state[node + N_NEXT]
        acquire_chain(state, state[node + N_INTERVAL], min(scope, state[node + N_THREAD]))
        # A later fence of a wider scope can still synchronise with this chain.
        if scope < min(state[node + N_THREAD], GPU):
            state[node + N_NEXT] = pending
            pending = node
        node = following
    state[state[ME_LANE_AT] + L_READ] = pending


@jitable
def fence_proxies(state: Any, event: Any) -> None:
    """Processes a fence between ordinary accesses and those of bulk copies (`fence.proxy.async`):
    stores its interval and time for each lane, and its interval for the block, which
    `conflicts.check_proxy` reads. Advances the warp's time."""
    left = event[E_LANES]
    while left:
        set_current_thread(state, (event[E_WARP] << 5) + first_lane(left))
        left &= left - 1
        state[state[ME_LANE_AT] + L_PROXY_INTERVAL] = state[ME_INTERVAL] + 1
        state[state[ME_LANE_AT] + L_PROXY_TIME] = state[ME_TIME] + 1
    state[state[ME_SLOT] + B_FENCED] = state[ME_INTERVAL] + 1
    state[state[ME_WARP_AT] + V_TIME] += 1
