"""Applies the answers of L2 to the requests that an SM of the timing model made in the last
quantum: sectors arrive in L1, miss status holding registers become free, memory instructions
end."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.caches import sector_times_at, tag_at
from warploom.timing.engine.l1 import l1
from warploom.timing.engine.loads import retry_issue
from warploom.timing.engine.machine import EngineArrays
from warploom.timing.engine.phases import extend_flight, finish_flight
from warploom.timing.records import Flight, FlightRequest, MemoryRequest, SchedulerState, SmState


@jitable
def receive_answers(arrays: EngineArrays, sm: SmState, now: int) -> None:
    """Applies the answers (`MemoryRequest.answer`) to all requests of the last quantum. Sectors of
    L1 that still wait for a request get the cycle in which they arrive, and its miss status holding
    register the cycle in which it is free. Flights (memory instructions) that wait for the request
    end no earlier (`extend_flight`) and have one open request less; they finish with the last one.
    Then empties the buffers of requests and waiters, restarts a load/store unit and Tensor Memory
    Accelerator that stopped for lack of space there, and lets schedulers try again to issue."""
    cache = l1(arrays, sm)
    for number in range(sm.request_count):
        request = MemoryRequest(sm, arrays.params.at_requests, number)
        time = request.answer
        sm.words[request.mshr] = time
        entry = request.entry
        # The line may have been evicted since, and another one requested.
        if entry >= 0 and sm.words[tag_at(cache, entry)] >> w.TAG_BITS == request.line + 1:
            sector_times = sector_times_at(cache, entry)
            for sector in range(w.SECTORS):
                if sm.words[sector_times + sector] == -1 - number:
                    sm.words[sector_times + sector] = time
    for index in range(sm.pair_count):
        pair = FlightRequest(sm, arrays.params.at_pairs, index)
        flight = Flight(sm, pair.flight)
        extend_flight(flight, MemoryRequest(sm, arrays.params.at_requests, pair.request).answer)
        flight.open_requests -= 1
        if flight.open_requests == 0:
            finish_flight(arrays, sm, flight, now)
    # The buffers of the quantum, for which the units waited, are empty again.
    if sm.lsu_free >= w.NEVER:
        sm.lsu_free = now
    if sm.tma_free >= w.NEVER:
        sm.tma_free = now
    # Flights have become free, for which ready warps may have been blocked.
    for number in range(arrays.params.schedulers):
        retry_issue(SchedulerState(sm, arrays.params.at_schedulers, number), now)
    sm.request_count = 0
    sm.pair_count = 0
