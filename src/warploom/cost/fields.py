"""Defines the record of a memory access: its counters, then its costliest access."""

from __future__ import annotations

from typing import Annotated

from warploom.simt.records import WordRecord, Words


class CostRecord(WordRecord):
    """The counters of an access, then an example of it.

    `bytes_*` in bytes, `sectors` of 32 bytes, `lines` of 128 bytes; `transactions` by the device's
    rule, for global and local memory also by their sizes in bytes. `passes` only for atomics and
    constants, `wavefronts` and `bank_conflicts` only for shared memory, `writes` only for stores:
    the writes that the memory performs (`cost.writes`). Hits and misses are in sectors, and only
    with simulated caches; the `l1` of constant memory is the constant cache."""

    requests: int
    sectors: int
    lines: int
    transactions: int
    transactions_32: int
    transactions_64: int
    transactions_128: int
    bytes_requested: int
    bytes_moved: int
    wavefronts: int
    bank_conflicts: int
    passes: int
    writes: int
    l1_hits: int
    l1_misses: int
    l2_hits: int
    l2_misses: int
    # The costliest access (`cost.costliest_access`): its transactions, active mask and addresses.
    example_cost: int
    example_mask: int
    example_addresses: Annotated[Words, 32]


FIELDS = tuple(CostRecord.OFFSETS)[: CostRecord.example_cost]
"""The names of the counters, in order; these are the columns of a tally's `accesses`."""
