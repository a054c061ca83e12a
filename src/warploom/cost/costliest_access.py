"""Keeping the addresses of the costliest access, so that a report can say what was wrong with it.

A record starts with `EXAMPLE_COST` at what the best access costs: only worse ones are kept, and of
these one that took the most transactions. Which one of several alike is not promised.
"""

from __future__ import annotations

import numpy as np

from warploom.cost.fields import EXAMPLE_ADDRESSES, EXAMPLE_COST, EXAMPLE_MASK, TRANSACTIONS
from warploom.simt.lane_counts import Addresses, Row, jitable


@jitable
def keep_example(addresses: Addresses, mask: int, before: int, row: Row) -> None:
    """Keep this access if it took more transactions than any; `before` were counted before it."""
    cost = row[TRANSACTIONS] - before
    if cost > row[EXAMPLE_COST]:
        row[EXAMPLE_COST] = cost
        row[EXAMPLE_MASK] = mask
        for lane in range(32):
            on = (mask >> lane) & 1
            row[EXAMPLE_ADDRESSES + lane] = np.int64(addresses[lane]) if on else 0
