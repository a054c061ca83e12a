"""Selects the split (set of lanes) of a warp that runs next, by the scheduling policy of the
launch: of the parked splits in the warp's table that are ready, makes one the running split, and
returns the basic block at which it resumes.

    split A parked first, then B, neither has used up a turn   ->   CONVERGE: A, ADVERSARIAL: B
"""

from __future__ import annotations

from warploom.simt.lane_counts import first_lane, jitable
from warploom.simt.waiting_splits import parked
from warploom.simt.warp_table import NONE, READY, WarpTable, split_of

CONVERGE, FAIR, RANDOM, ADVERSARIAL = range(4)
"""Policies. CONVERGE runs one side of a branch after the other and reconverges; FAIR uses short
turns; RANDOM chooses by seed; ADVERSARIAL leaves lanes diverged as long as PTX allows."""


@jitable
def resume_next_split(table: WarpTable, policy: int, seed: int) -> int:
    """Makes a ready split (parked lanes that execute together) the running one: unparks it and sets
    `block`, `mask`, `top`, `sync_done` and `vote` in the warp's table. Returns its basic block, or
    NONE if no split is ready.

    CONVERGE and FAIR select the split that was parked first, RANDOM any, by `seed`, ADVERSARIAL the
    one parked last, but splits that have used up a turn after all others."""
    best = NONE
    best_key = 0
    left = parked(table, READY)
    while left != 0:
        split = first_lane(left)
        left &= left - 1
        record = split_of(table, split)
        key = record.order
        if policy == RANDOM:
            # `sequence` changes with every parking, so the choice differs from turn to turn.
            key = hash_pair(seed, table.sequence * 64 + split)
        elif policy == ADVERSARIAL and record.argument == 0:
            # Negative keys reverse the order, and precede splits that have used up a turn.
            key = -1 - key
        if best == NONE or key < best_key:
            best = split
            best_key = key
    if best == NONE:
        return NONE
    record = split_of(table, best)
    table.parked &= ~(1 << best)
    table.mask = record.mask
    table.block = record.block
    table.top = record.node
    table.sync_done = record.argument_2
    table.vote = record.vote
    return table.block


@jitable
def hash_pair(seed: int, number: int) -> int:
    """Hashes two numbers to a pseudo-random number in [0, 2^31). Every intermediate value fits 64
    bits, so that Python and machine code agree."""
    # Multipliers of known generators (the C library's, Knuth's): any odd ones that mix bits do.
    x = (seed % (1 << 31)) * 1103515245 + (number % (1 << 31)) * 2654435761 % (1 << 62)
    x = (x ^ (x >> 31)) & 0x7FFFFFFF
    for _ in range(2):
        x = ((x ^ (x >> 16)) * 0x45D9F3B) & 0x7FFFFFFF
    return x ^ (x >> 15)
