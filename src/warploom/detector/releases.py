"""Processes release and acquire in the race detector: fences, and strong accesses to locations,
which make one thread know what another knew.

    thread 0   st [x]; fence.acq_rel.gpu; st.relaxed.gpu [f]
    thread 40  ld.relaxed.gpu [f]; fence.acq_rel.gpu; ld [x]

The first fence writes a release record for thread 0, its store links that into the chain of f. The
load retains the chain in `read`, and the second fence acquires its releases: thread 40 knows the
store to x. Fences order nothing between themselves.

Source: PTX ISA, "Release and Acquire Patterns", "Synchronizes-with".
"""

from __future__ import annotations

from warploom.detector.knowledge import set_current_thread
from warploom.detector.layout import ACQUIRES, CLUSTER, GPU, RELEASES, SCOPE_AT, SCOPE_BITS
from warploom.detector.pool import allocate, push_record
from warploom.detector.records import (
    AccessNode,
    DetectorEvent,
    DetectorState,
    ReleaseChain,
    ReleaseLocation,
    ReleaseRecord,
    ResidentBlock,
    ThreadKnowledge,
    WarpKnowledge,
)
from warploom.detector.release_notes import acquire_release, write_release
from warploom.detector.shared_memory_owners import is_peer
from warploom.simt.lane_counts import first_lane, jitable
from warploom.simt.record_copies import copy_record

CHAIN_DEPTH = 64
"""Nodes of a chain that are searched for an earlier one."""


@jitable
def find_location(state: DetectorState, key: int, create: int) -> int:
    """Returns the index of the record of a location (memory that threads release to) by its key: an
    address, or `shared_key`, in a hash table. If it is absent, adds it with `create`, else returns
    0; 0 also if the table is full."""
    size = state.locations
    # Multiplicative hashing, linear probing.
    at = ((key >> 2) & 0xFFFFFFFF) * 0x1E3779B1 >> 12
    for _ in range(size):
        entry = ReleaseLocation(state, state.locations_at, at % size)
        if entry.key == key:
            return int(entry.at)
        if entry.key == 0:
            if not create:
                return 0
            entry.key = key
            return int(entry.at)
        at += 1
    return 0


@jitable
def is_in_scope(state: DetectorState, release: ReleaseRecord, scope: int) -> int:
    """Returns whether a release and an acquire of scope `scope` by the current thread are in each
    other's scope: the narrower of both scopes includes both threads."""
    narrowest, block = min(release.scope, scope), release.block
    if narrowest >= GPU or block == state.current_block + 1:
        return 1
    return int(narrowest == CLUSTER and is_peer(state, block))


@jitable
def acquire_by_read(state: DetectorState, key: int, flags: int) -> None:
    """Processes a strong read of a location. One that ACQUIRES acquires the releases of the
    location's chain; any other stores the chain and the read's scope in `read` for the thread's
    next fence, in place of the chain stored last if it continues that one in the same scope.
    Nothing if the location has no chain."""
    entry = ReleaseLocation(state, find_location(state, key, 0))
    if entry.at == 0 or entry.chain == 0:
        return
    chain, lane = ReleaseChain(state, entry.chain), ThreadKnowledge(state, state.current_lane_at)
    scope, last = flags >> SCOPE_AT & SCOPE_BITS, AccessNode(state, lane.read)
    if flags & ACQUIRES:
        acquire_chain(state, chain, scope)
    elif (
        last.at
        # Nodes of `read` have a chain and a scope instead of the interval word and the thread word.
        and last.thread == scope
        and is_continuation(state, chain, last.interval)
    ):
        last.interval = chain.at
    else:
        lane.read = push_record(state, last.at, chain.at, scope, 0, 0)


@jitable
def is_continuation(state: DetectorState, chain: ReleaseChain, earlier: int) -> int:
    """Returns whether a chain of releases continues chain `earlier`, which is among its first
    CHAIN_DEPTH nodes; 0 if it lies deeper."""
    for _ in range(CHAIN_DEPTH):
        if chain.at == earlier:
            return 1
        if chain.at == 0:
            return 0
        chain = ReleaseChain(state, chain.next)
    return 0


@jitable
def acquire_chain(state: DetectorState, chain: ReleaseChain, scope: int) -> None:
    """Lets the current thread acquire the releases of a chain whose scopes include it, newest
    first, up to the part that it acquired last (`acquired`, updated if `scope` is gpu or wider)."""
    last_acquired = ThreadKnowledge(state, state.current_lane_at).acquired
    newest = chain.at
    lane = ThreadKnowledge(state, state.current_lane_at)
    # A chain only grows at its front: from the node that was newest last time on, all is known.
    while chain.at and chain.at != last_acquired:
        if is_in_scope(state, ReleaseRecord(state, chain.release), scope):
            acquire_release(state, ReleaseRecord(state, chain.release))
        chain = ReleaseChain(state, chain.next)
    # A narrower acquire may have skipped releases that a later, wider one must not.
    if scope >= GPU:
        lane.acquired = newest


@jitable
def release_by_write(state: DetectorState, key: int, flags: int, is_atomic: int) -> None:
    """Processes a strong write to a location: a release by itself (RELEASES) or by the fence before
    it, which is prepended to the location's chain. Read-modify-writes (`is_atomic`) continue that
    chain, other writes begin a new one, which is empty if they release nothing. Of a fence in a
    narrower scope than the write's, the last wider fence (`wide_fence`) is released, too. Nothing
    for a location without record to which nothing is released, for a new location if the table is
    full, nor for a read-modify-write that would repeat the newest release."""
    scope = flags >> SCOPE_AT & SCOPE_BITS
    fence = ThreadKnowledge(state, state.current_lane_at).fence
    releases = flags & RELEASES or fence.block == state.current_block + 1
    entry = ReleaseLocation(state, find_location(state, key, releases))
    if entry.at == 0:
        return
    # A read-modify-write is part of the release sequence of what it reads: whoever reads its value
    # synchronizes with the earlier releases as well. A plain write ends the sequence.
    chain = ReleaseChain(state, entry.chain if is_atomic else 0)
    # An atomic again after the same fence adds nothing: a loop of them must not lengthen the chain.
    if (
        chain.at
        and flags & RELEASES == 0
        and is_fence_release(state, ReleaseRecord(state, chain.release), fence, scope)
    ):
        return
    if flags & RELEASES:
        release = ReleaseRecord(state, allocate(state, ReleaseRecord.WORDS + ReleaseChain.WORDS))
        if release.at:
            write_release(state, release, scope)
            chain = ReleaseChain(state, prepend_release(state, release.at, chain.at))
    elif releases:
        wide = ThreadKnowledge(state, state.current_lane_at).wide_fence
        # The write's scope is wider than that of the last fence: an earlier wide fence may be in
        # scope of threads that the last one is not.
        if scope > fence.scope and wide.block == state.current_block + 1:
            chain = ReleaseChain(state, prepend_fence_release(state, wide, scope, chain.at))
        chain = ReleaseChain(state, prepend_fence_release(state, fence, scope, chain.at))
    entry.chain = chain.at


@jitable
def prepend_fence_release(
    state: DetectorState, fence: ReleaseRecord, scope: int, chain: int
) -> int:
    """Returns `chain` with a copy of the release of a fence (`fence`) before it, in the
    narrower of the fence's scope and that of the write that publishes it (`scope`); `chain` itself
    if the pool is exhausted."""
    release = ReleaseRecord(state, allocate(state, ReleaseRecord.WORDS + ReleaseChain.WORDS))
    if release.at == 0:
        return chain
    copy_record(release, fence)
    release.scope = min(scope, fence.scope)
    return prepend_release(state, release.at, chain)


@jitable
def prepend_release(state: DetectorState, release: int, chain: int) -> int:
    """Writes the node that prepends the release record at index `release` to a list of release
    records, `chain` (the index of its first node), and returns the node's index, which is the new
    list. The node is stored right after the release record, whose allocation includes it, so a
    release can be in one list only."""
    ReleaseChain(state, release + ReleaseRecord.WORDS).next = chain
    ReleaseChain(state, release + ReleaseRecord.WORDS).release = release
    return int(release + ReleaseRecord.WORDS)


@jitable
def is_fence_release(
    state: DetectorState, release: ReleaseRecord, fence: ReleaseRecord, scope: int
) -> int:
    """Returns whether a chain's release equals that of the current thread's last fence (`fence`),
    in the narrower of the fence's scope and that of a write (`scope`): an earlier write has
    published it already."""
    same = release.scope == min(scope, fence.scope)
    for word in range(ReleaseRecord.scope):
        same &= state.words[release.at + word] == state.words[fence.at + word]
    return int(same)


@jitable
def end_chain(state: DetectorState, key: int) -> None:
    """Empties the chain of a location, as a weak write to it does: a later read synchronizes with
    no release."""
    entry = ReleaseLocation(state, find_location(state, key, 0))
    if entry.at:
        entry.chain = 0


@jitable
def fence(state: DetectorState, event: DetectorEvent, flags: int) -> None:
    """Processes a fence of an event's lanes: they acquire what they read strongly before it
    (ACQUIRES), and their later strong writes release what they know now (RELEASES, `fence`). The
    release of a wider fence before it is stored in `wide_fence`, which a fence of gpu scope or
    wider empties. Advances the warp's time."""
    left, scope = event.lanes, flags >> SCOPE_AT & SCOPE_BITS
    while left:
        set_current_thread(state, (event.warp << 5) + first_lane(left))
        left &= left - 1
        lane = ThreadKnowledge(state, state.current_lane_at)
        if flags & ACQUIRES:
            acquire_strong_reads(state, scope)
        if flags & RELEASES:
            own = state.current_block + 1
            if scope >= GPU:
                lane.wide_fence.block = 0
            elif lane.fence.block == own and lane.fence.scope > scope:
                copy_record(lane.wide_fence, lane.fence)
            write_release(state, lane.fence, scope)
    WarpKnowledge(state, state.current_warp_at).time += 1


@jitable
def acquire_strong_reads(state: DetectorState, scope: int) -> None:
    """Acquires the chains of releases that the current thread's strong reads have seen (`read`),
    within the scope of the fence. A chain that was read in a wider scope is retained for a later
    fence of that scope, unless the fence is of gpu scope or wider; all others are forgotten."""
    node, pending = AccessNode(state, ThreadKnowledge(state, state.current_lane_at).read), 0
    while node.at:
        following = node.next
        acquire_chain(state, ReleaseChain(state, node.interval), min(scope, node.thread))
        # A later fence of a wider scope can still synchronize with this chain.
        if scope < min(node.thread, GPU):
            node.next = pending
            pending = node.at
        node = AccessNode(state, following)
    ThreadKnowledge(state, state.current_lane_at).read = pending


@jitable
def fence_proxies(state: DetectorState, event: DetectorEvent) -> None:
    """Processes a fence between ordinary accesses and those of bulk copies (`fence.proxy.async`):
    stores its interval and time for each lane, and its interval for the block, which
    `conflicts.check_proxy` reads. Advances the warp's time."""
    left = event.lanes
    while left:
        set_current_thread(state, (event.warp << 5) + first_lane(left))
        left &= left - 1
        ThreadKnowledge(state, state.current_lane_at).proxy_interval = state.current_interval + 1
        ThreadKnowledge(state, state.current_lane_at).proxy_time = state.current_time + 1
    ResidentBlock(state, state.current_slot).fenced = state.current_interval + 1
    WarpKnowledge(state, state.current_warp_at).time += 1
