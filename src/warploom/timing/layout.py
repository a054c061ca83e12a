"""The words of the timing engine's arrays: what stands where.

All its data is in flat arrays of 64-bit integers, which can be saved and restored as they are.
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
"""The states of a warp, by the names of Nsight Compute (Kernel Profiling Guide, "Warp Stall
Reasons"); "no_warp" is only a scheduler's: none is resident."""

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
"""When a register is ready: the cycle, moved up by REASON_BITS, and why one waits for it; PENDING
and the number of a flight where nobody knows yet. NEVER: a cycle that does not come by itself."""

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
(INSTRUCTION). INTERVAL: how long a slot takes
its unit, in ticks; GAP: cycles between its slots; WAIT: why those that need its result wait; NEEDS,
WRITES: registers, from there in the array of registers; X, Y: what its kind needs; STALL: cycles
until the warp's next operation can issue, 0 for those of PTX; READS: what it reads of each bank of
the register file, READ_BITS a bank, and then what of it the operand cache has where the warp issued
the operation before."""
REGISTER_BANKS, READ_BITS = 2, 4
READ_WINDOW = 3
"""Cycles in which an operation reads its registers; a bank serves one a cycle. Source: Huerta et
al., "Analyzing Modern NVIDIA GPU cores" (MICRO 2025), of an RTX A6000."""

ALU, MEMORY, BLOCK_BARRIER, BRANCH, EXIT, COPY, FENCE, SLEEP, COMMIT, WAIT_GROUP, POLL = range(11)
BULK, PRODUCT, SIGNAL = 11, 12, 13
"""Kinds. BLOCK_BARRIER: X is its number, Y the warps that it waits for (0: the block's) or, for an
arrival that does not wait, less than 0. FENCE: X its cycles. SLEEP: X its cycles. AWAIT: X how many
groups of asynchronous copies may still be on their way. POLL: an access after which the warp waits
until all that meet have come. BULK: a copy by the Tensor Memory Accelerator; Y says whether it
joins a group of copies. PRODUCT: one of a warp group, which is awaited by its group, or in tensor
memory; TELL: what adds to phases when all products of the warp are over. COMMIT and
AWAIT have Y of 1 for groups of products."""

BLOCK_START, BLOCK_STOP, BLOCK_WORDS = 0, 1, 2
"""A basic block: its operations."""

# ---- accesses -----------------------------------------------------------------------------------

P_KIND, P_WAVEFRONTS, P_PASSES, P_LINES_AT, P_LINES, P_CONFLICTS, P_BANKS, P_REGISTERS, P_WORDS = (
    range(9)
)
"""A pattern in which a warp reaches into memory: LINES pairs from LINES_AT in the array of lines,
each how many lines of 128 bytes behind the access's base, and which of its four sectors, and from
SECTORS bits on, of a store, how many bytes of each it leaves out, LEFT_BITS a sector. EXTRA: the
wavefronts beyond those of an access of one word without conflicts. BANKS: of a load, the
wavefronts if its lines were in banks as shared memory is; SIZE: words of a lane. Of a load from
constant memory WAVEFRONTS are the different addresses."""

SHARED_ACCESS, LOAD, STORE, ATOMIC, CONSTANT_ACCESS, MBARRIER_ACCESS = range(6)
"""Kinds of patterns, NOTHING for a look at an mbarrier that moves no bytes; THROUGH_L1 is added for
those that L1 keeps, TEXELS for those that come through the texture unit."""
THROUGH_L1 = 8
DROPS_L1 = 16
TEXELS = 32
KIND = 7

A_PATTERN, A_INSTRUCTION, A_SITE, A_DELTA, A_PHASE_ID, A_ARRIVALS, A_OWNER, ACCESS_WORDS = range(8)
"""An access of a stream: its base is that of its site in the warp, and DELTA on. EVENT: one more
than the number, in its block, of the phase of an mbarrier that it adds to or waits for; 0 for none.
NEEDED: of what waits, how often others have to add to the phase before it goes on, else 0. OWNER:
how far behind the own block in the grid the one is whose phase it adds to."""
STREAM_ENTRIES, STREAM_STOP, STREAM_WORDS = 0, 1, 2
"""A stream: its entries, one more behind them for where their accesses end."""
ENTRY_BLOCK, ENTRY_ACCESS, ENTRY_WORDS = 0, 1, 2

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
"""What the engine is told of the device, the launch and its own arrays. AT_*: places in the state
of an SM or, from AT_SLICES on, of the memory behind all of them. RANK, PREFETCH: addresses of the
user's functions (`timing.policies`), 0 without one; from AT_OWN on OWN_STRIDE words for each of
OWN_FUNCTIONS. PHASES: room for those of the mbarriers of a block. NOTES: room for what is sent to
other blocks of a cluster, and for what comes from them, in the time in which SMs run apart.
*_REPLACES, *_MAPS: addresses of functions that choose which line gives way, and where a line
belongs; AT_*_OWN: the words of the former (SET_STRIDE for each set) and of the mapping of DRAM
(OWN_STRIDE)."""
USER_FUNCTIONS = ("warp scheduler", "prefetcher", "mapping of L1", "mapping of L2")
"""The functions of the user's that an SM calls, in the order of their words."""
USER_WORDS, USER_STRIDE = 256, 257
"""Words of a policy, and room for them and for one that is set where it raised an exception."""
SET_WORDS, SET_STRIDE = 32, 33
"""The same of a replacement policy, for each set."""

# ---- the state of an SM -------------------------------------------------------------------------

NOW, LIVE_WARPS, LIVE_BLOCKS, QUEUE_HEAD, QUEUE_COUNT, LSU_FREE, MSHR_HEAD, FREE_COUNT = range(8)
PAIR_COUNT, REQUEST_COUNT, RESERVED_HEAD, RESERVED_COUNT, LAUNCHED, EVENT_COUNT = range(8, 14)
LIVE_SINCE, ACTIVE_CYCLES, ACTIVE_WARP_CYCLES, INSTRUCTIONS, ELIGIBLE, BLOCKS_DONE, LAST_DONE = (
    range(14, 21)
)
L1_HIT_SECTORS, L1_MISS_SECTORS, L1_CYCLES, SHARED_CYCLES = range(21, 25)
POLLING_WARPS, POLLING_DONE, PREFETCHED, TMA_HEAD, TMA_COUNT, TMA_FREE, TMA_CYCLES = range(25, 32)
SENT_COUNT, RECEIVED_COUNT, FILL_DEBT, HEAD_WORDS = range(32, 36)
"""An SM's first words. NOW: the cycle that comes next. From ACTIVE_CYCLES on what is counted:
cycles with a warp, those of all warps, instructions, warps that could issue, summed; blocks;
sectors of L1; cycles of the load/store unit for L1 and for shared memory. COME: warps that wait
where all meet; MET: they may go on. PREFETCHED: lines that were asked for by no load. TMA_*: the
queue of the Tensor Memory Accelerator, when it is free, and its cycles. SENT_COUNT, TOLD_COUNT:
notes to other blocks, and from them. FILL_DEBT: ticks of L1's time that sectors took which it got,
and that no access has waited for yet."""

LINE = 8
"""Words of a line of the host's cache: parts of the state begin with one."""

VACANT, ASLEEP, READY = range(3)
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
"""A warp in its slot, what every issue needs in its first lines of the host's cache. WAKE_AT: where
stands when it wakes. WHY it is in its state SINCE then, and WHAT operation comes next; the first of
the slots of an operation issued at FIRST, and so many are LEFT. QUEUED, FLIGHTS: its instructions
in the queue of the load/store unit, and those of which nobody knows when they end. ACK: when the
last that is known does. EARLIEST: before that it cannot issue. AWAITS: see `waits.recheck`. TRY:
why it could not issue just now. GROUP, GROUPS: of asynchronous copies, the open one, and when each
ends; PRODUCT, PRODUCTS: the same of products of a warp group. SCHEDULER, REGISTERS, UNITS: where
its scheduler, registers and units stand. COUNTED: as what its scheduler counts it. EVENT: one more
than its last event."""

S_NEXT, S_FREE, S_WAKE, S_LAST, S_ACCOUNTED, S_QUEUED, S_ACTIVE, S_ISSUED, S_READY = range(9)
S_WARPS = S_READY + 1
S_STALLS = S_WARPS + REASON_COUNT
S_READY_LIST = S_STALLS + REASON_COUNT
S_WAKES = S_READY_LIST + MOST_WARPS
S_BANKS = S_WAKES + MOST_WARPS
S_WORDS = S_BANKS + REGISTER_BANKS
"""A scheduler. NEXT: before that nothing can happen. FREE: it can issue. WAKE: the first of its
sleepers wakes. FROM: its cycles are accounted for until there. READY: so many are ready, those of
RING. WARPS: its warps by their state, the ready ones as NOT_SELECTED or, while none can issue, by
what keeps them; STALLS: its cycles without an issue, by reason; WAKES: when each of its warps
wakes, NEVER for those that do not sleep; BANKS: the cycle from which each bank of its registers is
free."""

Q_FLIGHT, Q_ACCESS, Q_ACCESSES_LEFT, Q_WORDS = 0, 1, 2, 3
F_WARP, F_OP, F_END, F_OPEN_REQUESTS, F_AGE, F_GROUP = range(6)
F_FIRST, F_COUNT, F_ARRIVALS, F_NEXT, F_BLOCK_NUMBER, F_WARP_NUMBER, F_SINCE, F_WORDS = range(6, 14)
"""A flight: a memory instruction that is not over. LEFT: its accesses in the queue and requests
that have no answer. FIRST, COUNT: its accesses, whose phases a copy adds to when it is over;
NEEDED, NEXT: how much the phase that it waits for needs, and the next flight that waits for that
one. BLOCK: the number of its block, in the order of the SM; NUMBER: that of its warp, in the
record. SINCE: when it was issued."""
R_TIME, R_LINE, R_SECTORS, R_KIND, R_PASSES, R_ENTRY, R_MSHR, R_ANSWER, R_SET = range(9)
R_WARP, R_WORDS = 9, 10
"""A request to what is behind L1; SECTORS as in a pattern; ENTRY is its entry in L1, or -1; FILL
when its answer comes; SET its set in L2; WARP, of a store, where its warp stands."""
B_WARPS, B_WAITING, B_NUMBER, B_GRID, B_ARRIVED = range(5)
BARRIERS = 16
B_WORDS = B_ARRIVED + BARRIERS
"""A block in its place: its warps that have not ended, those of them that wait, its number in the
order of the SM and that in the grid, and how many have arrived at each barrier."""
MSG_BLOCK, MSG_PHASE_ID, MSG_TIME, MESSAGE_WORDS = range(4)
"""A note that something is added to a phase at a time: EVENT of block BLOCK of the grid; of a note
that has come, BLOCK is where the phase stands."""
H_ARRIVALS, H_TIME, H_WAITER, PHASE_WORDS = range(4)
"""A phase of an mbarrier of a block: how often something was added to it, when the last of that
was there, and the first flight that waits for it."""
E_SLOT, E_WARP, E_STATE, E_SINCE, E_UNTIL, E_OP, EVENT_WORDS = range(7)
"""A time in which a warp was in one state, or (IN_FLIGHT) in which a copy was on its way."""
IN_FLIGHT = REASON_COUNT

LINE_BYTES, SECTOR_BYTES, SECTORS, MOST_WAYS = 128, 32, 4, 16
UNWRITTEN_BITS, UNWRITTEN_MASK = 5, 31
TAG_BITS, DIRTY_BITS, SECTOR_MASK = 8, 4, 15
"""A cache's line, and the ways of a set at most. An entry of one (`timing.engine.caches`): a tag
with masks of the sectors that are there and, from DIRTY_BITS on, of those that were written; and
for each sector when it is there, in L1 less than 0 for a request that has no answer."""

L2_HITS, L2_MISSES, DRAM_READ, DRAM_WRITTEN, L2_BYTES = range(5)
LAST_ANSWER, L2_DIRTY, MEMORY_WORDS = 5, 6, 7
"""The first words of the memory behind L1: sectors, and bytes; when its last answer comes; bytes of
the dirty sectors of L2."""
