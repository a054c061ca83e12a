"""Models what all SMs share: L2 in slices, atomics in them, and DRAM in channels.

The requests of a quantum are served in the order of their time (and of the SMs, where it is the
same). No answer comes before the end of the quantum in which it was asked for, so SMs need not know
of each other within one.
"""

from __future__ import annotations

from warploom.simt.host_prefetch import prefetch
from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.caches import (
    Cache,
    bank_of,
    choose_entry,
    fill_at,
    holds,
    mapped,
    oldest,
    place_of,
    replace_line,
    tag_at,
)
from warploom.timing.engine.machine import Words, behind
from warploom.timing.work.costs import TICKS

AHEAD = 8
"""So many requests before its turn the host is asked for what one needs: L2 is larger than the
host's caches may be."""


@jitable
def serve_requests(p: Words, sms: Words, m: Words, start: int, stop: int) -> int:
    """Answer what the SMs asked for from cycle `start` to `stop`; gives how many requests."""
    span = stop - start + 1
    places = p[w.AT_ORDER]
    for cycle in range(span + 1):
        m[places + cycle] = 0
    for sm in range(p[w.SMS]):
        base = sm * p[w.SM_WORDS]
        for number in range(sms[base + w.REQUEST_COUNT]):
            at = base + p[w.AT_REQUESTS] + number * w.R_WORDS
            m[places + sms[at + w.R_TIME] - start + 2] += 1
    for cycle in range(span + 1):
        m[places + cycle + 1] += m[places + cycle]
    order = places + span + 2
    total = 0
    for sm in range(p[w.SMS]):
        base = sm * p[w.SM_WORDS]
        for number in range(sms[base + w.REQUEST_COUNT]):
            at = base + p[w.AT_REQUESTS] + number * w.R_WORDS
            bucket = places + sms[at + w.R_TIME] - start + 1
            m[order + m[bucket]] = at
            m[bucket] += 1
            total += 1
    cache = l2(p, m)
    for index in range(total):
        if cache.sets > 0 and index + AHEAD < total:
            fetch_set(cache, sms[m[order + index + AHEAD] + w.R_SET])
        at = m[order + index]
        serve(p, sms, m, at, at // p[w.SM_WORDS])
    return total


@jitable
def l2(p: Words, m: Words) -> Cache:
    """Return the L2 of the device."""
    own = p[w.L2_REPLACES], p[w.AT_L2_OWN]
    return Cache(m, p[w.AT_L2], p[w.L2_SETS], p[w.L2_WAYS], own[0], own[1])


@jitable
def fetch_set(cache: Cache, place: int) -> None:
    """Fetch a set that is wanted soon: its tags, and what the line least recently used gives way
    for."""
    first = place * cache.ways
    prefetch(cache.m, tag_at(cache, first))
    prefetch(cache.m, tag_at(cache, first + cache.ways - 1))
    prefetch(cache.m, tag_at(cache, first + cache.ways // 2))
    prefetch(cache.m, fill_at(cache, first + oldest(cache, place)))


@jitable
def serve(p: Words, sms: Words, m: Words, at: int, sm: int) -> None:
    """Serve one request: its slice, L2, DRAM where it must, and the way back."""
    line, sectors = sms[at + w.R_LINE], sms[at + w.R_SECTORS] & w.SECTOR_MASK
    kind = sms[at + w.R_KIND]
    count = (sectors & 1) + (sectors >> 1 & 1) + (sectors >> 2 & 1) + (sectors >> 3 & 1)
    place = place_of(line, p[w.SLICES])
    lane = p[w.AT_SLICES] + place
    arrives = sms[at + w.R_TIME] * TICKS
    begins = max(m[lane], arrives)
    m[lane] = begins + count * p[w.SECTOR_TICKS]
    if sms[at + w.R_SECTORS] > w.SECTOR_MASK:
        m[lane] += parts_of(sms[at + w.R_SECTORS]) * p[w.PART_TICKS]
    m[w.L2_BYTES] += 32 * count
    rounds = 0
    if kind == w.ATOMIC:
        rounds = (sms[at + w.R_PASSES] - 1) * p[w.ATOMIC_TICKS]
        m[lane] += rounds
    port = p[w.AT_PORTS] + sm
    m[port] = max(m[port], begins) + count * p[w.PORT_TICKS]
    passes = max(begins, m[port] - count * p[w.PORT_TICKS])
    there = look_up(p, m, line, sms[at + w.R_SET], sectors, kind, begins)
    latency = p[w.LATENCY_ATOMIC] if kind == w.ATOMIC else base_latency(p)
    sms[at + w.R_FILL] = (max(there, passes) + rounds) // TICKS + latency
    m[w.LAST_ANSWER] = max(m[w.LAST_ANSWER], sms[at + w.R_FILL])


@jitable
def parts_of(sectors: int) -> int:
    """Returns how many sectors a store writes in part."""
    count = 0
    for sector in range(w.SECTORS):
        count += int(sectors >> (w.SECTORS + w.LEFT_BITS * sector) & w.LEFT_MASK > 0)
    return count


@jitable
def base_latency(p: Words) -> int:
    """Return the latency of a request that waits for nothing: of L2, or of DRAM where there is no
    L2."""
    return int(p[w.LATENCY_L2] if p[w.L2_SETS] > 0 else p[w.LATENCY_DRAM])


@jitable
def look_up(p: Words, m: Words, line: int, place: int, sectors: int, kind: int, now: int) -> int:
    """Return when the sectors of a line are there, in ticks, less the latency of L2. What is
    written stays there, until the line gives way for another."""
    count = 0
    if p[w.L2_SETS] == 0:
        for sector in range(w.SECTORS):
            count += (sectors >> sector) & 1
        if kind == w.STORE:
            m[w.DRAM_WRITTEN] += 32 * count
        else:
            m[w.DRAM_READ] += 32 * count
        return move(p, m, line, count, kind == w.STORE, now)
    cache = l2(p, m)
    entry = choose_entry(cache, place, line, now // TICKS)
    there, missing, written = now, 0, 0
    if not holds(cache, entry, line):
        begins = write_back(p, m, tag_at(cache, entry), now)
        there = begins if kind == w.STORE else there
        replace_line(cache, entry, line)
    tag, fills = tag_at(cache, entry), fill_at(cache, entry)
    valid, dirty = m[tag], m[tag] >> w.DIRTY_BITS
    for sector in range(w.SECTORS):
        if (sectors >> sector) & 1:
            if valid >> sector & 1:
                m[w.L2_HITS] += 1
                there = max(there, m[fills + sector])
            else:
                m[w.L2_MISSES] += 1
                missing += int(kind != w.STORE)
            written += int(kind != w.LOAD) & ~(dirty >> sector) & 1
    if missing > 0:
        extra = (p[w.LATENCY_DRAM] - p[w.LATENCY_L2]) * TICKS
        there = max(there, move(p, m, line, missing, False, now) + extra)
        m[w.DRAM_READ] += 32 * missing
    m[w.L2_DIRTY] += 32 * written
    for sector in range(w.SECTORS):
        if (sectors & ~valid) >> sector & 1:
            m[fills + sector] = now if kind == w.STORE else there
    m[tag] |= sectors if kind == w.LOAD else sectors | sectors << w.DIRTY_BITS
    return int(there)


@jitable
def write_back(p: Words, m: Words, tag: int, now: int) -> int:
    """Writes the dirty sectors of a line that gives way to DRAM, given where its tag stands;
    returns when that begins."""
    line, count = (m[tag] >> w.TAG_BITS) - 1, 0
    for sector in range(w.SECTORS):
        count += m[tag] >> (w.DIRTY_BITS + sector) & 1
    if count == 0:
        return now
    m[w.L2_DIRTY] -= 32 * count
    m[w.DRAM_WRITTEN] += 32 * count
    return move(p, m, line, count, True, now)


@jitable
def move(p: Words, m: Words, line: int, sectors: int, writes: bool, now: int) -> int:
    """Move sectors of a line to or from its bank of DRAM when it is their turn; gives when that
    begins. A bank that was read last takes a while before it is written, and the other way."""
    if p[w.DRAM_MAPS] == 0:
        number = bank_of(line, p[w.BANK_BITS])
    else:
        own = behind(m, p[w.AT_DRAM_OWN])
        number = mapped(p[w.DRAM_MAPS], line, 1 << p[w.BANK_BITS], own)
    bank = p[w.AT_BANKS] + 2 * number
    begins = max(m[bank], now)
    if m[bank + 1] != int(writes):
        m[bank + 1] = int(writes)
        begins += p[w.TURN_TICKS]
    m[bank] = begins + sectors * p[w.BANK_TICKS]
    return int(begins)
