"""Lays out the access set of a worker: which global memory its code has read and written, while
several workers run thread blocks that may conflict.

Memory is divided in pages of PAGE_BYTES and, within these, in units of 1 to 16 bytes
(`Tracking.unit`). An access set has a byte for each page, which states how the worker has touched
it, and bitmaps of units. With units of 4 bytes, a store of 16 bytes at 8 in page 0:

    touched  02 00 00 ...     page 0 is WRITTEN
    writes   0x3c             units 2 to 5

Before the first write of any worker to a page, its contents are saved, so that the writes of a
launch in which two workers conflict can be undone. The states of pages and the saved contents are
the workers' in common.
"""

from __future__ import annotations

from warploom.simt.records import WordRecord

PAGE_SHIFT = 12
PAGE_BYTES = 1 << PAGE_SHIFT

READ, WRITTEN, STORED = 1, 2, 4
"""Bits of a page in `touched`: the worker has read units of it, or written some, that are compared
with those of other workers; it has written some that no other worker can touch."""

SAVING, SAVED = 1, 2
"""States of a page, 0 before the first write: one worker copies its contents; they are saved."""


class AccessSet(WordRecord):
    """Holds the addresses of one worker's access set."""

    base: int  # the first byte of the memory that is recorded, a multiple of PAGE_BYTES
    pages: int  # the number of its pages
    touched: int  # u8[pages]
    reads: int  # a bitmap of units, as are the next two
    writes: int
    stores: int  # writes of units that no other worker can touch
    states: int  # u8[pages], of all workers
    saved: int  # the contents of saved pages, at their offsets from `base`, of all workers
    strayed: int  # 1 if an access was elsewhere; it is a fault, or stays unrecorded
