"""Stores the addresses of the costliest access of an instruction in its record, as an example for
the report.

`example_cost` starts at the cost of an ideal access, so that only worse ones are stored: the one
with the most transactions. Which of several equally costly accesses is unspecified.
"""

from __future__ import annotations

import numpy as np

from warploom.cost.fields import CostRecord
from warploom.simt.lane_counts import Addresses, Ints, jitable


@jitable
def store_example(addresses: Addresses, mask: int, before: int, record: Ints) -> None:
    """Stores an access (mask, and addresses with 0 for inactive lanes) as the example in its record
    if it needed more transactions than the stored one; `before` is the `transactions` counter
    before the access was counted."""
    costs = CostRecord(record, 0)
    cost = costs.transactions - before
    if cost > costs.example_cost:
        costs.example_cost = cost
        costs.example_mask = mask
        for lane in range(32):
            # Addresses of inactive lanes are undefined: zeros keep reports equal on both machines.
            on = (mask >> lane) & 1
            costs.example_addresses[lane] = np.int64(addresses[lane]) if on else 0
