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
from warploom.timing.engine.coalescing import load_of, pending_sectors, store_load
from warploom.timing.engine.machine import Words, offset_array
from warploom.timing.engine.translation import translation_cycles
from warploom.timing.records import EngineParameters, MemoryRequest, MemorySystem, SmState
from warploom.timing.work.costs import TICKS

READS, WRITES = False, True
"""The directions of a transfer (`transfer_dram`)."""

PREFETCH_DISTANCE = 8
"""How many requests before its turn the host prefetches a request's set: L2's arrays can be larger
than the host's caches."""


@jitable
def serve_requests(
    params: EngineParameters, sms: Words, memory: MemorySystem, start: int, stop: int
) -> int:
    """Serves (`serve`) the requests that the SMs made from cycle `start` to `stop`, in the order of
    their cycles, those of one cycle in the order of their SMs; returns their number. They stay in
    the SMs' buffers, each with the cycle of its answer. Sorts their offsets by a counting sort, in
    the words of `memory` from `at_order` on."""
    span = stop - start + 1
    buckets = params.at_order
    # A bucket for each cycle.
    for cycle in range(span + 1):
        memory.words[buckets + cycle] = 0
    for sm in range(params.sms):
        base = sm * params.sm_words
        for number in range(SmState(sms, base).request_count):
            request = MemoryRequest(sms, base + params.at_requests, number)
            # Counted two words further on: after the sums, word + 1 is where a cycle's requests
            # begin, and the cursor at which the next one is stored.
            memory.words[buckets + request.time - start + 2] += 1
    for cycle in range(span + 1):
        memory.words[buckets + cycle + 1] += memory.words[buckets + cycle]
    order = buckets + span + 2
    total = 0
    for sm in range(params.sms):
        base = sm * params.sm_words
        for number in range(SmState(sms, base).request_count):
            request = MemoryRequest(sms, base + params.at_requests, number)
            bucket = buckets + request.time - start + 1
            memory.words[order + memory.words[bucket]] = request.at
            memory.words[bucket] += 1
            total += 1
    cache = l2(params, memory)
    for index in range(total):
        if cache.sets > 0 and index + PREFETCH_DISTANCE < total:
            later = memory.words[order + index + PREFETCH_DISTANCE]
            fetch_set(cache, MemoryRequest(sms, later).set)
        request = MemoryRequest(sms, memory.words[order + index])
        serve(params, sms, memory, request, request.at // params.sm_words)
    return total


@jitable
def l2(params: EngineParameters, memory: MemorySystem) -> Cache:
    """Returns the description of L2: where it is in the memory system's state, its sets (0: no L2)
    and ways, and the user's replacement policy, if any."""
    # The address of the policy, and the offset of its memory.
    replacement = params.l2_replacement, params.at_l2_user
    return Cache(
        memory.words, params.at_l2, params.l2_sets, params.l2_ways, replacement[0], replacement[1]
    )


@jitable
def fetch_set(cache: Cache, set_index: int) -> None:
    """Prefetches a set of L2 that a later request needs into the host's caches: its tags, and the
    times of the least recently used line, which may be evicted. Changes nothing in the modelled
    state."""
    first = set_index * cache.ways
    prefetch(cache.words, tag_at(cache, first))
    prefetch(cache.words, tag_at(cache, first + cache.ways - 1))
    prefetch(cache.words, tag_at(cache, first + cache.ways // 2))
    prefetch(cache.words, sector_times_at(cache, first + oldest(cache, set_index)))


@jitable
def serve(
    params: EngineParameters, sms: Words, memory: MemorySystem, request: MemoryRequest, sm: int
) -> None:
    """Serves a request of SM number `sm`: by L2 (`request_l2`), but for sectors that its group of
    SMs has pending (`engine.coalescing`), after the SM has sent it (`send_request`), and at the
    same time by the port of the SM, which limits the bandwidth of answers. The cycle of the answer
    is the latest of all. Stores it in the request (`answer`), and as `last_answer` if none is
    later."""
    sectors, kind = request.sectors & w.SECTOR_MASK, request.kind
    arrives = send_request(params, memory, request, sm)
    latency = params.latency_atomic if kind == w.ATOMIC else base_latency(params)
    coalesces = kind == w.LOAD and params.coalescing_sms > 0
    joined = pending_sectors(load_of(params, memory, request, sm), request) if coalesces else 0
    begins = ready = arrives
    atomic_ticks = (request.passes - 1) * params.atomic_ticks if kind == w.ATOMIC else 0
    if sectors != joined:
        begins = occupy_slice(params, memory, request, sectors & ~joined, atomic_ticks, arrives)
        ready = access_l2(params, memory, request, sectors & ~joined, begins)
    # The port of the SM limits the bandwidth of its own requests, not that of other SMs.
    port_ticks = params.port_ticks
    if kind == w.ATOMIC:
        port_ticks = max(port_ticks, params.atomic_port_ticks)
    port, ticks = params.at_ports + sm, count_sectors(sectors) * port_ticks
    memory.words[port] = max(memory.words[port], begins) + ticks
    port_start = max(begins, memory.words[port] - ticks)
    answer = (max(ready, port_start) + atomic_ticks) // TICKS + latency
    answer += translation_cycles(params, memory, request, sm)
    if coalesces:
        load = load_of(params, memory, request, sm)
        answer = max(answer, load.answer if joined != 0 else 0)
        if sectors != joined:
            store_load(load, request, sectors, answer)
    request.answer = answer
    memory.last_answer = max(memory.last_answer, answer)


@jitable
def send_request(
    params: EngineParameters, memory: MemorySystem, request: MemoryRequest, sm: int
) -> int:
    """Returns the tick in which an SM sends a request to L2, after its earlier ones. A load of a
    line, however many sectors of it, and each sector of a store occupy the way there for
    `request_ticks`; atomics do not."""
    arrives = request.time * TICKS
    if params.request_ticks == 0 or request.kind == w.ATOMIC:
        return arrives
    turns = 1 if request.kind == w.LOAD else count_sectors(request.sectors & w.SECTOR_MASK)
    sender = params.at_ports + params.sms + sm
    sent = max(memory.words[sender], arrives)
    memory.words[sender] = sent + turns * params.request_ticks
    return int(sent)


@jitable
def count_sectors(sectors: int) -> int:
    """Returns the number of sectors in a mask."""
    return (sectors & 1) + (sectors >> 1 & 1) + (sectors >> 2 & 1) + (sectors >> 3 & 1)


@jitable
def occupy_slice(
    params: EngineParameters,
    memory: MemorySystem,
    request: MemoryRequest,
    sectors: int,
    atomic_ticks: int,
    arrives: int,
) -> int:
    """Occupies the slice of L2 of a request's line for these sectors, from the tick `arrives` on,
    after its earlier work, and returns the tick at which that begins; longer for sectors that are
    partly written or updated by an atomic, and by `atomic_ticks` for further lanes of an atomic at
    the same address. Adds the sectors' bytes to `l2_bytes`."""
    count = count_sectors(sectors)
    free = params.at_slices + hash_line(request.line, params.slices)
    begins = max(memory.words[free], arrives)
    memory.words[free] = begins + count * params.sector_ticks + atomic_ticks
    if request.kind == w.ATOMIC:
        memory.words[free] += count * params.atomic_sector_ticks
    # Bits above the mask count the bytes that a store does not write.
    elif request.sectors > w.SECTOR_MASK:
        memory.words[free] += count_partial_sectors(request.sectors) * params.partial_ticks
    memory.l2_bytes += w.SECTOR_BYTES * count
    return int(begins)


@jitable
def count_partial_sectors(sectors: int) -> int:
    """Returns how many sectors a store writes only in part: those with a count of unwritten bytes
    above 0, UNWRITTEN_BITS a sector, above the mask of sectors in `sectors`."""
    count = 0
    for sector in range(w.SECTORS):
        count += int(sectors >> (w.SECTORS + w.UNWRITTEN_BITS * sector) & w.UNWRITTEN_MASK > 0)
    return count


@jitable
def base_latency(params: EngineParameters) -> int:
    """Returns the latency in cycles of a request that meets no queue: that of an L2 hit, or that of
    DRAM without an L2."""
    return int(params.latency_l2 if params.l2_sets > 0 else params.latency_dram)


@jitable
def access_l2(
    params: EngineParameters, memory: MemorySystem, request: MemoryRequest, sectors: int, now: int
) -> int:
    """Accesses the sectors in the mask `sectors` of a request's line in L2 at tick `now`; counts
    hits, misses and dirty bytes, and returns the tick in which the sectors are available, less the
    latency of L2. Missing sectors of loads and atomics are read from DRAM, which adds the
    difference of both latencies; stores read none. What stores and atomics write stays in L2,
    dirty, until its line is evicted and so written back; only a store waits for that to begin.
    Without an L2, DRAM is accessed, and its latency not added."""
    line, set_index, kind = request.line, request.set, request.kind
    if params.l2_sets == 0:
        count = count_sectors(sectors)
        if kind == w.STORE:
            memory.dram_written += w.SECTOR_BYTES * count
        else:
            memory.dram_read += w.SECTOR_BYTES * count
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
    valid, dirty = memory.words[tag], memory.words[tag] >> w.DIRTY_BITS
    for sector in range(w.SECTORS):
        if (sectors >> sector) & 1:
            if valid >> sector & 1:
                memory.l2_hits += 1
                ready = max(ready, memory.words[fills + sector])
            else:
                memory.l2_misses += 1
                # A store does not read the rest of its sector from DRAM.
                missing += int(kind != w.STORE)
            # Counts sectors that become dirty: not loads, and none that were dirty before.
            written += int(kind != w.LOAD) & ~(dirty >> sector) & 1
    if missing > 0:
        extra = (params.latency_dram - params.latency_l2) * TICKS
        ready = max(ready, transfer_dram(params, memory, line, missing, READS, now) + extra)
        memory.dram_read += w.SECTOR_BYTES * missing
    memory.l2_dirty += w.SECTOR_BYTES * written
    for sector in range(w.SECTORS):
        if (sectors & ~valid) >> sector & 1:
            memory.words[fills + sector] = now if kind == w.STORE else ready
    memory.words[tag] |= sectors if kind == w.LOAD else sectors | sectors << w.DIRTY_BITS
    return int(ready)


@jitable
def write_back(params: EngineParameters, memory: MemorySystem, tag: int, now: int) -> int:
    """Writes an evicted line's dirty sectors back to DRAM: moves their bytes from `l2_dirty` to
    `dram_written` and occupies the line's bank. `tag` is the offset of the tag word, which still
    holds the line and its dirty bits and is not changed: the caller replaces the line
    (`replace_line`). Returns the tick at which the transfer begins, `now` if none is dirty."""
    line, count = (memory.words[tag] >> w.TAG_BITS) - 1, 0
    for sector in range(w.SECTORS):
        count += memory.words[tag] >> (w.DIRTY_BITS + sector) & 1
    if count == 0:
        return now
    memory.l2_dirty -= w.SECTOR_BYTES * count
    memory.dram_written += w.SECTOR_BYTES * count
    return transfer_dram(params, memory, line, count, WRITES, now)


@jitable
def transfer_dram(
    params: EngineParameters, memory: MemorySystem, line: int, sectors: int, writes: bool, now: int
) -> int:
    """Reserves the DRAM bank that holds `line` (by `bank_of`, or by the user's mapping) for the
    transfer of `sectors` sectors, a count, from DRAM or, if `writes`, to it. Returns the tick at
    which the transfer begins, without the latency: `now`, or when the bank's earlier transfers have
    ended, plus `turn_ticks` if the last one went in the other direction. Stores the bank's new end
    and direction in `memory`."""
    if params.dram_mapping == 0:
        number = bank_of(line, params.bank_bits)
    else:
        words = offset_array(memory.words, params.at_dram_user)
        number = map_line(params.dram_mapping, line, 1 << params.bank_bits, words)
    # Two words for each bank: the tick from which it is free, and whether it wrote last.
    bank = params.at_banks + 2 * number
    begins = max(memory.words[bank], now)
    if memory.words[bank + 1] != int(writes):
        memory.words[bank + 1] = int(writes)
        begins += params.turn_ticks
    memory.words[bank] = begins + sectors * params.bank_ticks
    return int(begins)
