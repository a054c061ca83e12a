"""Release and acquire: fences, and strong accesses.

Source: PTX ISA, "Release and Acquire Patterns", "Synchronizes-with".
"""

from __future__ import annotations

from typing import Any

from warploom.detector.knowledge import become
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
    K_BLOCK,
    K_SCOPE,
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
    N_FIRST,
    N_NEXT,
    N_SECOND,
    O_CHAIN,
    O_KEY,
    RELEASE_WORDS,
    RELEASES,
    SCOPE_AT,
    V_TIME,
)
from warploom.detector.pool import push, take
from warploom.detector.release_notes import learn_release, note_release
from warploom.detector.shared_memory_owners import is_peer
from warploom.simt.lane_counts import first_lane, jitable

NEAR = 64
"""So many nodes of a chain are looked at for an earlier one."""


@jitable
def location(s: Any, key: int, make: int) -> int:
    """Returns where the record of a location is; 0 where there is none, unless to `make` one."""
    size = s[LOCATIONS]
    at = ((key >> 2) & 0xFFFFFFFF) * 0x1E3779B1 >> 12
    for _ in range(size):
        place = s[LOCATIONS_AT] + at % size * LOCATION_WORDS
        if s[place + O_KEY] == key:
            return int(place)
        if s[place + O_KEY] == 0:
            if not make:
                return 0
            s[place + O_KEY] = key
            return int(place)
        at += 1
    return 0


@jitable
def is_included(s: Any, release: int, scope: int) -> int:
    """Returns whether a release and the current thread are in each other's scope."""
    narrowest, block = min(s[release + K_SCOPE], scope), s[release + K_BLOCK]
    if narrowest >= GPU or block == s[ME_BLOCK] + 1:
        return 1
    return int(narrowest == CLUSTER and is_peer(s, block))


@jitable
def read_strongly(s: Any, key: int, flags: int) -> None:
    """Let the current thread read a location by a strong access: it acquires what was released
    there, or will, at its next fence."""
    place = location(s, key, 0)
    if place == 0 or s[place + O_CHAIN] == 0:
        return
    chain, lane = s[place + O_CHAIN], s[ME_LANE_AT]
    scope, last = flags >> SCOPE_AT & 3, s[lane + L_READ]
    if flags & ACQUIRES:
        acquire_chain(s, chain, scope)
    elif last and s[last + N_SECOND] == scope and continues(s, chain, s[last + N_FIRST]):
        s[last + N_FIRST] = chain
    else:
        s[lane + L_READ] = push(s, last, chain, scope, 0, 0)


@jitable
def continues(s: Any, chain: int, earlier: int) -> int:
    """Returns whether a chain goes on from an earlier one, as far as its first nodes tell."""
    for _ in range(NEAR):
        if chain == earlier:
            return 1
        if chain == 0:
            return 0
        chain = s[chain + C_NEXT]
    return 0


@jitable
def acquire_chain(s: Any, chain: int, scope: int) -> None:
    """Let the current thread learn of the releases of a chain whose scopes fit."""
    known, first, lane = s[s[ME_LANE_AT] + L_ACQUIRED], chain, s[ME_LANE_AT]
    while chain and chain != known:
        if is_included(s, s[chain + C_RELEASE], scope):
            learn_release(s, s[chain + C_RELEASE])
        chain = s[chain + C_NEXT]
    if scope >= GPU:
        s[lane + L_ACQUIRED] = first


@jitable
def write_strongly(s: Any, key: int, flags: int, is_atomic: int) -> None:
    """Let the current thread write a location by a strong access: with it, or with the fence before
    it, a release. Read-modify-writes continue what was released there."""
    scope, fence = flags >> SCOPE_AT & 3, s[ME_LANE_AT] + L_FENCE
    releases = flags & RELEASES or s[fence + K_BLOCK] == s[ME_BLOCK] + 1
    place = location(s, key, releases)
    if place == 0:
        return
    chain = s[place + O_CHAIN] if is_atomic else 0
    if chain and flags & RELEASES == 0 and same_release(s, s[chain + C_RELEASE], fence, scope):
        return
    if flags & RELEASES:
        release = take(s, RELEASE_WORDS + CHAIN_WORDS)
        if release:
            note_release(s, release, scope)
            chain = linked(s, release, chain)
    elif releases:
        wide = s[ME_LANE_AT] + L_WIDE_FENCE
        if scope > s[fence + K_SCOPE] and s[wide + K_BLOCK] == s[ME_BLOCK] + 1:
            chain = fenced(s, wide, scope, chain)
        chain = fenced(s, fence, scope, chain)
    s[place + O_CHAIN] = chain


@jitable
def fenced(s: Any, fence: int, scope: int, chain: int) -> int:
    """Return a chain that begins with the release of a fence by a write of a scope behind it."""
    release = take(s, RELEASE_WORDS + CHAIN_WORDS)
    if release == 0:
        return chain
    for word in range(RELEASE_WORDS):
        s[release + word] = s[fence + word]
    s[release + K_SCOPE] = min(scope, s[fence + K_SCOPE])
    return linked(s, release, chain)


@jitable
def linked(s: Any, release: int, chain: int) -> int:
    """Return a chain that begins with a release, behind which its node has room."""
    s[release + RELEASE_WORDS + C_NEXT] = chain
    s[release + RELEASE_WORDS + C_RELEASE] = release
    return int(release + RELEASE_WORDS)


@jitable
def same_release(s: Any, release: int, fence: int, scope: int) -> int:
    """Returns whether a release is that of the current thread's last fence, made before."""
    same = s[release + K_SCOPE] == min(scope, s[fence + K_SCOPE])
    for word in range(K_SCOPE):
        same &= s[release + word] == s[fence + word]
    return int(same)


@jitable
def forget_releases(s: Any, key: int) -> None:
    """End, by a weak write to a location, what was released there."""
    place = location(s, key, 0)
    if place:
        s[place + O_CHAIN] = 0


@jitable
def fence(s: Any, e: Any, flags: int) -> None:
    """Lanes pass a fence: what they read strongly before it is acquired, and what they write
    strongly behind it releases what they know now."""
    left, scope = e[E_LANES], flags >> SCOPE_AT & 3
    while left:
        become(s, (e[E_WARP] << 5) + first_lane(left))
        left &= left - 1
        lane = s[ME_LANE_AT]
        if flags & ACQUIRES:
            acquire_what_was_read(s, scope)
        if flags & RELEASES:
            own = s[ME_BLOCK] + 1
            if scope >= GPU:
                s[lane + L_WIDE_FENCE + K_BLOCK] = 0
            elif s[lane + L_FENCE + K_BLOCK] == own and s[lane + L_FENCE + K_SCOPE] > scope:
                for word in range(RELEASE_WORDS):
                    s[lane + L_WIDE_FENCE + word] = s[lane + L_FENCE + word]
            note_release(s, lane + L_FENCE, scope)
    s[s[ME_WARP_AT] + V_TIME] += 1


@jitable
def acquire_what_was_read(s: Any, scope: int) -> None:
    """Let the current thread pass a fence: it learns of what strong reads have seen, as far as the
    fence's scope goes. What they saw of a wider scope is left for a fence of that scope."""
    node, kept = s[s[ME_LANE_AT] + L_READ], 0
    while node:
        following = s[node + N_NEXT]
        acquire_chain(s, s[node + N_FIRST], min(scope, s[node + N_SECOND]))
        if scope < min(s[node + N_SECOND], GPU):
            s[node + N_NEXT] = kept
            kept = node
        node = following
    s[s[ME_LANE_AT] + L_READ] = kept


@jitable
def fence_proxies(s: Any, e: Any) -> None:
    """Lanes pass a fence between ordinary accesses and those of bulk copies."""
    left = e[E_LANES]
    while left:
        become(s, (e[E_WARP] << 5) + first_lane(left))
        left &= left - 1
        s[s[ME_LANE_AT] + L_PROXY_INTERVAL] = s[ME_INTERVAL] + 1
        s[s[ME_LANE_AT] + L_PROXY_TIME] = s[ME_TIME] + 1
    s[s[ME_SLOT] + B_FENCED] = s[ME_INTERVAL] + 1
    s[s[ME_WARP_AT] + V_TIME] += 1
