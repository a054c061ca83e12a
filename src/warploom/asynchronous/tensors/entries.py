"""Defines the layout of an entry, the array of words that describes one asynchronous request (TMA
or `tcgen05`), at issue and in the queue.

An entry begins with the words of a tensor map, so that `asynchronous.tensors.maps` can read it. The
array `scratch` of an issue has an entry, followed by words for a fault and for the state of the
machine.
"""

from __future__ import annotations

from warploom.asynchronous.tensors.maps import MAP_WORDS

ORIGIN = 4096
"""The host address of the first byte of `memory`: no process has memory below."""

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
"""Words of an entry. KIND: see below. GROUPS: the kind of group it joins. THREAD: number of the
issuing thread. SOURCE, TARGET: addresses; for a box, TARGET is that in shared memory. SIZE in
bytes. BARRIER: address of the mbarrier that is signalled TX_BYTES bytes, or 0. REQUEST:
`asynchronous.tensors.requests`. SHARED: address of the block's shared memory. COORDINATES: five;
for a gather the column and four rows. OFFSETS: of im2col; for contiguous bytes, the first is a mask
of the bytes of each 16. Set for one row of a box at a time: ROW_COORDINATES; ROW_ADDRESS: its
address; ROW_FROM, ROW_TO: the range of its bytes that lies in the tensor."""

ALL_BYTES = 0xFFFF
"""The byte mask of a copy of all 16 bytes of each unit."""

BYTES, BOX_COPY, REDUCTION, GROUP_END, RESPONSE = range(5)
"""Kinds of entries: copy of contiguous bytes; tensor box; reduction of contiguous numbers; end of a
group; response in COORDINATES (`asynchronous.tensors.cancel`)."""

NO_GROUP, BULK_GROUP = range(2)
"""Kinds of groups: none (an mbarrier is signalled), of `cp.async.bulk`."""

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
"""Words of `scratch` after the entry. FAULT_...: the fault; FAULT_IN_SHARED: its address is in
shared or tensor memory. ALLOCATIONS: number of global allocations. OWN_SHARED, CLUSTER_SHARED: host
addresses of the shared memory of the block and of the first block of its cluster; SHARED_BYTES:
bytes of a block; SHARED_STRIDE: bytes from block to block. LIVE_BLOCKS: running blocks of the
cluster, as bits. FIRST_THREAD: number of the warp's first thread. BLOCK: grid index of the block.
WARP: index of the warp in its block."""
