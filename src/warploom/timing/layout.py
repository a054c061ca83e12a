"""Names the words of the timing engine's arrays: which field is at which offset.

All data of the engine are flat arrays of 64-bit integers: Numba compiles plain loops over them, and
a replay is saved and restored by copying them. The engine's modules import this one as `w`. A
record is named by the offset of its first word, and its fields are added to that:

    sm[warp + w.V_OP]                   # the field V_OP of the warp whose record begins at `warp`
    arrays.ops[op * w.OP_WORDS + w.OP_UNIT]     # a field of the operation with the number `op`

Prefixes of fields: OP_ operation of the code, P_ pattern of an access, A_ access of a stream, V_
warp in its slot of an SM, S_ warp scheduler, Q_ entry of a queue, F_ flight (a memory instruction
that has issued and not ended), R_ request to L2, B_ thread block in its slot of an SM, MSG_ message
between thread blocks of a cluster, H_ phase of an mbarrier, E_ event of the timeline. *_WORDS is
the size of a record.
"""

from __future__ import annotations

# ---- why a warp does not issue ------------------------------------------------------------------

REASONS = (
    "selected",
    "not_selected",
    "wait",
    "short_scoreboard",
    "long_scoreboard",
    "barrier",
    "membar",
    "branch_resolving",
    "no_instruction",
    "math_pipe_throttle",
    "mio_throttle",
    "lg_throttle",
    "tex_throttle",
    "dispatch_stall",
    "sleeping",
    "drain",
    "no_warp",
)
"""Names the states of a warp as Nsight Compute does (Kernel Profiling Guide, "Warp Stall Reasons");
only schedulers have "no_warp": no warp is resident."""

(
    SELECTED,
    NOT_SELECTED,
    WAIT,
    SHORT_SCOREBOARD,
    LONG_SCOREBOARD,
    BARRIER,
    MEMBAR,
    BRANCH_RESOLVING,
    NO_INSTRUCTION,
    MATH_PIPE_THROTTLE,
    MIO_THROTTLE,
    LG_THROTTLE,
    TEX_THROTTLE,
    DISPATCH_STALL,
    SLEEPING,
    DRAIN,
    NO_WARP,
) = range(len(REASONS))
REASON_COUNT = len(REASONS)

REASON_BITS = 5
REASON_MASK = (1 << REASON_BITS) - 1
PENDING = 1 << 60
NEVER = 1 << 61
"""How the cycle is packed in which a register is ready: the cycle shifted left by REASON_BITS, plus
the reason for which a warp waits for it. While the cycle is not known it is PENDING, plus the
number of the flight shifted by REASON_BITS, plus the reason. NEVER: a cycle that only another event
can replace."""

# ---- the code -----------------------------------------------------------------------------------

(
    OP_KIND,
    OP_UNIT,
    OP_INTERVAL,
    OP_SLOTS,
    OP_GAP,
    OP_LATENCY,
    OP_WAIT,
    OP_NEEDS_AT,
    OP_NEEDS,
    OP_WRITES_AT,
    OP_WRITES,
    OP_INSTRUCTION,
    OP_X,
    OP_Y,
    OP_STALL,
    OP_READS,
    OP_WORDS,
) = range(17)
"""An operation of the code: what issues for one PTX instruction, or one machine instruction
(INSTRUCTION is its index). INTERVAL: ticks for which a slot occupies its unit; SLOTS: issue slots;
GAP: cycles between them; LATENCY: cycles from the first issue to the result; WAIT: the reason for
which dependent operations wait; NEEDS_AT and NEEDS, WRITES_AT and WRITES: first index and count of
registers in the array of registers; X, Y: operands of the kind (below); STALL: cycles until the
warp's next operation can issue, 0 for operations of PTX; READS: registers read from each bank of
the register file, READ_BITS a bank, and above those how many of them the operand cache holds if the
warp issued the operation before."""
REGISTER_BANKS, READ_BITS = 2, 4
READ_WINDOW = 3
"""Cycles in which an operation reads its registers; a bank serves one register a cycle. Source:
Huerta et al., "Analyzing Modern NVIDIA GPU cores" (MICRO 2025), of an RTX A6000."""

ALU, MEMORY, BLOCK_BARRIER, BRANCH, EXIT, COPY, FENCE, SLEEP, COMMIT, WAIT_GROUP, POLL = range(11)
BULK, PRODUCT, SIGNAL = 11, 12, 13
"""Kinds of operations, with the meaning of X and Y. MEMORY: X is 1 for accesses to global or local
memory, Y is 1 for `cp.async`, which joins a group of copies. COPY: a register copy that takes no
issue slot. BLOCK_BARRIER: X is the barrier's number, Y the warps that it waits for (0: those of the
block) or, for an arrival that does not wait, -1 less those. FENCE, SLEEP: X is the number of
cycles. COMMIT: closes the open group of copies, or of products where Y is 1. WAIT_GROUP: X is how
many groups of copies, or of products where Y is 1, may still be incomplete. POLL: a load after
which the warp waits until the warps of all blocks have polled. BULK: a copy by the Tensor Memory
Accelerator; Y is 1 if it joins a group of copies. PRODUCT: a matrix product of a warp group or in
tensor memory, which its group awaits. SIGNAL: arrives at mbarriers when all products of the warp
have ended (`tcgen05.commit`)."""

OP_OFF_CHIP, OP_JOINS_GROUP = OP_X, OP_Y
OP_BARRIER, OP_AWAITED = OP_X, OP_Y
OP_CYCLES, OP_STILL_OPEN, OP_OF_PRODUCTS = OP_X, OP_X, OP_Y
"""Names of X and Y by kind: of MEMORY, POLL and BULK; of BLOCK_BARRIER; of FENCE and SLEEP
(CYCLES), of WAIT_GROUP (STILL_OPEN, OF_PRODUCTS) and COMMIT (OF_PRODUCTS)."""

BLOCK_START, BLOCK_STOP, BLOCK_WORDS = 0, 1, 2
"""A basic block: its first operation, and the one after its last."""

# ---- accesses -----------------------------------------------------------------------------------

P_KIND, P_WAVEFRONTS, P_PASSES, P_LINES_AT, P_LINES, P_CONFLICTS, P_BANKS, P_REGISTERS, P_WORDS = (
    range(9)
)
"""A pattern in which a warp accesses memory. LINES pairs from index LINES_AT of the array of lines:
the distance from the access's base in lines of 128 bytes; and a mask of the line's four sectors,
with above it for stores how many bytes of each sector are not written, UNWRITTEN_BITS a sector.
WAVEFRONTS; PASSES: how often an atomic is repeated for lanes at one address; CONFLICTS: wavefronts
beyond those of an access of one word without bank conflicts; BANKS: wavefronts of a load if its
lines were in banks as shared memory is; REGISTERS: registers of a lane that a load writes. For
constant memory WAVEFRONTS counts the different addresses."""

SHARED_ACCESS, LOAD, STORE, ATOMIC, CONSTANT_ACCESS, MBARRIER_ACCESS = range(6)
"""Kinds of patterns. MBARRIER_ACCESS moves no bytes: it arrives at an mbarrier or tests one. Flags
are added to the kind (below)."""
THROUGH_L1 = 8
DROPS_L1 = 16
TEXELS = 32
KIND = 7
"""Flags of a pattern's kind: THROUGH_L1, L1 caches the sectors; DROPS_L1, a store that invalidates
sectors in L1; TEXELS, sectors that come through the texture unit. KIND is the mask of the kind
itself."""

A_PATTERN, A_INSTRUCTION, A_SITE, A_DELTA, A_PHASE_ID, A_ARRIVALS, A_OWNER, ACCESS_WORDS = range(8)
"""An access of a stream: its base is the warp's base of its SITE (first access of the instruction),
plus DELTA. PHASE_ID: 1 plus the number, in its block, of the phase of an mbarrier that it arrives
at or waits for; 0 for none. ARRIVALS: for an access that waits, how many arrivals complete the
phase, else 0. OWNER: the number of the block that owns the phase less that of the own block."""
STREAM_ENTRIES, STREAM_STOP, STREAM_WORDS = 0, 1, 2
"""A stream: its first entry and the one after its last, which has only an ENTRY_ACCESS: where the
stream's accesses end."""
ENTRY_BLOCK, ENTRY_ACCESS, ENTRY_WORDS = 0, 1, 2
"""An entry of a stream: a basic block that the warp executes, and its first access."""

# ---- parameters ---------------------------------------------------------------------------------

SCHEDULERS, ISSUE_CYCLES, DISPATCH_WIDTH, POLICY, ACTIVE_WARPS, UNIT_COUNT = range(6)
SLOTS, BLOCK_SLOTS, WARPS_PER_BLOCK, REGISTERS, OPERATIONS, COPIES = range(6, 12)
LATENCY_SHARED, LATENCY_L1, LATENCY_L2, LATENCY_DRAM, LATENCY_ATOMIC = range(12, 17)
LATENCY_CONSTANT, LATENCY_BARRIER, LATENCY_BRANCH, LATENCY_FETCH = range(17, 21)
SHARED_WAVEFRONT_CYCLES, L1_REQUEST_CYCLES, L1_WAVEFRONT_CYCLES, LSU_QUEUE = range(21, 25)
MSHRS, BLOCK_LAUNCH_CYCLES, FETCH_LINES, FETCH_LINE_BITS, SHARED_UNITS_MASK = range(25, 30)
L1_SETS, L2_SETS, SLICES, SECTOR_TICKS, PORT_TICKS = range(30, 35)
TURN_TICKS, LATENCY_TEXTURE = 35, 36
BANK_BITS, BANK_TICKS, ATOMIC_TICKS, QUANTUM, WARP_WORDS, SM_WORDS, SMS = range(37, 44)
FLIGHTS, PAIRS, REQUESTS, RESERVED, EVENTS = range(44, 49)
AT_WARPS, AT_READY, AT_SCHEDULERS, AT_UNITS, AT_QUEUE, AT_MSHRS, AT_L1 = range(49, 56)
AT_FLIGHTS, AT_FREE, AT_PAIRS, AT_REQUESTS, AT_BLOCKS, AT_RESERVED, AT_FETCH = range(56, 63)
AT_EVENTS, AT_SLICES, AT_BANKS, AT_PORTS, AT_L2, AT_ORDER = range(63, 69)
POLL_BARRIER, L1_LINES, L1_WORD_CYCLES = 69, 70, 71
RANK, PREFETCH, AT_USER = 72, 73, 74
PHASES, AT_PHASES, AT_TMA, LATENCY_TMA, TMA_LINE_TICKS = range(75, 80)
LATENCY_CLUSTER, MESSAGES, AT_SENT, AT_RECEIVED = range(80, 84)
L1_WAYS, L2_WAYS, L1_REPLACEMENT, L2_REPLACEMENT, L1_MAPPING, L2_MAPPING, DRAM_MAPPING = range(
    84, 91
)
AT_L1_USER, AT_L2_USER, AT_DRAM_USER, CONSTANT_CYCLES, PARTIAL_TICKS, FILL_TICKS = range(91, 97)
PARAMETER_COUNT = 97
"""Indices in the array of parameters: figures of the device, sizes of the launch and of the
engine's own arrays. AT_*: offsets in the state of an SM or, from AT_SLICES on, in that of the
memory system behind all SMs. *_TICKS: 1/1024 of a cycle (`work.costs.TICKS`). RANK, PREFETCH,
*_REPLACEMENT, *_MAPPING: addresses of the user's compiled functions (`timing.policies`), 0 for the
model's own; AT_*_USER: their memory. From AT_USER on there are USER_STRIDE words for each of
USER_FUNCTIONS; a replacement policy has SET_STRIDE words for each set. PHASES: phases of mbarriers
that a block has at most. MESSAGES: capacity of the buffers of messages that an SM sends to, and
receives from, other SMs of a cluster in one quantum."""
USER_FUNCTIONS = ("warp scheduler", "prefetcher", "mapping of L1", "mapping of L2")
"""Names the user's functions that an SM calls, in the order of their memory."""
USER_SCHEDULER, USER_PREFETCHER, USER_L1_MAPPING, USER_L2_MAPPING = range(len(USER_FUNCTIONS))
"""Numbers of these functions."""
USER_WORDS, USER_STRIDE = 256, 257
"""Words of a policy's memory, and those plus the word that is set when the function raises an
exception."""
SET_WORDS, SET_STRIDE = 32, 33
"""Words of a replacement policy's memory for each set, and those plus the word of exceptions."""

# ---- the state of an SM -------------------------------------------------------------------------

NOW, LIVE_WARPS, LIVE_BLOCKS, QUEUE_HEAD, QUEUE_COUNT, LSU_FREE, MSHR_HEAD, FREE_COUNT = range(8)
PAIR_COUNT, REQUEST_COUNT, RESERVED_HEAD, RESERVED_COUNT, LAUNCHED, EVENT_COUNT = range(8, 14)
LIVE_SINCE, ACTIVE_CYCLES, ACTIVE_WARP_CYCLES, INSTRUCTIONS, ELIGIBLE, BLOCKS_DONE, LAST_DONE = (
    range(14, 21)
)
L1_HIT_SECTORS, L1_MISS_SECTORS, L1_CYCLES, SHARED_CYCLES = range(21, 25)
POLLING_WARPS, POLLING_DONE, PREFETCHED, TMA_HEAD, TMA_COUNT, TMA_FREE, TMA_CYCLES = range(25, 32)
SENT_COUNT, RECEIVED_COUNT, FILL_DEBT, HEAD_WORDS = range(32, 36)
"""The first words of an SM's state. NOW: the next cycle. From ACTIVE_CYCLES on counters: cycles
with a warp; those cycles summed over all warps; instructions; warps that could issue, summed over
cycles; blocks; sectors of L1; cycles of the load/store unit for L1 and for shared memory.
POLLING_WARPS: warps that wait at a POLL; POLLING_DONE: they may go on. PREFETCHED: lines that a
prefetcher requested. TMA_*: the ring buffer of the Tensor Memory Accelerator, the cycle from which
it is free, and its busy cycles. SENT_COUNT, RECEIVED_COUNT: messages to other SMs, and from them.
FILL_DEBT: ticks of L1's time that fills have taken and no access has been delayed by yet."""

LINE = 8
"""Words of a cache line of the host (64 bytes); parts of the state are aligned to it."""

VACANT, ASLEEP, READY = range(3)
"""States of a warp's slot (V_STATE): no warp, one that cannot issue before its wake-up time, one
that the scheduler considers each cycle."""
MOST_WARPS = 64
"""Warps of a scheduler at most."""

V_STATE, V_WAKE_AT, V_REASON, V_SINCE, V_CHARGED_OP, V_OP, V_BLOCKED_BY, V_COUNTED = range(8)
V_SCHEDULER, V_REGISTERS, V_UNITS, V_AGE, V_SLOTS_LEFT, V_FIRST_ISSUE, V_OP_STOP, V_EARLIEST = (
    range(8, 16)
)
V_ACTIVE, V_ENTRY, V_ENTRY_STOP, V_ACCESS, V_QUEUED, V_FLIGHTS, V_PENDING_WAIT, V_LAST_END = range(
    16, 24
)
V_WARP, V_BLOCK, V_BARRIER, V_GROUP, V_EVENT, V_GROUPS = range(24, 30)
GROUPS = 8
V_PRODUCT = V_GROUPS + GROUPS
V_PRODUCTS = V_PRODUCT + 1
V_WORDS = LINE * -(-(V_PRODUCTS + GROUPS) // LINE)
"""A warp in its slot of an SM; the fields that every issue needs are first, in as few cache lines
of the host as possible. WAKE_AT: offset of its wake-up time, among those of its scheduler. The warp
has been in the state REASON since the cycle SINCE, before the operation CHARGED_OP, to which these
cycles are charged; OP is its next operation, up to OP_STOP in this basic block. Of an operation
with several slots, FIRST_ISSUE is the cycle of the first and SLOTS_LEFT how many have not issued.
EARLIEST: the cycle before which it cannot issue. BLOCKED_BY: the reason for which it could not
issue in this cycle. COUNTED: the state as which its scheduler counts it. SCHEDULER, REGISTERS,
UNITS, BLOCK: offsets of its scheduler, registers, units and thread block. AGE: number of its launch
on the SM. ACTIVE: it is in the active set of the two-level scheduler. QUEUED: its instructions in
the queue of the load/store unit; FLIGHTS: those whose end is not known; LAST_END: the latest known
end. PENDING_WAIT: see `waits.recheck_waits`. GROUP is the open group of asynchronous copies, GROUPS
a ring buffer of when each group ends; PRODUCT and PRODUCTS are the same for matrix products. WARP:
its number in the launch. EVENT: 1 plus the index of its last event of the timeline."""

S_NEXT, S_FREE, S_WAKE, S_LAST, S_ACCOUNTED, S_QUEUED, S_ACTIVE, S_ISSUED, S_READY = range(9)
S_WARPS = S_READY + 1
S_STALLS = S_WARPS + REASON_COUNT
S_READY_LIST = S_STALLS + REASON_COUNT
S_WAKES = S_READY_LIST + MOST_WARPS
S_BANKS = S_WAKES + MOST_WARPS
S_WORDS = S_BANKS + REGISTER_BANKS
"""A warp scheduler. NEXT: the cycle before which nothing can change for it. FREE: the cycle from
which it can issue. WAKE: the earliest wake-up time of its sleeping warps. LAST: the warp that
issued last. ACCOUNTED: its cycles before this one have been charged. QUEUED: its instructions in
the queue of the load/store unit. ACTIVE: warps in the active set of the two-level policy. ISSUED:
its cycles with an issue. READY: length of READY_LIST, its ready warps. WARPS: its warps by state;
ready ones count as NOT_SELECTED or, while none can issue, by their reason. STALLS: its cycles
without an issue, by reason. WAKES: wake-up time of each of its warps, NEVER for those that do not
sleep. BANKS: the cycle from which each bank of the register file is free."""

Q_FLIGHT, Q_ACCESS, Q_ACCESSES_LEFT, Q_WORDS = 0, 1, 2, 3
"""An entry of the queue of the load/store unit or of the Tensor Memory Accelerator: its flight, the
next access, and how many accesses are left."""
F_WARP, F_OP, F_END, F_OPEN_REQUESTS, F_AGE, F_GROUP = range(6)
F_FIRST, F_COUNT, F_ARRIVALS, F_NEXT, F_BLOCK_NUMBER, F_WARP_NUMBER, F_SINCE, F_WORDS = range(6, 14)
"""A flight: a memory instruction that has issued and not ended. END: the latest known end of its
parts. OPEN_REQUESTS: its accesses in the queue, plus its requests that have no answer. FIRST,
COUNT: its accesses. GROUP: the group of copies that it joins, NEVER for none. ARRIVALS: how many
arrivals the phase needs that it waits for; NEXT: the next flight that waits for that phase.
BLOCK_NUMBER: number of its block in the launch order of the SM; WARP_NUMBER: of its warp in the
launch; AGE: of its warp on the SM. They differ from those of the slot once a newer warp has taken
it. SINCE: the cycle of its issue."""
R_TIME, R_LINE, R_SECTORS, R_KIND, R_PASSES, R_ENTRY, R_MSHR, R_ANSWER, R_SET = range(9)
R_WARP, R_WORDS = 9, 10
"""A request to the memory system behind L1. SECTORS as in a pattern; ENTRY: its entry in L1, or -1;
MSHR: offset of its miss status holding register; ANSWER: the cycle of its answer; SET: its set in
L2; WARP: for stores, the offset of the warp."""
B_WARPS, B_WAITING, B_NUMBER, B_GRID, B_ARRIVED = range(5)
BARRIERS = 16
B_WORDS = B_ARRIVED + BARRIERS
"""A thread block in its slot: its warps that have not ended, how many of these wait at barriers,
its number in the launch order of the SM and in the grid, and the warps that have arrived at each
barrier."""
MSG_BLOCK, MSG_PHASE_ID, MSG_TIME, MESSAGE_WORDS = range(4)
"""A message from another SM of the cluster: an arrival at the phase PHASE_ID of block BLOCK at the
cycle TIME. In the buffer of received messages BLOCK is the offset of the phase."""
H_ARRIVALS, H_TIME, H_WAITER, PHASE_WORDS = range(4)
"""A phase of an mbarrier of a block: its arrivals so far, the cycle of the latest, and the offset
of the first flight that waits for it, 0 for none."""
E_SLOT, E_WARP, E_STATE, E_SINCE, E_UNTIL, E_OP, EVENT_WORDS = range(7)
"""An event of the timeline: an interval in which a warp was in one state, or (state IN_FLIGHT) in
which a copy was in flight."""
IN_FLIGHT = REASON_COUNT

LINE_BITS = 7
LINE_BYTES, SECTOR_BYTES, SECTORS, MOST_WAYS = 1 << LINE_BITS, 32, 4, 16
"""Sizes of a cache line and a sector, and the most ways of a set: the recency order of a set packs
four bits a way in one word."""
UNWRITTEN_BITS, UNWRITTEN_MASK = 5, 31
TAG_BITS, DIRTY_BITS, SECTOR_MASK = 8, 4, 15
"""A cache entry's tag word (`timing.engine.caches`): from TAG_BITS on 1 plus the line's number,
below it a mask of the valid sectors and, from DIRTY_BITS on, one of the dirty ones."""

L2_HITS, L2_MISSES, DRAM_READ, DRAM_WRITTEN, L2_BYTES = range(5)
"""The first words of the state of the memory system: L2_HITS and L2_MISSES count sectors, the
others bytes."""
LAST_ANSWER, L2_DIRTY, MEMORY_WORDS = 5, 6, 7
"""The cycle of the last answer; bytes of the dirty sectors in L2."""
