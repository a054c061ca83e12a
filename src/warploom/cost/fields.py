"""Names the counters of a memory access, and defines their indices in its record."""

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
"""The counters of an access, in order; these are the columns of a tally's `accesses`.

`bytes_*` in bytes, `sectors` of 32 bytes, `lines` of 128 bytes; `transactions` by the device's
rule, for global and local memory also by their sizes in bytes. `passes` only for atomics and
constants, `wavefronts` and `bank_conflicts` only for shared memory, `writes` only for stores: the
writes that the memory performs (`cost.writes`). Hits and misses are in sectors, and only with
simulated caches; the `l1` of constant memory is the constant cache.
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
"""Words of an access record: the counters, then the costliest access: its transactions, active mask
and 32 addresses (`cost.costliest_access`)."""
