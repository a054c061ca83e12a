"""The costs that are counted of a memory access, and where each stands in a row of counts."""

from __future__ import annotations

FIELDS = (
    "requests",
    "sectors",
    "lines",
    "transactions",
    "bytes_requested",
    "bytes_moved",
    "wavefronts",
    "bank_conflicts",
    "passes",
)
"""What is counted of an access, in this order: columns of a tally's `accesses`.

`bytes_*` in bytes, `sectors` of 32 bytes, `lines` of 128 bytes; `passes` only for atomics and
constants, `wavefronts` and `bank_conflicts` only for shared memory.
"""

REQUESTS = FIELDS.index("requests")
SECTORS = FIELDS.index("sectors")
LINES = FIELDS.index("lines")
TRANSACTIONS = FIELDS.index("transactions")
BYTES_REQUESTED = FIELDS.index("bytes_requested")
BYTES_MOVED = FIELDS.index("bytes_moved")
WAVEFRONTS = FIELDS.index("wavefronts")
BANK_CONFLICTS = FIELDS.index("bank_conflicts")
PASSES = FIELDS.index("passes")
