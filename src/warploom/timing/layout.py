"""Defines the numbers in the fields of the timing engine's records (`timing.records`): the kinds of
operations and accesses, the reasons for which warps wait, and how several values are packed in one
word.

All data of the engine are flat arrays of 64-bit integers: Numba compiles plain loops over them, and
a replay is saved and restored by copying them. The engine's modules import this one as `w`.
"""

from __future__ import annotations

# ---- warp schedulers ----------------------------------------------------------------------------

SCHEDULERS = ("lrr", "gto", "two-level", "oldest")
"""The scheduling policies of the model: loose round robin; greedy then oldest; round robin among a
few active warps, a set that a warp leaves when it waits long; oldest first."""

LRR, GTO, TWO_LEVEL, OLDEST, USER_DEFINED = range(len(SCHEDULERS) + 1)
"""Numbers of the policies; USER_DEFINED is the user's function (`timing.policies`)."""

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

REGISTER_BANKS, READ_BITS = 2, 4
READ_WINDOW = 3
"""Cycles in which an operation reads its registers; a bank serves one register a cycle. Source:
Huerta et al., "Analyzing Modern NVIDIA GPU cores" (MICRO 2025), of an RTX A6000."""

ALU, MEMORY, BLOCK_BARRIER, BRANCH, EXIT, COPY, FENCE, SLEEP, COMMIT, WAIT_GROUP, POLL = range(11)
BULK, PRODUCT, SIGNAL = 11, 12, 13
"""Kinds of operations, with the meaning of X and Y. MEMORY: X is 1 for accesses to global or local
memory, Y is 1 for `cp.async`, which joins a group of copies. COPY: a register copy that needs no
issue slot. BLOCK_BARRIER: X is the barrier's number, Y the warps that it waits for (0: those of the
block) or, for an arrival that does not wait, -1 less those. FENCE, SLEEP: X is the number of
cycles. COMMIT: closes the open group of copies, or of products where Y is 1. WAIT_GROUP: X is how
many groups of copies, or of products where Y is 1, may still be incomplete (-1: not even the open
one). POLL: a load after which the warp waits until the warps of all blocks have polled. BULK: a
copy by the Tensor Memory Accelerator; Y is 1 if it joins a group of copies. PRODUCT: a matrix
product of a warp group or in tensor memory, which its group awaits; Y is 1 if it closes its group.
SIGNAL: arrives at mbarriers when all products of the warp have ended (`tcgen05.commit`)."""

# ---- accesses -----------------------------------------------------------------------------------

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

# ---- parameters ---------------------------------------------------------------------------------

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

LINE = 8
"""Words of a cache line of the host (64 bytes); parts of the state are aligned to it."""

VACANT, ASLEEP, READY = range(3)
"""States of a warp's slot (`WarpSlot.state`): no warp, one that cannot issue before its wake-up
time, one that the scheduler considers each cycle."""
MOST_WARPS = 64
"""Warps of a scheduler at most."""

GROUPS, GROUP_END_BITS = 8, 48
"""Groups of asynchronous copies, or of matrix products, of a warp whose ends are remembered; and
the bits of a word that hold such an end."""
BARRIERS = 16
"""Barriers of a block."""
IN_FLIGHT = REASON_COUNT
"""The state, in the timeline, of a copy in flight."""

LINE_BITS = 7
LINE_BYTES, SECTOR_BYTES, SECTORS, MOST_WAYS = 1 << LINE_BITS, 32, 4, 16
"""Sizes of a cache line and a sector, and the most ways of a set: the recency order of a set packs
four bits a way in one word."""
UNWRITTEN_BITS, UNWRITTEN_MASK = 5, 31
TAG_BITS, DIRTY_BITS, SECTOR_MASK = 8, 4, 15
"""A cache entry's tag word (`timing.engine.caches`): from TAG_BITS on 1 plus the line's number,
below it a mask of the valid sectors and, from DIRTY_BITS on, one of the dirty ones."""
