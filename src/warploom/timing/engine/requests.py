"""Collects the requests that an SM of the timing model makes to L2 within a quantum, and the memory
instructions in flight that wait for each answer; allocates miss status holding registers (MSHRs)
and merges partial stores. `engine.levels` serves the requests, `engine.answers` applies the
answers."""

from __future__ import annotations

from typing import NamedTuple

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.caches import hash_line, map_line, sector_times_at
from warploom.timing.engine.l1 import l1
from warploom.timing.engine.machine import EngineArrays, offset_array
from warploom.timing.engine.phases import extend_flight
from warploom.timing.records import Flight, FlightRequest, MemoryRequest, SmState

NO_FLIGHT, NO_ENTRY = -1, -1
"""Instead of a flight: nothing waits; of an entry of L1: the sectors do not go there."""
MERGED_STORES = 8
"""The last lines that a warp has stored to, with whose stores others of the warp are merged."""
ONE_PASS = 1
"""The passes of a request that is no atomic."""


class SectorRequest(NamedTuple):
    """Holds a request to L2: `sectors` of a line, packed as `sectors`, its kind (LOAD,
    STORE or ATOMIC), and how often an atomic is repeated for lanes at one address."""

    line: int
    sectors: int
    kind: int
    passes: int


@jitable
def check_request_space(arrays: EngineArrays, sm: SmState, lines: int, start: int) -> bool:
    """Returns whether an access can make requests for `lines` lines: as many miss status holding
    registers (MSHRs; at most all), from the next one on in ring order, are free at the cycle
    `start`, and the quantum's buffers of requests and waiters have space. If not, sets `lsu_free`,
    the cycle in which the load/store unit tries again: after the first busy one is free, or, for a
    full buffer, NEVER (`receive_answers` sets it after the quantum)."""
    needed = min(lines, arrays.params.mshrs)
    full = sm.request_count + lines > arrays.params.requests
    # Each line can add a waiter for each of its four sectors.
    full = full or sm.pair_count + 4 * lines > arrays.params.pairs
    for index in range(needed):
        mshr = arrays.params.at_mshrs + sm.mshr_head + index
        if sm.mshr_head + index >= arrays.params.mshrs:
            mshr -= arrays.params.mshrs
        if full or sm.words[mshr] > start:
            # `receive_answers` restarts a unit that waits for buffers, after the quantum.
            sm.lsu_free = w.NEVER if full else max(sm.words[mshr] + 1, start + 2)
            return False
    return True


@jitable
def allocate_mshr(arrays: EngineArrays, sm: SmState) -> int:
    """Returns the offset of the next miss status holding register of L1, in ring order, and marks
    it as occupied (NEVER) until its request is answered. Whether it is free is the caller's to
    check."""
    mshr = arrays.params.at_mshrs + sm.mshr_head
    sm.words[mshr] = w.NEVER
    sm.mshr_head += 1
    if sm.mshr_head == arrays.params.mshrs:
        sm.mshr_head = 0
    return int(mshr)


@jitable
def request_sectors(
    arrays: EngineArrays,
    sm: SmState,
    flight: Flight,
    wanted: SectorRequest,
    entry: int,
    mshr: int,
    start: int,
) -> None:
    """Appends a request to those of the quantum, which must have space, at the cycle `start`;
    `flight` (a memory instruction, or NO_FLIGHT) waits for the answer. `mshr`: offset of the
    request's miss status holding register, which gets the cycle of the answer; `entry`: the entry
    of L1 that the sectors will fill, or NO_ENTRY; until the answer, their times there are -1 less
    the request's number. A store's request has its warp, whose further stores can be merged into it
    (`find_open_store`)."""
    number = sm.request_count
    sm.request_count += 1
    request = MemoryRequest(sm, arrays.params.at_requests, number)
    request.time = start
    request.line = wanted.line
    request.sectors = wanted.sectors
    request.kind = wanted.kind
    request.passes = wanted.passes
    request.entry = entry
    if arrays.params.l2_sets > 0:
        request.set = l2_set(arrays, sm, wanted.line)
    request.mshr = mshr
    if wanted.kind == w.STORE:
        request.warp = flight.warp
    if entry >= 0:
        sector_times = sector_times_at(l1(arrays, sm), entry)
        for sector in range(w.SECTORS):
            if (wanted.sectors >> sector) & 1:
                # A negative time is the number of a request without an answer.
                sm.words[sector_times + sector] = -1 - number
    if flight.at >= 0:
        add_waiter(arrays, sm, flight, number)


@jitable
def l2_set(arrays: EngineArrays, sm: SmState, line: int) -> int:
    """Returns the set of L2 to which a line (by its number) belongs: by the model's hash, or by the
    user's function if there is one (`l2_mapping`), whose memory is in `sm`. There must be an L2."""
    if arrays.params.l2_mapping == 0:
        return hash_line(line, arrays.params.l2_sets)
    words = offset_array(sm.words, arrays.params.at_user + w.USER_L2_MAPPING * w.USER_STRIDE)
    return map_line(arrays.params.l2_mapping, line, arrays.params.l2_sets, words)


@jitable
def add_waiter(arrays: EngineArrays, sm: SmState, flight: Flight, number: int) -> None:
    """Makes a flight (memory instruction in flight) wait for the answer to request `number` of this
    quantum: appends both to the list of waiters, which `receive_answers` works through, and adds
    one to the flight's open requests."""
    waiter = FlightRequest(sm, arrays.params.at_pairs, sm.pair_count)
    waiter.flight = flight.at
    waiter.request = number
    sm.pair_count += 1
    flight.open_requests += 1


@jitable
def wait_for_line(
    arrays: EngineArrays,
    sm: SmState,
    flight: Flight,
    sector_times: int,
    sectors: int,
    earliest: int,
) -> None:
    """Makes a flight (memory instruction in flight) wait for the sectors in the mask `sectors` of a
    line in L1. Extends the flight's end to the cycle in which each sector is there, at least
    `earliest`; for a sector on its way, adds the flight to the waiters of the request that brings
    it. `sector_times` is the offset of the times of the line's sectors."""
    for sector in range(w.SECTORS):
        if (sectors >> sector) & 1:
            time = sm.words[sector_times + sector]
            # A negative time is -1 minus the number of the request that brings the sector.
            if time < 0:
                add_waiter(arrays, sm, flight, -1 - time)
            else:
                extend_flight(flight, max(earliest, time))


@jitable
def find_open_store(arrays: EngineArrays, sm: SmState, warp_at: int, line: int) -> int:
    """Returns the number of the last request of the quantum that is a store to a line by the warp
    at offset `warp_at`, with which a further store can be merged; -1 if there is none.

    An H100 writes 1.01 sectors of L2 for three stores of a warp that fill them together (particles
    of 12 bytes), but one for each warp that stores to a part of a sector (columns by rows), and one
    for each lane of stores to 32 lines of which each fills an eighth of its sectors (page-rank of
    HeCBench). So a store is merged only with one of the last MERGED_STORES of its warp."""
    stores = 0
    for number in range(sm.request_count - 1, -1, -1):
        request = MemoryRequest(sm, arrays.params.at_requests, number)
        if request.kind == w.STORE and request.warp == warp_at:
            if request.line == line:
                return number
            stores += 1
            if stores == MERGED_STORES:
                return -1
    return -1


@jitable
def merge_store(arrays: EngineArrays, sm: SmState, number: int, added: int) -> None:
    """Merges the sectors of a store, `added` (packed as in `sectors`: mask, and unwritten bytes of
    each sector), into request `number`. In sectors that both write, the bytes that they write add
    up."""
    sectors_at = arrays.params.at_requests + number * MemoryRequest.WORDS + MemoryRequest.sectors
    stored, merged = sm.words[sectors_at], (sm.words[sectors_at] | added) & w.SECTOR_MASK
    for sector in range(w.SECTORS):
        shift = w.SECTORS + w.UNWRITTEN_BITS * sector
        unwritten = (stored >> shift & w.UNWRITTEN_MASK) + (added >> shift & w.UNWRITTEN_MASK)
        if stored >> sector & added >> sector & 1:
            # (32 - a) + (32 - b) unwritten bytes are 32 - (a + b) together.
            unwritten = max(0, unwritten - w.SECTOR_BYTES)
        merged |= unwritten << shift
    sm.words[sectors_at] = merged
