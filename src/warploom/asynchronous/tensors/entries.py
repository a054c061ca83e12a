"""The words of one asynchronous copy, as it is issued and as it is kept until it completes.

A tensor map stands first, so that `asynchronous.tensors.maps` reads an entry. Behind the entry, an
issue has words for its fault and for what it knows of the machine.
"""

from __future__ import annotations

from warploom.asynchronous.tensors.maps import MAP_WORDS

ORIGIN = 4096
"""The address of the first byte of `memory`: no program has memory below."""

KIND = MAP_WORDS
(
    GROUPS,
    THREAD,
    SOURCE,
    TARGET,
    SIZE,
    BARRIER,
    TX_BYTES,
    REQUEST,
    SHARED,
    COORDINATES,
) = range(KIND + 1, KIND + 11)
OFFSETS = COORDINATES + 5
ROW_COORDINATES = OFFSETS + 3
ROW_ADDRESS, ROW_FROM, ROW_TO = ROW_COORDINATES + 5, ROW_COORDINATES + 6, ROW_COORDINATES + 7
ENTRY_WORDS = ROW_TO + 1
"""KIND: one of those below. GROUPS: what kind of group it joins. THREAD: who issued it. SOURCE,
TARGET: addresses; of a tensor's box, that in shared memory. SIZE in bytes. BARRIER: the address of
the mbarrier that is told of TELLS bytes, or 0. REQUEST: a request
(`asynchronous.tensors.requests`). SHARED: where the shared memory of the box begins. COORDINATES:
five, of a gather the column and four rows. OFFSETS: of im2col; of bytes side by side, the first is
a mask of each 16. PLACE: coordinates of a row of the box; it begins at ROW_ADDRESS, and the tensor
has its bytes from ROW_FROM to ROW_TO."""

ALL_BYTES = 0xFFFF
"""A mask of 16 bytes that leaves none out."""

BYTES, BOX_COPY, REDUCTION, GROUP_END, RESPONSE = range(5)
"""Kinds of entries: bytes side by side; a tensor's box; a reduction of numbers side by side; the
end of a group; words that stand in COORDINATES."""

NO_GROUP, BULK_GROUP = range(2)
"""Groups: none (an mbarrier is told), those of `cp.async.bulk`."""

FAULT_KIND = ENTRY_WORDS
(
    FAULT_LANE,
    FAULT_ADDRESS,
    FAULT_SIZE,
    FAULT_IN_SHARED,
    ALLOCATIONS,
    OWN_SHARED,
    SHARED_BYTES,
    CLUSTER_SHARED,
    SHARED_STRIDE,
    LIVE_BLOCKS,
    FIRST_THREAD,
    BLOCK,
    WARP,
) = range(FAULT_KIND + 1, FAULT_KIND + 14)
SCRATCH_WORDS = WARP + 1
"""The fault; how many allocations there are; where shared memory of the block, and of the first
block of its cluster, begin, the bytes of a block and from block to block, the blocks of the
cluster that are there, a bit each; the number of the warp's first thread, of the block and of the
warp."""
