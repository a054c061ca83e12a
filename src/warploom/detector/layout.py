"""Lays out the race detector's state, one array of 64-bit words, and the events that are passed to
it: the indices and bit positions that all its functions use.

A constant with a prefix is an offset from the start of a record: `state[cell + W_ACCESS]`.
Prefixes: E_ event, SITE_ instruction, A_ allocation, B_ resident block, V_ warp, L_ thread
("lane"), G_ barrier or mbarrier, M_ phase of a cluster's barrier, REL_ release, S_ entry of a block
set, O_ location, C_ chain, H_ line, X_ extension of a line, Q_ settled bytes, W_, R_ and N_ records
of a cell, T_ touched bytes, F_ finding. Those with no prefix and ME_ are in the head, at the start
of the array; names in _AT are bit positions in a packed word, or the index of a table in the head.

A *time* is a warp's epoch: its accesses carry it, and it advances by one whenever its threads
release something. What a thread knows of another is the first time that it does not know: a *vector
clock* has that for each thread of a block, and is valid for one interval (the stretch between two
barriers of all threads of the block). A *block set* is a sparse vector clock of other blocks. An
*agent* is the asynchronous part of a thread or a warp, whose copies have numbers of their own.

A record of an access is three packed words. Instruction 7 stores to all 4 bytes of a cell, by
thread 33 of block 5, in interval 2 of the block, at time 9 of the warp:

    interval word  (5 + 1) << BLOCK_AT | 2
    thread word    9 << TIME_AT | 33
    access word    7 | STORE << OP_AT | 0b1111 << BYTES_AT | flags << FLAGS_AT

A run has the same first two words. 32 lanes that load 8 bytes each, at a stride of 8, fill two
lines; the first of them has the run

    access word    7 | LOAD << OP_AT | 8 << RUN_SIZE_AT | 0 << RUN_BEGIN_AT
                     | 128 << RUN_END_AT | 8 << RUN_STRIDE_AT
    mask           0xFFFFFFFF  (all of the line's 32 aligned words)
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
whole blocks and warps, so vector clocks are needed. LOCKSTEP: lanes of a warp execute in lockstep
(below compute capability 7.0). THREADS: threads of its WARPS, of which BLOCK_THREADS exist.
CLOCK_WORDS: words of a vector clock: THREADS of them, and then AGENTS where there are any
(`agents`). SLOT_*: offsets in the state of a resident block (a slot). SLOT_TENSOR: the cells of its
tensor memory, 0 without any; SLOT_AFTER: for each warp the block set and the agent words that it
knew at its last `tcgen05.fence::after_thread_sync`.

ME_*: the current thread and access. HOLDER: the thread whose vector clock counts: the current one,
in lockstep its warp's first lane; AGENT: nonzero while its agent acts; CLUSTER_AT: the state of the
first block of its cluster. OWNER: the block in whose shared memory the access is, OWNER_SLOT its
state, BASE that memory's first byte on the host (`shared_memory_owners`). DISTANCE: the distance of
two retained readers (`cells.distance`). SHARED_STRIDE: bytes on the host from one block's
shared memory to the next one's. CLUSTER_BLOCKS: blocks of a cluster.

POOL_AT to POOL_END: memory not allocated yet; EXHAUSTED: an allocation failed. NOT_ALIGNED: threads
of a block have waited at different barriers. EARLIER_LAUNCH: a block set of the end of the previous
launch, if this one may begin before that, as if the previous launch were a block of this one; else
0. TRIGGERED: which threads have let the next launch begin: AFTER_WAIT, BEFORE_WAIT. FAST_PATH:
`quick_events` may process accesses. ALIGNED: all threads of a block execute the same barriers of
all threads, so each warp counts the barriers that it has PASSED.
"""

AFTER_WAIT, BEFORE_WAIT = 1, 2
"""Threads that knew of the end of the previous launch, and other threads."""

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
elements of PART bytes, in memory whose first byte is at BASE on the host and which has LIMIT bytes.
A barrier has NUMBER and awaits COUNT threads (0: all). CHECKED: the lanes of an access that have to
be checked, the rest being redundant; each accesses the bytes right after those of the lane before,
except for HEADS, which begin a lane run (`quick_events`)."""

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
"""Kinds of event. TENSOR_ ones are `tcgen05.wait` and `tcgen05.fence`; LAUNCH_ ones
`griddepcontrol`."""
AT_BARRIERS = (BARRIER_SYNC, BARRIER_ARRIVE, CLUSTER_ARRIVE, CLUSTER_WAIT)
"""Kinds of event at barriers of a block or a cluster, which also say how many threads are
awaited."""

GLOBAL, SHARED, TENSOR = 0, 1, 3
"""Spaces that are checked for races; TENSOR is the tensor memory of a block."""
LOAD, STORE, ATOMIC = 0, 1, 2

# ---- description of an instruction ----
SITE_FLAGS, SITE_LINE, SITE_EXEMPT, SITE_WORDS = range(4)
"""The description of an instruction: its flags; the number of its source line; EXEMPT: its accesses
are proven free of races, so it may store to what is CLOSED."""
STRONG, VOLATILE, ACQUIRES, RELEASES, COMPARES, ASYNC, BULK, MBARRIER, ARRIVES = (
    1 << bit for bit in range(9)
)
WAITS, COPIES, COMPLETES, PLAIN_WRITE, ARRIVES_ASYNC, INVALIDATES = (
    1 << bit for bit in range(9, 15)
)
SCOPE_AT, PASSED_BY_ALL, TEXELS = 16, 1 << 18, 1 << 19
CTA, CLUSTER, GPU, SYS = range(4)
"""Flags of an instruction, and its scope from bit SCOPE_AT on. COMPARES: it writes only if the old
value equals the first operand. MBARRIER: it operates on an mbarrier: ARRIVES there, WAITS for a
phase, COMPLETES bytes, initialises it (PLAIN_WRITE) or INVALIDATES it. COPIES: a load whose value
is only stored again. PASSED_BY_ALL: code after this barrier is executed by every thread, so a
thread that ends without executing the barrier has skipped it. TEXELS: it reads a texture or a
surface."""

# ---- a record of an access: three words ----
BLOCK_AT = 32
"""Interval word: the block's number and one, from BLOCK_AT on, and the interval."""
TIME_AT, AGENT, THREAD_BITS = 16, 1 << 10, (1 << 11) - 1
"""Thread word: the time, from TIME_AT on; the thread in the block, with AGENT set for its agent,
and the agent's kind from AGENT_KIND_AT on."""
AGENT_KIND_AT, WHO_BITS = 11, (1 << 13) - 1
COPIES_OF_THREAD, WORK_OF_THREAD, LOADS_OF_WARP, STORES_OF_WARP = range(4)
"""Kinds of agents: copies; products, copies and shifts of a thread in tensor memory (`tcgen05.mma`,
`.cp`, `.shift`); loads and stores of a warp there, recorded with the warp's first thread."""
OP_AT, BYTES_AT, FLAGS_AT = 24, 26, 32
SITE_BITS = (1 << 24) - 1
"""Access word: instruction, op, a mask of the word's four bytes that are accessed, the
instruction's flags."""
LOW = (1 << 32) - 1

# ---- a cell: the records of four bytes of memory ----
W_INTERVAL, W_THREAD, W_ACCESS, W_VALUE, R_INTERVAL, R_THREAD, R_ACCESS, LISTS = range(8)
CELL_WORDS = 8
"""A cell: the last weak write with its value (W_), one weak read (R_), and two lists of further
records (N_ nodes): in the low half of LISTS any accesses, in the high half strong ones of all four
bytes at gpu scope or wider."""
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
"""An allocation. CONSTANT marks constant memory; CLOSED memory to which no checked store of the
launch is proven to go, so that one that does is a finding (EXEMPT instructions may store there).
CELLS, LINES: where its cells and lines begin. WRITTEN: where its bits of written bytes begin; 0 if
all are written. TOUCHED: where it has a word for each aligned four bytes of memory with what the
launch has done there; 0 if not needed. EARLY: the same words for threads that did not know of the
end of the EARLIER_LAUNCH."""

# ---- what a launch has done with four bytes of memory ----
T_READ_AT, T_WRITTEN_AT, T_STRONG_READ_AT, T_STRONG_WRITTEN_AT = 0, 4, 8, 12
T_READER_AT, T_WRITER_AT, T_NUMBER_BITS = 16, 39, (1 << 23) - 1
"""Touched bytes: four bits each for the bytes that weak and strong accesses have read and written;
the number, and one, of the instruction that read there last, and of the last that wrote."""

# ---- a line: the records of 128 bytes while few runs of lanes have accessed them ----
H_TOUCHED, H_TAG, H_COUNT, H_RUN = range(4)
RUN_WORDS, MOST_RUNS = 4, 32
H_EXTENSION = H_RUN + RUN_WORDS
LINE_WORDS = H_EXTENSION + 1
"""A line. TOUCHED: set to 1 before anything is read, so that the host's first page fault is a write
and maps the page at once. TAG, in shared memory: the interval word of the last access. COUNT runs,
the oldest first, the first at RUN; IN_CELLS: the cells record the line's accesses from now on.
EXTENSION: index of the line's extension in the pool, 0 while it needs none. A line is one cache
line of the host: most lines are written once, by one run."""
X_SETTLED, X_GRID_WORDS, X_FEW, X_MORE, X_RUN = range(5)
EXTENSION_WORDS = X_RUN + RUN_WORDS
FEW_FROM, MORE_FROM = 2, 6
"""The extension of a line, one cache line of the host: the index of its settled bytes, with
IN_FORCE added while they count; a bit for each aligned four bytes that are settled for the whole
grid; the indices of its runs from the third on (FEW_FROM) and from the seventh on (MORE_FROM); its
second RUN."""
IN_FORCE = 1
Q_BLOCK_TAG, Q_WARP_TAG, Q_WARP_EPOCH = range(3)
Q_GRID, Q_BLOCK, Q_WARP, SETTLED_WORDS = 4, 8, 12, 16
"""Settled bytes of a line (`settled`): GRID, BLOCK and WARP have a bit for each byte, 32 in a word:
bytes of which reads are redundant for all threads, for the block and interval of BLOCK_TAG, and for
the block and interval of WARP_TAG and the warp of WARP_EPOCH, until it synchronises again."""
IN_CELLS = -1
LINE_BYTES = 128
LINE_SHIFT = 7

# ---- a run: lanes of a warp whose addresses in a line are evenly spaced ----
RUN_SIZE_AT, RUN_BEGIN_AT, RUN_END_AT, RUN_STRIDE_AT = 26, 32, 40, 48
RUN_SIZE_BITS, RUN_BEGIN_BITS, RUN_END_BITS, RUN_STRIDE_BITS = 63, 127, 255, 127
FALLS = 1 << 55
"""A run is a record whose thread word has the thread that accesses its first byte, and whose access
word has, after instruction and op, the bytes of a lane, the bytes of the line where the run begins
and ends, and its stride: bytes from one lane's address to the next one's, 0 for one lane. FALLS:
addresses fall from lane to lane, so thread numbers count down from the first byte on. A fourth word
masks the line's aligned four bytes of which the run accesses some. Of lanes of four bytes and more
that are contiguous, some may be missing in a run; its fourth word shows which are there."""
MOST_STRIDE = 64
"""Lanes farther apart than this make no run: a line would contain only one of them."""

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
"""A resident block. BLOCK: its number and one. SET: the block set that all its threads know (0:
none); NEXT_SET accumulates it at a barrier. FENCED: the last interval with a proxy fence, and one.
BARRIER_LINE: the instruction, and one, of the barrier at which some threads have arrived.
WRITTEN_FROM to WRITTEN_TO: the longest range of shared memory that was found to be written."""
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
"""A warp: its time; the first time that not all its lanes know of each other; the lanes that wait
at barriers; and, unless EXACT, the interval in which lanes arrived at a barrier last, and these
lanes. LOADS and STORES: how many of tensor memory it has begun; LOADED, STORED: how many of them it
has waited for. PASSED: if barriers are ALIGNED, how many all its lanes have passed, which is its
interval."""
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
"""A thread: the interval, and one, for which its vector clock holds; whether the agent words of it
do; its block set, and the interval, and one, for which that holds; the barrier at which it waits,
and one, and the generation of that; a list of the chains that its strong reads have seen; how many
copies it has begun; the groups that it has committed, and the copies begun by then in a RING, and
the same of bulk copies; the interval, and one, and the time of its last proxy fence; the chain that
it acquired last; how often it has arrived at the barrier of its cluster; how many products, copies
and shifts in tensor memory it has begun. After the rings: the release that its last fence made,
and, if that was of a narrow scope, the release of the last wider fence before it."""
G_ARRIVED, G_GENERATION, G_SET, BARRIER_HEAD = 0, 1, 2, 4
"""A barrier of some threads, or an mbarrier: arrivals, generation (of an mbarrier: the phase), two
block sets, and after the head two vector clocks: one of each for even and one for odd
generations."""
OF_ALL, OF_CLUSTER = 1 << 8, 1 << 9
"""Values of L_WAITS for the barrier of all threads of the block, and for that of the cluster."""

M_PHASE, M_INTERVAL, M_OWN_SET, M_JOINED_SET, M_BEFORE, M_AFTER, CLUSTER_BARRIER_HEAD = range(7)
"""What the threads of a block contribute to a phase of their cluster's barrier: the PHASE, counted
from 1 on; the last INTERVAL in which one arrived, for which the vector clock after the head holds;
their block sets joined. In the first block's record, JOINED_SET is what all blocks have
contributed, 0 until it is first needed; a thread whose set was BEFORE has the set AFTER when it
joins that."""

# ---- a release: what a thread knew, and a block set ----
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
"""A release. BLOCK: and one. THREAD knew its own accesses before TIME, and those of its warp before
SYNCED. CLOCK: a copy of its vector clock, 0 for none. SET: its block set. SCOPE: of the release
pattern."""

S_BLOCK, S_INTERVAL, S_CLOCK, S_THREAD, S_TIME, S_SYNCED, SET_WORDS = range(7)
"""A block set: a count, then that many entries by rising block number, each with the fields of a
release; CLOCK has times of further threads."""

# ---- a location to which a thread has released ----
O_KEY, O_CHAIN, O_MBARRIER, LOCATION_WORDS = range(4)
C_NEXT, C_RELEASE, CHAIN_WORDS = range(3)
"""A location, found by KEY: its CHAIN has the releases that a read of it synchronises with: those
of the last write, and of the read-modify-writes that followed. MBARRIER: an mbarrier is there, and
CHAIN is the index of its barrier record."""

# ---- a finding ----
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
"""A finding: KIND, INSTRUCTION and THREAD, and those of the earlier access, the SPACE, ADDRESS and
SIZE of the access, a COUNT, and a DETAIL that depends on the kind. OWNER: the block in whose shared
memory the address is."""
MOST_FINDINGS = 512
"""Number of different findings that are retained: of a kind, two instructions and a space."""

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
    K_STRAYED,
    K_UNFENCED,
    K_SKIPPED,
    K_STALE,
) = range(13)
"""Kinds of findings; `sanitize.report.KINDS` has the tool, the name and the message of each."""
