"""Models the coalescing of loads before L2: a few neighboring SMs (`l2_coalescing_sms`) share a
coalescer, in which a load of sectors that another one of them has requested, and that are pending,
makes no request of its own.

    SM 0 loads sectors 0 and 1 of a line     request of 2 sectors; pending until cycle 300
    SM 1 loads sectors 0, 1, 2 at 40         request of sector 2 alone; waits for all three
    SM 4, of the next group, loads sector 0  request of 1 sector

For each sector that L1 misses, an H100 counts 0.63 sectors of L2 in a product of matrices in which
20 blocks side by side share tiles of one matrix, and 10 below each other those of the other
(cuda-samples' matrixMul); groups of 2, 3, 4, 6 SMs give 0.76, 0.69, 0.63, 0.61. Where blocks share
nothing, it counts 1."""

from __future__ import annotations

from warploom.simt.lane_counts import jitable
from warploom.timing import layout as w
from warploom.timing.engine.caches import hash_line
from warploom.timing.records import CoalescedLoad, EngineParameters, MemoryRequest, MemorySystem

COALESCED_LOADS = 1024
"""Lines whose loads a coalescer can have pending; a further one replaces another by its hash."""


@jitable
def load_of(
    params: EngineParameters, memory: MemorySystem, request: MemoryRequest, sm: int
) -> CoalescedLoad:
    """Returns the entry of a request's line in the coalescer of SM number `sm`. There must be
    one."""
    first = sm // params.coalescing_sms * COALESCED_LOADS
    number = first + hash_line(request.line, COALESCED_LOADS)
    return CoalescedLoad(memory, params.at_coalescers, number)


@jitable
def pending_sectors(load: CoalescedLoad, request: MemoryRequest) -> int:
    """Returns which sectors of a request the group has pending."""
    if load.line != request.line + 1 or request.time >= load.answer:
        return 0
    return int(load.sectors & request.sectors & w.SECTOR_MASK)


@jitable
def store_load(load: CoalescedLoad, request: MemoryRequest, sectors: int, answer: int) -> None:
    """Adds the sectors of a request to those that its group has pending, until the cycle
    `answer`."""
    if load.line != request.line + 1 or request.time >= load.answer:
        load.line, load.sectors, load.answer = request.line + 1, 0, 0
    load.sectors |= sectors
    load.answer = max(load.answer, answer)
