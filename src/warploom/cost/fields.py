"""The costs that are counted of a memory access, and where each stands in a row of counts."""

from __future__ import annotations

FIELDS = (
    "requests",
    "sectors",
    "lines",
    "transactions",
    "transactions_32",
    "transactions_64",
    "transactions_128",
    "bytes_requested",
    "bytes_moved",
    "wavefronts",
    "bank_conflicts",
    "passes",
    "writes",
    "l1_hits",
    "l1_misses",
    "l2_hits",
    "l2_misses",
)
"""What is counted of an access, in this order: columns of a tally's `accesses`.

`bytes_*` in bytes, `sectors` of 32 bytes, `lines` of 128 bytes; `transactions` as the device's rule
makes them, for global and local memory also by their sizes in bytes. `passes` only for atomics and
constants, `wavefronts` and `bank_conflicts` only for shared memory, `writes` only for stores: how
many the memory makes of them. Hits and misses are sectors, and only with counted caches; the `l1`
of constant memory is the constant cache.
"""

REQUESTS = FIELDS.index("requests")
SECTORS = FIELDS.index("sectors")
LINES = FIELDS.index("lines")
TRANSACTIONS = FIELDS.index("transactions")
TRANSACTIONS_32 = FIELDS.index("transactions_32")
TRANSACTIONS_64 = FIELDS.index("transactions_64")
TRANSACTIONS_128 = FIELDS.index("transactions_128")
BYTES_REQUESTED = FIELDS.index("bytes_requested")
BYTES_MOVED = FIELDS.index("bytes_moved")
WAVEFRONTS = FIELDS.index("wavefronts")
BANK_CONFLICTS = FIELDS.index("bank_conflicts")
PASSES = FIELDS.index("passes")
WRITES = FIELDS.index("writes")
L1_HITS = FIELDS.index("l1_hits")
L1_MISSES = FIELDS.index("l1_misses")
L2_HITS = FIELDS.index("l2_hits")
L2_MISSES = FIELDS.index("l2_misses")

EXAMPLE_COST = len(FIELDS)
EXAMPLE_MASK = EXAMPLE_COST + 1
EXAMPLE_ADDRESSES = EXAMPLE_COST + 2
RECORD_WIDTH = EXAMPLE_ADDRESSES + 32
"""A record is a row of counts, then one of the accesses that took the most transactions: how
many, the lanes that took part, and the 32 addresses (`cost.costliest_access`)."""
