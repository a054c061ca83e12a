"""Layout of the detector's state, one array of 64-bit words, and of the events that it gets.

A *time* counts what a warp has released: accesses of a warp carry its time, and what a thread knows
of another is the first time that it does not know. An *interval* is the stretch between two
barriers of all threads of a block. An *agent* is the asynchronous part of a thread, whose copies
have numbers of their own.
"""

from __future__ import annotations

(
    TOOLS,
    EXACT,
    LOCKSTEP,
    WARPS,
    THREADS,
    BLOCK_THREADS,
    CLOCK_WORDS,
    AGENTS,
    SITES_AT,
    ALLOCATIONS,
    ALLOCATIONS_AT,
    LAST_ALLOCATION,
    SLOTS_AT,
    SLOT_WORDS,
    SLOT_LANES,
    SLOT_WARPS,
    SLOT_BARRIERS,
    SLOT_CLOCKS,
    SLOT_CELLS,
    SLOT_LINES,
    SLOT_WRITTEN,
    SLOT_CLUSTER_BARRIERS,
    SLOT_TENSOR,
    SLOT_AFTER,
    SHARED_BYTES,
    SHARED_STRIDE,
    CLUSTER_BLOCKS,
    POOL_AT,
    POOL_END,
    FREE_NODES,
    LOCATIONS_AT,
    LOCATIONS,
    FINDINGS_AT,
    FINDINGS,
    LEFT_OUT,
    EXHAUSTED,
    ME_SLOT,
    ME_CLUSTER_AT,
    ME_BLOCK,
    ME_INTERVAL,
    ME_WARP,
    ME_WARP_AT,
    ME_SYNCED,
    ME_TIME,
    ME_THREAD,
    ME_LANE_AT,
    ME_HOLDER_AT,
    ME_CLOCK_AT,
    ME_AGENT,
    ME_ADDRESS,
    ME_SIZE,
    ME_STRIDE,
    ME_SPACE,
    ME_INSTRUCTION,
    ME_DISTANCE,
    ME_OWNER_SLOT,
    ME_OWNER,
    ME_BASE,
    NOT_ALIGNED,
    EARLIER_LAUNCH,
    TRIGGERED,
    FAST_PATH,
    ALIGNED,
    HEAD_WORDS,
) = range(64)
"""The head. TOOLS: bits of MEM to INIT. EXACT: the kernel synchronises by more than barriers of
whole blocks and warps. LOCKSTEP: the lanes of a warp go in step (below 7.0). THREADS: those of its
WARPS, of which BLOCK_THREADS exist. ROW: words of what a thread knows: THREADS of them, and AGENTS
behind them where there are such (`agents`). SLOT_TENSOR: the cells of a block's tensor memory, 0
where it has none; SLOT_AFTER: of each warp the set and the words of agents that it knew at its last
`tcgen05.fence::after_thread_sync`. ME_*: who the current event is of; MIND is the thread whose
knowledge it has: its own, in lockstep that of the warp's first lane; AGENT, whether its agent acts;
CLUSTER_AT, the state of the first block of its cluster. HOME: the state of the block in whose
shared memory the access is, OWNER that block, BASE the memory's first byte on the host (`homes`).
SHARED_STRIDE: bytes of the host from one block's shared memory to the next one's. CLUSTER_BLOCKS:
the blocks of a cluster. POOL_AT to POOL_END: memory not yet given out. EXHAUSTED: it did not
suffice. NOT_ALIGNED: threads of a block have met at different barriers. EARLIER_LAUNCH: a set of
the end of the launch before this one, which may begin earlier, as if that were a block of this one;
0 where it may not. TRIGGERED: who has let the next launch begin: AFTER_WAIT, BEFORE_WAIT.
FEW_STEPS: `quick_events` may take accesses. TOGETHER: all threads of a
block come to the same barriers of all threads, so each warp counts those that it has PASSED."""

AFTER_WAIT, BEFORE_WAIT = 1, 2
"""Threads that knew of the end of the launch before, and others."""

MEM, RACE, SYNC, INIT = 1, 2, 4, 8

# ---- events ----
(
    E_KIND,
    E_INSTRUCTION,
    E_BLOCK,
    E_WARP,
    E_LANES,
    E_EXISTING,
    E_SPACE,
    E_OP,
    E_SIZE,
    E_PART,
    E_BASE,
    E_LIMIT,
    E_NUMBER,
    E_COUNT,
    E_HEADS,
    E_CHECKED,
    EVENT_WORDS,
) = range(17)
"""An event. LANES: those that execute it, of EXISTING. An access is of OP on SIZE bytes a lane, in
elements of PART bytes, in memory whose first byte is at BASE of the host and which has LIMIT bytes.
A barrier has NUMBER and awaits COUNT threads (0: all). SHOWN: those of an access that stand
for all; each of them reaches what follows the one before it, but for HEADS (`quick_events`)."""

(
    ACCESS,
    BARRIER_SYNC,
    BARRIER_ARRIVE,
    WARP_SYNC,
    FENCE,
    ASYNC_COMMIT,
    ASYNC_WAIT,
    PROXY_FENCE,
    CLUSTER_ARRIVE,
    CLUSTER_WAIT,
    TENSOR_LOADS_WAIT,
    TENSOR_STORES_WAIT,
    TENSOR_FENCE_BEFORE,
    TENSOR_FENCE_AFTER,
    LAUNCH_TRIGGER,
    LAUNCH_WAIT,
) = range(16)
"""Kinds of event. Those of TENSOR are `tcgen05.wait` and `tcgen05.fence`; those of LAUNCH
`griddepcontrol`."""
AT_BARRIERS = (BARRIER_SYNC, BARRIER_ARRIVE, CLUSTER_ARRIVE, CLUSTER_WAIT)
"""Those of barriers of a block or a cluster, which also say how many threads are awaited."""

GLOBAL, SHARED, TENSOR = 0, 1, 3
"""Spaces that are checked for races: TENSOR is the tensor memory of a block."""
LOAD, STORE, ATOMIC = 0, 1, 2

# ---- what is known of an instruction ----
SITE_FLAGS, SITE_LINE, SITE_EXEMPT, SITE_WORDS = range(4)
"""Its flags; the number of its line; whether it need not be seen, so that it may store to what is
CLOSED."""
STRONG, VOLATILE, ACQUIRES, RELEASES, COMPARES, ASYNC, BULK, MBARRIER, ARRIVES = (
    1 << bit for bit in range(9)
)
WAITS, NOT_INITIALISED, COPIES, COMPLETES, PLAIN_WRITE, ARRIVES_ASYNC, INVALIDATES = (
    1 << bit for bit in range(9, 16)
)
SCOPE_AT, PASSED_BY_ALL, TEXELS = 16, 1 << 18, 1 << 19
CTA, CLUSTER, GPU, SYS = range(4)
"""Flags of an instruction, and from SCOPE_AT on its scope. COMPARES: it writes only where the old
value is the first operand. MBARRIER: it works on an mbarrier: ARRIVES there, WAITS for a phase,
COMPLETES bytes, initialises it (PLAIN_WRITE) or INVALIDATES it. COPIES: a load whose value goes
nowhere but into memory. PASSED_BY_ALL: what comes behind a barrier is executed by every thread, so
that who ends without coming to it has skipped it. TEXELS: it reads a texture or a surface."""

# ---- a record of an access: three words ----
BLOCK_AT = 32
"""First word: the block's number and one, from BLOCK_AT on, and the interval."""
TIME_AT, AGENT, THREAD_BITS = 16, 1 << 10, (1 << 11) - 1
"""Second word: the time, from TIME_AT on; the thread in the block, with AGENT set for its agent,
and the agent's kind from AGENT_KIND_AT on."""
AGENT_KIND_AT, WHO_BITS = 11, (1 << 13) - 1
COPIES_OF_THREAD, WORK_OF_THREAD, LOADS_OF_WARP, STORES_OF_WARP = range(4)
"""Kinds of agents: copies; products, copies and shifts of a thread in tensor memory (`tcgen05.mma`,
`.cp`, `.shift`); loads and stores of a warp there, whose thread is the warp's first."""
OP_AT, BYTES_AT, FLAGS_AT = 24, 26, 32
SITE_BITS = (1 << 24) - 1
"""Third word: instruction, op, the bytes of the word that are meant, the instruction's flags."""
LOW = (1 << 32) - 1

# ---- a cell: what is known of four bytes of memory ----
W_INTERVAL, W_THREAD, W_ACCESS, W_VALUE, R_INTERVAL, R_THREAD, R_ACCESS, LISTS = range(8)
CELL_WORDS = 8
"""The last weak write with its value, one weak read, and two lists of further records: in the low
half of LISTS any, in the high half strong ones of all bytes at gpu scope or wider."""
N_NEXT, N_INTERVAL, N_THREAD, N_ACCESS, N_VALUE = range(5)
NODE_WORDS = 5

# ---- an allocation ----
(
    A_START,
    A_END,
    A_CONSTANT,
    A_CELLS,
    A_WRITTEN,
    A_LINES,
    A_TOUCHED,
    A_EARLY,
    ALLOCATION_WORDS,
) = range(9)
CONSTANT, CLOSED = 1, 2
"""CONSTANT: what stores that are seen may not reach: constant memory, or what is CLOSED: no store
of the launch is taken to lead there, but for such as need not be seen.
CELLS: where its cells begin, LINES where its lines do. WRITTEN: where its bits of written bytes
begin; 0 where all are. TOUCHED: where it has a word for each aligned four bytes of memory, of what
the launch has done there; 0 where nobody asks. EARLY: where it has those of what threads have done
that did not know of the end of the EARLIER_LAUNCH."""

# ---- what a launch has done with four bytes of memory ----
T_READ_AT, T_WRITTEN_AT, T_STRONG_READ_AT, T_STRONG_WRITTEN_AT = 0, 4, 8, 12
T_READER_AT, T_WRITER_AT, T_NUMBER_BITS = 16, 39, (1 << 23) - 1
"""Four bits each for the bytes that weak and strong accesses have read and written; the number, and
one, of the instruction that read there last, and of the one that wrote."""

# ---- a line: what is known of 128 bytes while few runs of lanes have reached them ----
H_TOUCHED, H_TAG, H_COUNT, H_RUN = range(4)
RUN_WORDS, MOST_RUNS = 4, 32
H_REST = H_RUN + RUN_WORDS
LINE_WORDS = H_REST + 1
"""TOUCHED: 1, written before anything is read, so that the host gives the page that is to be
written at once. TAG, in shared memory: the block and the interval of the last access, as in the
first word of its record. COUNT runs, the oldest first: RUN is the first; IN_CELLS: the cells go on
for the line. REST: where the line goes on, in the pool; 0 while it needs no more. A line is one
cache line of the host: most are written once, by one run of lanes."""
X_SETTLED, X_GRID_WORDS, X_FEW, X_MORE, X_RUN = range(5)
REST_WORDS = X_RUN + RUN_WORDS
FEW_FROM, MORE_FROM = 2, 6
"""The rest of a line, one cache line of the host: where its settled bytes stand, with IN_FORCE
added while there are such; a bit for each aligned four bytes that are settled for all; where its
runs from the third on (FEW_FROM) stand, and from the seventh on (MORE_FROM); its second RUN."""
IN_FORCE = 1
Q_BLOCK_TAG, Q_WARP_TAG, Q_WARP_EPOCH = range(3)
Q_GRID, Q_BLOCK, Q_WARP, SETTLED_WORDS = 4, 8, 12, 16
"""Settled bytes of a line (`settled`): FAR, NEAR and OWN have a bit for each byte, 32 in a word.
NEAR holds for the block and interval of TAG, OWN for those of OWN_TAG and the warp of OWN_WARP,
since it synchronised last."""
IN_CELLS = -1
LINE_BYTES = 128
LINE_SHIFT = 7

# ---- a run: lanes of a warp whose addresses in a line are evenly spaced ----
RUN_SIZE_AT, RUN_BEGIN_AT, RUN_END_AT, RUN_STRIDE_AT = 26, 32, 40, 48
RUN_SIZE_BITS, RUN_BEGIN_BITS, RUN_END_BITS, RUN_STRIDE_BITS = 63, 127, 255, 127
FALLS = 1 << 55
"""A run is a record whose second word has the thread that reaches its first byte, and whose third
word has, behind instruction and op, the bytes of a lane, the bytes of the line where the run begins
and ends, and its stride: the bytes from one lane's address to the next one's, 0 for one lane. FALLS
where that leads down, so that a later lane reaches the byte before: threads count down from the
first byte on. A fourth word has a bit for each of the line's aligned four bytes of which the run
reaches some. Lanes of four bytes and more that follow each other need not all be in a run; its
fourth word tells which are."""
MOST_STRIDE = 64
"""Lanes that are farther apart make no run: a line would have one of them."""

# ---- a resident block ----
(
    B_BLOCK,
    B_INTERVAL,
    B_SET,
    B_NEXT_SET,
    B_FENCED,
    B_BARRIER_LINE,
    B_WRITTEN_FROM,
    B_WRITTEN_TO,
    BLOCK_WORDS,
) = range(9)
"""BLOCK: its number and one. KNOWN: the set of what all its threads know of other blocks (0: none);
NEXT_KNOWN gathers that at a barrier. FENCED: the last interval with a proxy fence, and one.
BARRIER_LINE: the line, and one, of the barrier that some threads are at. WRITTEN_FROM to
WRITTEN_TO: the longest range of shared memory that was found to be written."""
(
    V_TIME,
    V_SYNCED,
    V_WAITING,
    V_INTERVAL,
    V_ARRIVED,
    V_LOADS,
    V_STORES,
    V_LOADED,
    V_STORED,
    V_PASSED,
    WARP_WORDS,
) = range(11)
"""A warp: its time, the first time that not all its lanes know of each other, the lanes that wait
at barriers, and, unless EXACT, the interval in which some came to one last, and those. LOADS and
STORES: how many of tensor memory it has begun; LOADED, STORED: how many of them it has waited
for. PASSED: where threads come to barriers
TOGETHER, those of all threads that all lanes have come to: the interval."""
(
    L_CLOCK_STAMP,
    L_AGENT_STAMP,
    L_SET,
    L_SET_STAMP,
    L_WAITS,
    L_GENERATION,
    L_READ,
    L_COPIES,
    L_COMMITS,
    L_BULK_COMMITS,
    L_PROXY_INTERVAL,
    L_PROXY_TIME,
    L_ACQUIRED,
    L_CLUSTER_BARRIERS,
    L_WORKS,
    L_RING,
) = range(16)
RING = 8
L_BULK_RING = L_RING + RING
L_FENCE = L_BULK_RING + RING
"""A thread: the interval, and one, for which its row holds; whether the agents' part of it does;
its set of what it knows of other blocks, and the interval, and one, for which that holds; the
barrier at which it waits, and one, and the generation of that; the releases that strong reads have
seen; how many copies it has begun; the groups that it has committed, and the copies begun by then
in a RING, and the same of bulk copies; the interval, and one, and the time of its last proxy fence;
the chain of releases that it acquired last; how often it has arrived at the barrier of its cluster;
how many products, copies and shifts in tensor memory it has begun. Behind the rings stands the
release that its last fence made, and, where that was of a narrow scope, that of its last fence of a
wide one before it."""
G_ARRIVED, G_GENERATION, G_SET, BARRIER_HEAD = 0, 1, 2, 4
"""A barrier of some threads, or an mbarrier: arrivals, generation (of an mbarrier: the phase), two
sets, and two rows behind the head, for even and odd generations."""
OF_ALL, OF_CLUSTER = 1 << 8, 1 << 9
"""Mark a wait at a barrier of all threads of the block, and at that of the cluster."""

M_PHASE, M_INTERVAL, M_OWN_SET, M_JOINED_SET, M_BEFORE, M_AFTER, CLUSTER_BARRIER_HEAD = range(7)
"""What the threads of a block bring to a phase of their cluster's barrier: the PHASE, counted from
1 on; the last INTERVAL in which one arrived, for which the row behind the head holds; what they
KNOWN of other blocks. In the first block's, SET is what all of them have brought, 0 until someone
asks; a thread that knew BEFORE knows AFTER that."""

# ---- a release: what a thread knew ----
(
    REL_BLOCK,
    REL_INTERVAL,
    REL_THREAD,
    REL_TIME,
    REL_SYNCED,
    REL_CLOCK,
    REL_SET,
    REL_SCOPE,
    RELEASE_WORDS,
) = range(9)
L_WIDE_FENCE = L_FENCE + RELEASE_WORDS
LANE_WORDS = L_WIDE_FENCE + RELEASE_WORDS
"""BLOCK: and one. THREAD knew its own accesses before TIME, and before SYNCED those of its warp.
ROW: a copy of its row, 0 for none. KNOWN: its set. SCOPE: of the release pattern."""

S_BLOCK, S_INTERVAL, S_CLOCK, S_THREAD, S_TIME, S_SYNCED, SET_WORDS = range(7)
"""A set of what is known of other blocks: how many, then for each, by rising number, what a release
has, where ROW holds the rest."""

# ---- a location to which something was released ----
O_KEY, O_CHAIN, O_MBARRIER, LOCATION_WORDS = range(4)
C_NEXT, C_RELEASE, CHAIN_WORDS = range(3)
"""CHAIN: the releases that who reads the location sees: those of the last write, and of the chain
of read-modify-writes behind it. MBARRIER: an mbarrier is there, and CHAIN is where its record
begins."""

# ---- what was found ----
(
    F_KIND,
    F_INSTRUCTION,
    F_OTHER,
    F_SPACE,
    F_ADDRESS,
    F_THREAD,
    F_OTHER_THREAD,
    F_COUNT,
    F_SIZE,
    F_DETAIL,
    F_OWNER,
    FINDING_WORDS,
) = range(12)
"""OWNER: the block in whose shared memory the address is."""
MOST_FINDINGS = 512
"""Different ones that are kept; equal are those of one kind, two instructions and a space."""

(
    K_RACE,
    K_UNPROMISED,
    K_SAME_VALUE,
    K_PROXY,
    K_OUT_OF_BOUNDS,
    K_MISALIGNED,
    K_READ_ONLY,
    K_UNWRITTEN,
    K_OTHER_BARRIER,
    K_INVALID_MBARRIER,
    K_STRAYED,
    K_UNFENCED,
    K_SKIPPED,
    K_STALE,
) = range(14)
"""Kinds of finding."""
