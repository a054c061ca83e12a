"""Defines the numbers in the fields of the race detector's records (`detector.records`) and of the
events that are passed to it: kinds, flags, and how several values are packed in a word. Names in
_AT are bit positions.

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

AFTER_WAIT, BEFORE_WAIT = 1, 2
"""Threads that knew of the end of the previous launch, and other threads."""

MEM, RACE, SYNC, INIT = 1, 2, 4, 8

# ---- events ----

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
STRONG, VOLATILE, ACQUIRES, RELEASES, COMPARES, ASYNC, BULK, MBARRIER, ARRIVES = (
    1 << bit for bit in range(9)
)
WAITS, COPIES, COMPLETES, PLAIN_WRITE, ARRIVES_ASYNC, INVALIDATES = (
    1 << bit for bit in range(9, 15)
)
SCOPE_AT, SCOPE_BITS, PASSED_BY_ALL, TEXELS = 16, 3, 1 << 18, 1 << 19
CTA, CLUSTER, GPU, SYS = range(4)
"""Flags of an instruction, and its scope (SCOPE_BITS from bit SCOPE_AT on; wider ones are greater).
COMPARES: it writes only if the old value equals the first operand. MBARRIER: it operates on an
mbarrier: ARRIVES there, WAITS for a phase, COMPLETES bytes, initializes it (PLAIN_WRITE) or
INVALIDATES it. COPIES: a load whose value is only stored again. PASSED_BY_ALL: code after this
barrier is executed by every thread, so a thread that ends without executing the barrier has skipped
it. TEXELS: it reads a texture or a surface."""

# ---- a record of an access: three words ----
BLOCK_AT = 32
"""Interval word: the block's number and one, from BLOCK_AT on, and the interval."""
TIME_AT, AGENT, THREAD_BITS = 16, 1 << 10, (1 << 11) - 1
"""Thread word: the time, from TIME_AT on; the thread in the block, with AGENT set for its agent,
and the agent's kind from AGENT_KIND_AT on."""
AGENT_KIND_AT, AGENT_BITS = 11, (1 << 13) - 1
COPIES_OF_THREAD, WORK_OF_THREAD, LOADS_OF_WARP, STORES_OF_WARP = range(4)
"""Kinds of agents: copies; products, copies and shifts of a thread in tensor memory (`tcgen05.mma`,
`.cp`, `.shift`); loads and stores of a warp there, recorded with the warp's first thread."""
OP_AT, BYTES_AT, FLAGS_AT = 24, 26, 32
SITE_BITS, OP_BITS, ALL_BYTES = (1 << 24) - 1, 3, 15
"""Access word: instruction (SITE_BITS), op (OP_BITS from OP_AT on), a mask of the word's four bytes
that are accessed (ALL_BYTES from BYTES_AT on), the instruction's flags."""
LOW = (1 << 32) - 1

# ---- an allocation ----
CONSTANT, CLOSED = 1, 2
"""Values of `TrackedAllocation.constant`: constant memory; memory to which no checked store of the
launch is proven to go, so that one that does is a finding."""

# ---- what a launch has done with four bytes of memory ----
T_READ_AT, T_WRITTEN_AT, T_STRONG_READ_AT, T_STRONG_WRITTEN_AT = 0, 4, 8, 12
T_READER_AT, T_WRITER_AT, T_NUMBER_BITS = 16, 39, (1 << 23) - 1
"""Touched bytes: four bits each for the bytes that weak and strong accesses have read and written;
the number, and one, of the instruction that read there last, and of the last that wrote."""

# ---- a line: the records of 128 bytes while few runs of lanes have accessed them ----
MOST_RUNS = 32
"""Runs that a line has at most."""
FEW_FROM, MORE_FROM = 2, 6
"""From which run on a line's extension has their indices in `few`, and in `more`."""
IN_FORCE = 1
"""Added to the index of a line's settled bytes while they count."""
IN_CELLS = -1
"""The count of runs of a line whose accesses the cells record from now on."""
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

# ---- a thread ----
RING = 8
"""Groups of copies of a thread of which it is remembered how many copies had begun by then."""
OF_ALL, OF_CLUSTER = 1 << 8, 1 << 9
"""Values of `ThreadKnowledge.waits`, less one, for the barrier of all threads of the block, and for
that of the cluster."""

# ---- a finding ----
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
