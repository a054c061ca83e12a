"""Lays out the records of the timing engine's arrays: the code, the accesses, the parameters, and
the state of an SM and of the memory system (`warploom.simt.records`).

`timing.layout` has the numbers that fields hold: kinds, reasons, packed bits. A field whose name
ends in `_at`, or that names another record, holds that record's offset in the same array.
"""

from __future__ import annotations

from typing import Annotated

from warploom.simt.records import WordRecord, Words
from warploom.timing import layout as w


class TimedOperation(WordRecord):
    """An operation of the code: what issues for one PTX instruction, or one machine instruction."""

    kind: int
    unit: int
    interval: int  # ticks for which a slot occupies the unit
    slots: int  # issue slots
    gap: int  # cycles between them
    latency: int  # cycles from the first issue to the result
    wait: int  # the reason for which dependent operations wait
    needs_at: int  # the first of the registers that it needs, in the array of registers
    needs: int  # how many
    writes_at: int
    writes: int
    instruction: int  # its index in the code
    x: int  # operands of the kind, which have names of their own, below
    y: int
    stall: int  # cycles until the warp's next operation can issue, 0 for operations of PTX
    # Registers read from each bank of the register file, READ_BITS a bank, and above those how many
    # of them the operand cache holds if the warp issued the operation before.
    reads: int
    off_chip: Annotated[int, "x"]  # of MEMORY, POLL and BULK
    joins_group: Annotated[int, "y"]
    barrier: Annotated[int, "x"]  # of BLOCK_BARRIER
    awaited: Annotated[int, "y"]
    cycles: Annotated[int, "x"]  # of FENCE and SLEEP; of BRANCH, from it to the warp's next issue
    still_open: Annotated[int, "x"]  # of WAIT_GROUP
    of_products: Annotated[int, "y"]  # of WAIT_GROUP and COMMIT
    closes_group: Annotated[int, "y"]  # of PRODUCT


class BlockOperations(WordRecord):
    """A basic block: its first operation, and the one after its last."""

    start: int
    stop: int


class TimedPattern(WordRecord):
    """A pattern in which a warp accesses memory. `lines_at` begins `lines` pairs of the array of
    lines: the distance from the access's base in lines of 128 bytes; and a mask of the line's four
    sectors, with above it for stores how many bytes of each sector are not written, UNWRITTEN_BITS
    a sector."""

    kind: int
    wavefronts: int  # for constant memory, the different addresses
    passes: int  # how often an atomic is repeated for lanes at one address
    lines_at: int
    lines: int
    conflicts: int  # wavefronts beyond those of an access of one word without bank conflicts
    banks: int  # wavefronts of a load if its lines were in banks as shared memory is
    registers: int  # of a lane that a load writes


class TimedAccess(WordRecord):
    """An access of a stream. Its base is the warp's base of its `site` (first access of the
    instruction), plus `delta`."""

    pattern: int
    instruction: int
    site: int
    delta: int
    # 1 plus the number, in its block, of the mbarrier's phase that it arrives at or waits for.
    phase_id: int
    arrivals: int  # of one that waits: how many complete the phase
    owner: int  # the number of the block that owns the phase less that of its own block


class TimedWarp(WordRecord):
    """A warp."""

    stream: int  # the number of its stream
    bases: Annotated[Words, 0]  # the base address of each site


class WarpStream(WordRecord):
    """A warp's stream: its first entry and the one after its last, which has only an `access`:
    where the stream's accesses end."""

    entries: int
    stop: int


class StreamEntry(WordRecord):
    """An entry of a stream: a basic block that the warp executes, and its first access."""

    block: int
    access: int


class EngineParameters(WordRecord):
    """Figures of the device, sizes of the launch and of the engine's own arrays. `at_*`: offsets in
    the state of an SM or, from `at_slices` on, in that of the memory system below all SMs.
    `*_ticks`: 1/1024 of a cycle (`work.costs.TICKS`)."""

    schedulers: int
    issue_cycles: int
    dispatch_width: int
    policy: int
    active_warps: int
    unit_count: int
    slots: int
    block_slots: int
    warps_per_block: int
    registers: int
    operations: int
    copies: int
    latency_shared: int
    latency_l1: int
    latency_l2: int
    latency_dram: int
    latency_atomic: int
    latency_constant: int
    latency_barrier: int
    latency_branch: int
    latency_fetch: int
    shared_wavefront_cycles: int
    l1_request_cycles: int
    l1_wavefront_cycles: int
    lsu_queue: int
    mshrs: int
    block_launch_cycles: int
    fetch_lines: int
    fetch_line_bits: int
    shared_units_mask: int
    l1_sets: int
    l2_sets: int
    slices: int
    sector_ticks: int
    port_ticks: int
    turn_ticks: int
    latency_texture: int
    bank_bits: int
    bank_ticks: int
    atomic_ticks: int
    quantum: int
    warp_words: int
    sm_words: int
    sms: int
    flights: int
    pairs: int
    requests: int
    reserved: int
    events: int
    at_warps: int
    at_ready: int
    at_schedulers: int
    at_units: int
    at_queue: int
    at_mshrs: int
    at_l1: int
    at_flights: int
    at_free: int
    at_pairs: int
    at_requests: int
    at_blocks: int
    at_reserved: int
    at_fetch: int
    at_events: int
    at_slices: int
    at_banks: int
    at_ports: int
    at_l2: int
    at_order: int
    poll_barrier: int
    l1_lines: int
    l1_word_cycles: int
    rank: (
        int  # addresses of the user's compiled functions (`timing.policies`), 0 for the model's own
    )
    prefetch: int
    at_user: int  # USER_STRIDE words for each of USER_FUNCTIONS
    phases: int  # of mbarriers that a block has at most
    at_phases: int
    at_tma: int
    latency_tma: int
    tma_line_ticks: int
    latency_cluster: int
    messages: int  # that an SM sends to, or receives from, others of its cluster in a quantum
    at_sent: int
    at_received: int
    l1_ways: int
    l2_ways: int
    l1_replacement: int
    l2_replacement: int
    l1_mapping: int
    l2_mapping: int
    dram_mapping: int
    at_l1_user: int  # the user's functions' memory
    at_l2_user: int
    at_dram_user: int
    constant_cycles: int
    partial_ticks: int
    fill_ticks: int
    coalescing_sms: int  # whose equal loads are one request to L2; 0: each SM's are its own
    at_coalescers: int
    translation_sms: int  # that share a TLB; 0: addresses take no translation
    latency_translation: int
    at_translations: int
    atomic_port_ticks: int  # of an SM's port for a sector of an atomic
    atomic_sector_ticks: int  # of a slice of L2 for one, beyond those of a load
    blocks_in_turn: int  # 1 if blocks begin at the schedulers in turn
    block_cycles: int  # between the launches of two blocks of an SM that is full
    translation_ticks: int  # between the begins of two walks of the page tables
    request_ticks: int  # for which an SM sends a request that loads, or a sector that it stores


class SmState(WordRecord):
    """The first words of an SM's state."""

    now: int  # the next cycle
    live_warps: int
    live_blocks: int
    queue_head: int
    queue_count: int
    lsu_free: int
    mshr_head: int
    free_count: int
    pair_count: int
    request_count: int
    reserved_head: int
    reserved_count: int
    launched: int
    event_count: int
    live_since: int
    active_cycles: int  # from here on counters: cycles with a warp
    active_warp_cycles: int  # those summed over all warps
    instructions: int
    eligible: int  # warps that could issue, summed over cycles
    blocks_done: int
    last_done: int
    l1_hit_sectors: int
    l1_miss_sectors: int
    l1_cycles: int  # of the load/store unit
    shared_cycles: int
    polling_warps: int  # that wait at a POLL
    polling_done: int  # they may go on
    prefetched: int  # lines that a prefetcher requested
    tma_head: int  # the ring buffer of the Tensor Memory Accelerator
    tma_count: int
    tma_free: int  # the cycle from which it is free
    tma_cycles: int  # its busy cycles
    sent_count: int  # messages to other SMs
    received_count: int  # and from them
    fill_debt: int  # ticks of L1's time taken by fills that have delayed no access yet
    block_slots: int  # that blocks of other kernels leave to the launch
    next_launch: int  # the cycle from which the next block can be launched


class WarpSlot(WordRecord, align=w.LINE):
    """A warp in its slot of an SM; the fields that every issue needs are first, in as few cache
    lines of the host as possible. The warp has been in the state `reason` since the cycle `since`,
    before the operation `charged_op`, to which these cycles are charged."""

    state: int
    wake_at: int  # of its wake-up time, among those of its scheduler
    reason: int
    since: int
    charged_op: int
    op: int  # its next operation, up to `op_stop` in this basic block
    blocked_by: int  # the reason for which it could not issue in this cycle
    counted: int  # the state as which its scheduler counts it
    scheduler: int
    registers: int
    units: int
    age: int  # number of its launch on the SM
    slots_left: int  # of an operation with several slots: how many have not issued
    first_issue: int  # and the cycle of the first
    op_stop: int
    earliest: int  # the cycle before which it cannot issue
    active: int  # it is in the active set of the two-level scheduler
    entry: int
    entry_stop: int
    access: int
    queued: int  # its instructions in the queue of the load/store unit
    flights: int  # its flights whose end is not known
    pending_wait: int  # `waits.recheck_waits`
    last_end: int  # the latest known end of a flight
    warp: int  # its number in the launch
    block: int
    barrier: int
    copy_group: int  # the open group of asynchronous copies
    event: int  # 1 plus the index of its last event of the timeline
    # A ring buffer of when each group ends and, from bit GROUP_END_BITS on, how many of its flights
    # have no known end.
    groups: Annotated[Words, w.GROUPS]
    product_group: int  # the same for matrix products
    products: Annotated[Words, w.GROUPS]


class SchedulerState(WordRecord):
    """A warp scheduler."""

    next: int  # the cycle before which nothing can change for it
    free: int  # the cycle from which it can issue
    wake: int  # the earliest wake-up time of its sleeping warps
    last: int  # the warp that issued last
    accounted: int  # its cycles before this one have been charged
    queued: int  # its instructions in the queue of the load/store unit
    active: int  # warps in the active set of the two-level policy
    issued: int  # its cycles with an issue
    ready: int  # length of `ready_list`
    # Its warps by state; ready ones as NOT_SELECTED or, while none can issue, by their reason.
    warps: Annotated[Words, w.REASON_COUNT]
    stalls: Annotated[Words, w.REASON_COUNT]  # its cycles without an issue, by reason
    ready_list: Annotated[Words, w.MOST_WARPS]
    wakes: Annotated[Words, w.MOST_WARPS]  # of each warp, NEVER if it does not sleep
    banks: Annotated[Words, w.REGISTER_BANKS]  # cycle from which each register bank is free


class QueueEntry(WordRecord):
    """An entry of the queue of the load/store unit or of the Tensor Memory Accelerator."""

    flight: int
    access: int  # the next one
    accesses_left: int


class Flight(WordRecord):
    """A memory instruction that has issued and not ended. `block_number`, `warp_number` and `age`
    differ from those of the slot once a newer warp has taken it."""

    warp: int
    op: int
    end: int  # the latest known end of its parts
    open_requests: int  # its accesses in the queue, plus its requests that have no answer
    age: int  # of its warp on the SM
    group: int  # the group of copies that it joins, NEVER for none
    first: int  # its accesses
    count: int
    arrivals: int  # how many the phase needs that it waits for
    next: int  # the next flight that waits for that phase
    block_number: int  # of its block in the launch order of the SM
    warp_number: int  # of its warp in the launch
    since: int  # the cycle of its issue


class MemoryRequest(WordRecord):
    """A request to the memory system below L1."""

    time: int
    line: int
    sectors: int  # as in a pattern
    kind: int
    passes: int
    entry: int  # in L1, or -1
    mshr: int  # the offset of its miss status holding register
    answer: int  # the cycle of its answer
    set: int  # in L2
    warp: int  # for stores: its offset


class CoalescedLoad(WordRecord):
    """A load of L2 for a group of SMs, which later equal ones of the group join."""

    line: int  # plus 1; 0: none
    sectors: int  # that it loads
    answer: int  # the cycle of its answer


class Translation(WordRecord):
    """An entry of the TLB of a group of SMs."""

    page: int  # plus 1; 0: none
    ready: int  # the cycle from which it translates


class FlightRequest(WordRecord):
    """A pair that states that a flight waits for a request of this quantum, by its number."""

    flight: int
    request: int


class BlockSlot(WordRecord):
    """A thread block in its slot."""

    warps: int  # that have not ended
    waiting: int  # how many of these wait at barriers
    launch_number: int  # in the launch order of the SM
    grid: int  # its number in the grid
    arrived: Annotated[Words, w.BARRIERS]  # warps that have arrived at each barrier


class ArrivalMessage(WordRecord):
    """A message from another SM of the cluster: an arrival at the phase `phase_id` of a block at
    the cycle `time`. In the buffer of received messages `block` is the offset of the phase."""

    block: int
    phase_id: int
    time: int


class PhaseState(WordRecord):
    """A phase of an mbarrier of a block."""

    arrivals: int  # so far
    time: int  # the cycle of the latest
    waiter: int  # the first flight that waits for it, 0 for none


class TimelineEvent(WordRecord):
    """An interval in which a warp was in one state, or (IN_FLIGHT) in which a copy was in
    flight."""

    slot: int
    warp: int
    state: int
    since: int
    until: int
    op: int


class MemorySystem(WordRecord):
    """The first words of the state of the memory system."""

    l2_hits: int  # sectors
    l2_misses: int
    dram_read: int  # bytes
    dram_written: int
    l2_bytes: int
    last_answer: int  # its cycle
    l2_dirty: int  # bytes of the dirty sectors in L2
