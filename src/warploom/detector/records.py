"""Lays out the records of the race detector's state, one array of 64-bit words, and of the events
that are passed to it (`warploom.simt.records`).

`detector.layout` has the numbers that fields hold, and how several are packed in a word. A field
whose name ends in `_at` holds the index of a record or a table in the same array; those whose names
begin with `slot_` offsets in the state of a resident block (a slot).
"""

from __future__ import annotations

from typing import Annotated

from warploom.detector import layout as w
from warploom.simt.records import WordRecord, Words


class ReleaseRecord(WordRecord):
    """A release. `block`: its number and one. `thread` knew its own accesses before `time`, and
    those of its warp before `synced`. `clock`: a copy of its vector clock, 0 for none. `set`: its
    block set. `scope`: of the release pattern."""

    block: int
    interval: int
    thread: int
    time: int
    synced: int
    clock: int
    set: int
    scope: int


class ShadowRecord(WordRecord):
    """An access to four bytes: three packed words (`layout`), and the value of a write."""

    interval: int
    thread: int
    access: int
    value: int


class LaneRun(WordRecord):
    """An access of lanes that are evenly spaced in a line: the words of a record, with the run's
    footprint in the access word, and a mask of the line's aligned four bytes."""

    interval: int
    thread: int
    access: int
    mask: int


class DetectorState(WordRecord):
    """The head of the detector's state, at the start of its array. `tools`: bits of MEM to INIT.
    `exact`: the kernel synchronizes by more than barriers of whole blocks and warps, so vector
    clocks are needed. `lockstep`: lanes of a warp execute in lockstep (below compute
    capability 7.0). `threads`: threads of its `warps`, of which `block_threads` exist.
    `clock_words`: words of a vector clock: `threads` of them, and then `agents` where there
    are any (`agents`). `slot_*`: offsets in the state of a resident block (a slot).
    `slot_tensor`: the cells of its tensor memory, 0 without any; `slot_after`: for each warp
    the block set and the agent words that it knew at its last
    `tcgen05.fence::after_thread_sync`.

    `current_*`: the current thread and access. HOLDER: the thread whose vector clock counts:
    the current one, in lockstep its warp's first lane; `current_agent`: nonzero while its
    agent acts; `current_cluster_at`: the state of the first block of its cluster.
    `current_owner`: the block in whose shared memory the access is, `current_owner_slot` its
    state, `current_base` that memory's first byte on the host (`shared_memory_owners`).
    `current_distance`: the distance of two retained readers (`cells.thread_distance`).
    `shared_stride`: bytes on the host from one block's shared memory to the next one's.
    `cluster_blocks`: blocks of a cluster.

    `pool_at` to `pool_end`: memory not allocated yet; `exhausted`: an allocation failed.
    `not_aligned`: threads of a block have waited at different barriers. `earlier_launch`: a
    block set of the end of the previous launch, if this one may begin before that, as if the
    previous launch were a block of this one; else 0. `triggered`: which threads have let the
    next launch begin: AFTER_WAIT, BEFORE_WAIT. `fast_path`: `quick_events` may process
    accesses. `aligned`: all threads of a block execute the same barriers of all threads, so
    each warp counts the barriers that it has PASSED."""

    tools: int
    exact: int
    lockstep: int
    warps: int
    threads: int
    block_threads: int
    clock_words: int
    agents: int
    sites_at: int
    allocations: int
    allocations_at: int
    last_allocation: int
    slots_at: int
    slot_words: int
    slot_lanes: int
    slot_warps: int
    slot_barriers: int
    slot_clocks: int
    slot_cells: int
    slot_lines: int
    slot_written: int
    slot_cluster_barriers: int
    slot_tensor: int
    slot_after: int
    shared_bytes: int
    shared_stride: int
    cluster_blocks: int
    pool_at: int
    pool_end: int
    free_nodes: int
    locations_at: int
    locations: int
    findings_at: int
    findings: int
    left_out: int
    exhausted: int
    current_slot: int
    current_cluster_at: int
    current_block: int
    current_interval: int
    current_warp: int
    current_warp_at: int
    current_synced: int
    current_time: int
    current_thread: int
    current_lane_at: int
    current_holder_at: int
    current_clock_at: int
    current_agent: int
    current_address: int
    current_size: int
    current_stride: int
    current_space: int
    current_instruction: int
    current_distance: int
    current_owner_slot: int
    current_owner: int
    current_base: int
    not_aligned: int
    earlier_launch: int
    triggered: int
    fast_path: int
    aligned: int


class DetectorEvent(WordRecord):
    """An event. `lanes`: those that execute it, of `existing`. An access is of `op` on `size`
    bytes a lane, in elements of `part` bytes, in memory whose first byte is at `base` on the
    host and which has `limit` bytes. A barrier has `number` and awaits `count` threads (0:
    all). `checked`: the lanes of an access that have to be checked, the rest being redundant;
    each accesses the bytes right after those of the lane before, except for `heads`, which
    begin a lane run (`quick_events`)."""

    kind: int
    instruction: int
    block: int
    warp: int
    lanes: int
    existing: int
    space: int
    op: int
    size: int
    part: int
    base: int
    limit: int
    number: int
    count: int
    heads: int
    checked: int


class InstructionSite(WordRecord):
    """The description of an instruction: its flags; the number of its source line; `exempt`: its
    accesses are proven free of races, so it may store to what is CLOSED."""

    flags: int
    line: int
    exempt: int


class ShadowCell(WordRecord):
    """The records of four bytes of memory: the last weak write, one weak read, and two lists of
    further records (`AccessNode`)."""

    write_interval: int
    write_thread: int
    write_access: int
    write_value: int
    read_interval: int
    read_thread: int
    read_access: int
    # In the low half any accesses, in the high half strong ones of all four bytes at gpu scope or
    # wider.
    lists: int


class AccessNode(WordRecord):
    """A record of an access in a list, with the value that it wrote; `next`: the next node, 0 for
    none."""

    next: int
    interval: int
    thread: int
    access: int
    value: int


class TrackedAllocation(WordRecord):
    """An allocation of global memory."""

    start: int
    end: int
    constant: int  # CONSTANT, CLOSED, or 0
    cells: int  # where its cells begin
    written: int  # where its bits of written bytes begin; 0 if all are written
    lines: int
    # Where it has a word for each aligned four bytes with what the launch has done there; 0 if not
    # needed. `early`: the same for threads that did not know of the end of the earlier launch.
    touched: int
    early: int


class LineShadow(WordRecord):
    """A line. `touched`: set to 1 before anything is read, so that the host's first page fault is
    a write and maps the page at once. `tag`, in shared memory: the interval word of the last
    access. `count` runs, the oldest first, the first at `run`; IN_CELLS: the cells record the
    line's accesses from now on. `extension`: index of the line's extension in the pool, 0
    while it needs none. A line is one cache line of the host: most lines are written once, by
    one run."""

    touched: int
    tag: int
    count: int
    run: LaneRun
    extension: int


class LineExtension(WordRecord):
    """The extension of a line, one cache line of the host: the index of the line's settled bytes,
    with IN_FORCE added while they count; a bit for each aligned four bytes that are settled for the
    whole grid. The line's second run is here (`run`); the others are in two further parts, whose
    indices are here: those from the third on (FEW_FROM), and from the seventh on (MORE_FROM)."""

    settled: int
    grid_words: int
    few: int
    more: int
    run: LaneRun


class SettledBytes(WordRecord):
    """Settled bytes of a line (`settled`): `grid`, `block` and `warp` have a bit for each byte, 32
    in a word, set if further reads of it are redundant. Bits of `grid` hold for all threads; those
    of `block` for the block and interval of `block_tag`; those of `warp` for the block and interval
    of `warp_tag` and the warp of `warp_epoch`, until that synchronizes again."""

    block_tag: int
    warp_tag: int
    warp_epoch: int
    unused: int
    grid: Annotated[Words, 4]
    block: Annotated[Words, 4]
    warp: Annotated[Words, 4]


class ResidentBlock(WordRecord):
    """A resident block. `block`: its number and one. `set`: the block set that all its threads
    know (0: none); `next_set` accumulates it at a barrier. `fenced`: the last interval with a
    proxy fence, and one. `barrier_line`: the instruction, and one, of the barrier at which
    some threads have arrived. `written_from` to `written_to`: the longest range of shared
    memory that was found to be written."""

    block: int
    interval: int
    set: int
    next_set: int
    fenced: int
    barrier_line: int
    written_from: int
    written_to: int


class WarpKnowledge(WordRecord):
    """A warp, and what its lanes know of each other."""

    time: int
    synced: int  # the first time that not all its lanes know of each other
    waiting: int  # the lanes that wait at barriers
    interval: int  # that in which lanes last arrived at a barrier of all threads
    # These lanes; if barriers are `aligned`, those that wait for the others.
    arrived: int
    begun: Annotated[Words, 2]  # its loads of tensor memory so far, and its stores
    waited_for: Annotated[Words, 2]  # how many of these it has waited for
    passed: int  # if barriers are `aligned`: those that all its lanes have passed, its interval


class ThreadKnowledge(WordRecord):
    """A thread, and what it knows. A stamp is 1 plus the interval for which the word of its name
    holds."""

    clock_stamp: int  # of its vector clock
    agent_stamp: int  # not 0: the agent words of its clock hold
    set: int  # its block set
    set_stamp: int
    waits: int  # the barrier at which it waits, and one
    generation: int  # of that barrier; of all threads: the interval, of the cluster: the phase
    read: int  # a list of the chains that its strong reads have seen
    copies: int  # how many it has begun
    commits: int  # groups of copies that it has committed
    bulk_commits: int
    proxy_interval: int  # of its last proxy fence, and one
    proxy_time: int  # its warp's time then, and one
    acquired: int  # the chain that it acquired last
    cluster_barriers: int  # how often it has arrived at the barrier of its cluster
    works: int  # products, copies and shifts in tensor memory that it has begun
    ring: Annotated[Words, w.RING]  # copies that had begun at each of its last commits
    bulk_ring: Annotated[Words, w.RING]
    fence: ReleaseRecord  # the release that its last fence made
    # If that was of a narrow scope: the release of the last wider fence before it.
    wide_fence: ReleaseRecord


class BarrierShadow(WordRecord):
    """A barrier of some threads, or an mbarrier: arrivals, generation (of an mbarrier: the
    phase), two block sets, and after the head two vector clocks: one of each for even and one
    for odd generations."""

    arrived: int
    generation: int
    set: Annotated[Words, 2]


class ClusterBarrierShadow(WordRecord):
    """Holds what threads of a block contribute to a phase of their cluster's barrier: the `phase`,
    counted from 1 on; the last `interval` in which one arrived, for which the vector clock
    after the head holds; their block sets joined. In the first block's record, `joined_set` is
    what all blocks have contributed, 0 until it is first needed; a thread whose set was
    `before` has the set `after` when it joins that."""

    phase: int
    interval: int
    own_set: int
    joined_set: int
    before: int
    after: int


class BlockSetEntry(WordRecord):
    """A block set: a count, then that many entries by rising block number, each with the fields
    of a release; `clock` has times of further threads."""

    block: int
    interval: int
    clock: int
    thread: int
    time: int
    synced: int


class ReleaseLocation(WordRecord):
    """A location, found by `key`: its `chain` has the releases that a read of it synchronizes
    with: those of the last write, and of the read-modify-writes that followed. `mbarrier`: an
    mbarrier is there, and `chain` is the index of its barrier record."""

    key: int
    chain: int
    mbarrier: int


class ReleaseChain(WordRecord):
    """A member of the chain of a location: the release, and the next member."""

    next: int
    release: int


class DetectorFinding(WordRecord):
    """A finding: `kind`, `instruction` and `thread`, and those of the earlier access (-1: none),
    the `space`, `address` and `size` of the access, a `count`, and a `detail` that depends on the
    kind. Threads are packed: block << 32 | thread. `owner`: the block in whose shared memory the
    address is."""

    kind: int
    instruction: int
    other_instruction: int
    space: int
    address: int
    thread: int
    other_thread: int
    count: int
    size: int
    detail: int
    owner: int
