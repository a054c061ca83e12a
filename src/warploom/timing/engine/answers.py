"""Applies the answers of L2 to the requests that an SM of the timing model made in the last
quantum: sectors arrive in L1, miss status holding registers become free, memory instructions
end."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.caches import sector_times_at, tag_at
from warploom.timing.engine.l1 import l1
from warploom.timing.engine.loads import retry_issue
from warploom.timing.engine.machine import EngineArrays, Words
from warploom.timing.engine.phases import extend_flight, finish_flight


@jitable
def receive_answers(arrays: EngineArrays, sm: Words, now: int) -> None:
    """Applies the answers to all requests of the last quantum: sectors in L1 and miss status
    holding registers get the cycles at which they are there or free; flights (memory instructions)
    get their ends, and end if they have no further request. Then empties the buffers of requests
    and waiters, and lets units and warps continue that waited for space there."""
    cache = l1(arrays, sm)
    for number in range(sm[w.REQUEST_COUNT]):
        offset = arrays.params[w.AT_REQUESTS] + number * w.R_WORDS
        time = sm[offset + w.R_ANSWER]
        sm[sm[offset + w.R_MSHR]] = time
        entry = sm[offset + w.R_ENTRY]
        # The line may have been evicted since, and another one requested.
        if entry >= 0 and sm[tag_at(cache, entry)] >> w.TAG_BITS == sm[offset + w.R_LINE] + 1:
            sector_times = sector_times_at(cache, entry)
            for sector in range(w.SECTORS):
                if sm[sector_times + sector] == -1 - number:
                    sm[sector_times + sector] = time
    for index in range(sm[w.PAIR_COUNT]):
        offset = arrays.params[w.AT_PAIRS] + 2 * index
        flight = sm[offset]
        extend_flight(
            sm, flight, sm[arrays.params[w.AT_REQUESTS] + sm[offset + 1] * w.R_WORDS + w.R_ANSWER]
        )
        sm[flight + w.F_OPEN_REQUESTS] -= 1
        if sm[flight + w.F_OPEN_REQUESTS] == 0:
            finish_flight(arrays, sm, flight, now)
    # The buffers of the quantum, for which the units waited, are empty again.
    if sm[w.LSU_FREE] >= w.NEVER:
        sm[w.LSU_FREE] = now
    if sm[w.TMA_FREE] >= w.NEVER:
        sm[w.TMA_FREE] = now
    # Flights have become free, for which ready warps may have been blocked.
    for number in range(arrays.params[w.SCHEDULERS]):
        retry_issue(sm, arrays.params[w.AT_SCHEDULERS] + number * w.S_WORDS, now)
    sm[w.REQUEST_COUNT] = 0
    sm[w.PAIR_COUNT] = 0
