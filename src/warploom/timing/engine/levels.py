"""Models what all SMs share: L2 in slices, atomics in them, and DRAM in channels.

Serves the requests of a quantum in the order of their time, and of the SMs where that is equal. No
answer arrives before the end of the quantum in which it was requested, so SMs can be simulated
independently of each other within one.
"""

from __future__ import annotations

from warploom.simt.host_prefetch import prefetch
from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.caches import (
    Cache,
    bank_of,
    choose_entry,
    hash_line,
    holds_line,
    map_line,
    oldest,
    replace_line,
    sector_times_at,
    tag_at,
)
from warploom.timing.engine.machine import Words, offset_array
from warploom.timing.work.costs import TICKS

READS, WRITES = False, True
"""The directions of a transfer (`transfer_dram`)."""

AHEAD = 8
"""How many requests before its turn the host prefetches a request's set: L2's arrays can be larger
than the host's caches."""


@jitable
def serve_requests(params: Words, sms: Words, memory: Words, start: int, stop: int) -> int:
    """Serves the requests that the SMs made from cycle `start` to `stop`; returns their number.
    Sorts them by cycle with a counting sort."""
    span = stop - start + 1
    buckets = params[w.AT_ORDER]
    # A counting sort with a bucket for each cycle. SMs are visited in order, so requests of one
    # cycle keep the order of their SMs.
    for cycle in range(span + 1):
        memory[buckets + cycle] = 0
    for sm in range(params[w.SMS]):
        base = sm * params[w.SM_WORDS]
        for number in range(sms[base + w.REQUEST_COUNT]):
            request = base + params[w.AT_REQUESTS] + number * w.R_WORDS
            # Counted two words further on: after the sums, word + 1 is where a cycle's requests
            # begin, and the cursor at which the next one is stored.
            memory[buckets + sms[request + w.R_TIME] - start + 2] += 1
    for cycle in range(span + 1):
        memory[buckets + cycle + 1] += memory[buckets + cycle]
    order = buckets + span + 2
    total = 0
    for sm in range(params[w.SMS]):
        base = sm * params[w.SM_WORDS]
        for number in range(sms[base + w.REQUEST_COUNT]):
            request = base + params[w.AT_REQUESTS] + number * w.R_WORDS
            bucket = buckets + sms[request + w.R_TIME] - start + 1
            memory[order + memory[bucket]] = request
            memory[bucket] += 1
            total += 1
    cache = l2(params, memory)
    for index in range(total):
        if cache.sets > 0 and index + AHEAD < total:
            fetch_set(cache, sms[memory[order + index + AHEAD] + w.R_SET])
        request = memory[order + index]
        serve(params, sms, memory, request, request // params[w.SM_WORDS])
    return total


@jitable
def l2(params: Words, memory: Words) -> Cache:
    """Returns the description of the L2 of the device, whose entries are in `memory`."""
    # The address of the policy, and the offset of its memory.
    replacement = params[w.L2_REPLACEMENT], params[w.AT_L2_USER]
    return Cache(
        memory,
        params[w.AT_L2],
        params[w.L2_SETS],
        params[w.L2_WAYS],
        replacement[0],
        replacement[1],
    )


@jitable
def fetch_set(cache: Cache, set_index: int) -> None:
    """Prefetches a set that a later request needs into the host's caches: its tags, and the times
    of the least recently used line, which may be evicted."""
    first = set_index * cache.ways
    prefetch(cache.words, tag_at(cache, first))
    prefetch(cache.words, tag_at(cache, first + cache.ways - 1))
    prefetch(cache.words, tag_at(cache, first + cache.ways // 2))
    prefetch(cache.words, sector_times_at(cache, first + oldest(cache, set_index)))


@jitable
def serve(params: Words, sms: Words, memory: Words, request: int, sm: int) -> None:
    """Serves the request at offset `request` of SM number `sm`: by its slice of L2, by L2, by DRAM
    where L2 misses, and through the port of its SM back, each after its earlier work. Stores the
    cycle of the answer in the request (R_ANSWER), and as LAST_ANSWER if none is later; adds the
    sectors' bytes to L2_BYTES."""
    line, sectors = sms[request + w.R_LINE], sms[request + w.R_SECTORS] & w.SECTOR_MASK
    kind = sms[request + w.R_KIND]
    count = (sectors & 1) + (sectors >> 1 & 1) + (sectors >> 2 & 1) + (sectors >> 3 & 1)
    slice_index = hash_line(line, params[w.SLICES])
    slice_free = params[w.AT_SLICES] + slice_index
    arrives = sms[request + w.R_TIME] * TICKS
    begins = max(memory[slice_free], arrives)
    memory[slice_free] = begins + count * params[w.SECTOR_TICKS]
    # Bits above the mask count the bytes that a store does not write.
    if sms[request + w.R_SECTORS] > w.SECTOR_MASK:
        memory[slice_free] += (
            count_partial_sectors(sms[request + w.R_SECTORS]) * params[w.PARTIAL_TICKS]
        )
    memory[w.L2_BYTES] += w.SECTOR_BYTES * count
    atomic_ticks = 0
    # An atomic occupies the slice once more for each further lane at the same address.
    if kind == w.ATOMIC:
        atomic_ticks = (sms[request + w.R_PASSES] - 1) * params[w.ATOMIC_TICKS]
        memory[slice_free] += atomic_ticks
    # The port of the SM limits the bandwidth of its own requests, not that of other SMs.
    port = params[w.AT_PORTS] + sm
    memory[port] = max(memory[port], begins) + count * params[w.PORT_TICKS]
    port_start = max(begins, memory[port] - count * params[w.PORT_TICKS])
    ready = access_l2(params, memory, line, sms[request + w.R_SET], sectors, kind, begins)
    latency = params[w.LATENCY_ATOMIC] if kind == w.ATOMIC else base_latency(params)
    sms[request + w.R_ANSWER] = (max(ready, port_start) + atomic_ticks) // TICKS + latency
    memory[w.LAST_ANSWER] = max(memory[w.LAST_ANSWER], sms[request + w.R_ANSWER])


@jitable
def count_partial_sectors(sectors: int) -> int:
    """Returns how many sectors a store writes only in part: those for which R_SECTORS counts
    unwritten bytes above its mask."""
    count = 0
    for sector in range(w.SECTORS):
        count += int(sectors >> (w.SECTORS + w.UNWRITTEN_BITS * sector) & w.UNWRITTEN_MASK > 0)
    return count


@jitable
def base_latency(params: Words) -> int:
    """Returns the latency of a request that meets no queue: that of L2, or that of DRAM without an
    L2."""
    return int(params[w.LATENCY_L2] if params[w.L2_SETS] > 0 else params[w.LATENCY_DRAM])


@jitable
def access_l2(
    params: Words, memory: Words, line: int, set_index: int, sectors: int, kind: int, now: int
) -> int:
    """Accesses a mask of sectors of a line, which belongs to set `set_index`, in L2 at tick `now`;
    counts hits, misses and dirty bytes, and returns the tick in which the sectors are there, less
    the latency of L2. Missing sectors of loads and atomics are read from DRAM; an evicted line is
    written back first. What is written stays in L2, dirty, until its line is evicted. Without an
    L2, DRAM is accessed."""
    count = 0
    if params[w.L2_SETS] == 0:
        for sector in range(w.SECTORS):
            count += (sectors >> sector) & 1
        if kind == w.STORE:
            memory[w.DRAM_WRITTEN] += w.SECTOR_BYTES * count
        else:
            memory[w.DRAM_READ] += w.SECTOR_BYTES * count
        return transfer_dram(params, memory, line, count, kind == w.STORE, now)
    cache = l2(params, memory)
    entry = choose_entry(cache, set_index, line, now // TICKS)
    ready, missing, written = now, 0, 0
    if not holds_line(cache, entry, line):
        begins = write_back(params, memory, tag_at(cache, entry), now)
        # Only a store waits until the write-back of the evicted line begins.
        ready = begins if kind == w.STORE else ready
        replace_line(cache, entry, line)
    tag, fills = tag_at(cache, entry), sector_times_at(cache, entry)
    valid, dirty = memory[tag], memory[tag] >> w.DIRTY_BITS
    for sector in range(w.SECTORS):
        if (sectors >> sector) & 1:
            if valid >> sector & 1:
                memory[w.L2_HITS] += 1
                ready = max(ready, memory[fills + sector])
            else:
                memory[w.L2_MISSES] += 1
                # A store does not read the rest of its sector from DRAM.
                missing += int(kind != w.STORE)
            # Counts sectors that become dirty: not loads, and none that were dirty before.
            written += int(kind != w.LOAD) & ~(dirty >> sector) & 1
    if missing > 0:
        extra = (params[w.LATENCY_DRAM] - params[w.LATENCY_L2]) * TICKS
        ready = max(ready, transfer_dram(params, memory, line, missing, READS, now) + extra)
        memory[w.DRAM_READ] += w.SECTOR_BYTES * missing
    memory[w.L2_DIRTY] += w.SECTOR_BYTES * written
    for sector in range(w.SECTORS):
        if (sectors & ~valid) >> sector & 1:
            memory[fills + sector] = now if kind == w.STORE else ready
    memory[tag] |= sectors if kind == w.LOAD else sectors | sectors << w.DIRTY_BITS
    return int(ready)


@jitable
def write_back(params: Words, memory: Words, tag: int, now: int) -> int:
    """Writes the dirty sectors of an evicted line to DRAM, so that their bytes count as
    DRAM_WRITTEN and not as L2_DIRTY; `tag` is the offset of its tag word. Returns the tick at which
    that begins, `now` if none is dirty."""
    line, count = (memory[tag] >> w.TAG_BITS) - 1, 0
    for sector in range(w.SECTORS):
        count += memory[tag] >> (w.DIRTY_BITS + sector) & 1
    if count == 0:
        return now
    memory[w.L2_DIRTY] -= w.SECTOR_BYTES * count
    memory[w.DRAM_WRITTEN] += w.SECTOR_BYTES * count
    return transfer_dram(params, memory, line, count, WRITES, now)


@jitable
def transfer_dram(
    params: Words, memory: Words, line: int, sectors: int, writes: bool, now: int
) -> int:
    """Transfers `sectors` sectors of a line to (WRITES) or from its bank of DRAM after the bank's
    earlier transfers, from tick `now` on; returns the tick at which that begins. A bank needs
    TURN_TICKS between reading and writing."""
    if params[w.DRAM_MAPPING] == 0:
        number = bank_of(line, params[w.BANK_BITS])
    else:
        words = offset_array(memory, params[w.AT_DRAM_USER])
        number = map_line(params[w.DRAM_MAPPING], line, 1 << params[w.BANK_BITS], words)
    # Two words for each bank: the tick from which it is free, and whether it wrote last.
    bank = params[w.AT_BANKS] + 2 * number
    begins = max(memory[bank], now)
    if memory[bank + 1] != int(writes):
        memory[bank + 1] = int(writes)
        begins += params[w.TURN_TICKS]
    memory[bank] = begins + sectors * params[w.BANK_TICKS]
    return int(begins)
