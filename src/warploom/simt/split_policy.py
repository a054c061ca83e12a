"""Chooses which split of a warp goes next, by the policy."""

from __future__ import annotations

from warploom.simt.lane_counts import first_lane, jitable
from warploom.simt.waiting_splits import parked
from warploom.simt.warp_table import (
    BLOCK,
    MASK,
    NONE,
    PARKED,
    PASS,
    READY,
    S_ARGUMENT,
    S_ARGUMENT_2,
    S_BLOCK,
    S_MASK,
    S_NODE,
    S_ORDER,
    S_VOTE,
    SEQUENCE,
    TOP,
    VOTE,
    Table,
    split_at,
)

CONVERGE, FAIR, RANDOM, ADVERSARIAL = range(4)
"""Policies. CONVERGE runs one side after the other and gathers; FAIR takes short turns; RANDOM
chooses by seed; ADVERSARIAL keeps every lane apart from the others as long as it may."""


@jitable
def choose(table: Table, policy: int, seed: int) -> int:
    """Take the next split: its block (also in BLOCK, with MASK and TOP), NONE where none can run.

    CONVERGE and FAIR take what has waited longest, RANDOM any, ADVERSARIAL what came last, but what
    has used up a turn only behind all that has not.
    """
    best = NONE
    best_key = 0
    left = parked(table, READY)
    while left != 0:
        split = first_lane(left)
        left &= left - 1
        at = split_at(table, split)
        key = table[at + S_ORDER]
        if policy == RANDOM:
            key = scrambled(seed, table[SEQUENCE] * 64 + split)
        elif policy == ADVERSARIAL and table[at + S_ARGUMENT] == 0:
            key = -1 - key
        if best == NONE or key < best_key:
            best = split
            best_key = key
    if best == NONE:
        return NONE
    at = split_at(table, best)
    table[PARKED] &= ~(1 << best)
    table[MASK] = table[at + S_MASK]
    table[BLOCK] = table[at + S_BLOCK]
    table[TOP] = table[at + S_NODE]
    table[PASS] = table[at + S_ARGUMENT_2]
    table[VOTE] = table[at + S_VOTE]
    return table[BLOCK]


@jitable
def scrambled(seed: int, number: int) -> int:
    """Return a number in [0, 2^31) that looks random, from two that need not."""
    x = (seed % (1 << 31)) * 1103515245 + (number % (1 << 31)) * 2654435761 % (1 << 62)
    x = (x ^ (x >> 31)) & 0x7FFFFFFF
    for _ in range(2):
        x = ((x ^ (x >> 16)) * 0x45D9F3B) & 0x7FFFFFFF
    return x ^ (x >> 15)
