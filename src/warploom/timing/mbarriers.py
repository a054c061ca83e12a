"""Finds the phases of mbarriers in a log: who adds to which, and who waits for it to be complete.

A phase is complete when all have arrived at it, and all copies that it expects are over. How many
those were in the functional run is how many a replay waits for; arrivals from other blocks of a
cluster are not among them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warploom.analysis.program import Program
from warploom.codegen.log_copies import PHASE_BITS
from warploom.isa.ops.mbarrier import WAITS

Words = npt.NDArray[np.int64]

MODULUS = 1 << PHASE_BITS


def waits_for_phases(program: Program) -> npt.NDArray[np.bool_]:
    """Return, by instruction, whether it waits for a phase of an mbarrier."""
    return np.array(
        [
            made.operation.name == "mbarrier" and made.operation.modifiers["op"] in WAITS
            for made in program.instructions
        ]
    )


def phases_of(block: Words, phase: Words, waits: npt.NDArray[np.bool_]) -> tuple[Words, Words]:
    """Return, of accesses in the order of the log, the phase that each adds to or waits for, one
    more than its number in its block, 0 for none; and for what waits, how often others add to it.

    `phase` is the mbarrier and its phase modulo 4 (`codegen.log_copies`), less than 0 for none; it
    is the one that was not complete yet. What waits went on, so the phase before was.
    """
    event, needed = np.zeros(len(block), np.int64), np.zeros(len(block), np.int64)
    some = np.flatnonzero(phase >= 0)
    if not len(some):
        return event, needed
    barrier = np.stack([block[some], phase[some] >> PHASE_BITS], axis=1)
    kinds, which = np.unique(barrier, axis=0, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    counted = _counted(which.reshape(-1)[order], phase[some][order] % MODULUS)
    absolute = np.empty(len(some), np.int64)
    absolute[order] = counted
    absolute -= waits[some]
    keys = np.stack([block[some], kinds[which.reshape(-1), 1], absolute], axis=1)
    phases, number = np.unique(keys, axis=0, return_inverse=True)
    number = number.reshape(-1)
    added = np.bincount(number[~waits[some]], minlength=len(phases))
    place = np.cumsum(added > 0)
    first = np.searchsorted(phases[:, 0], phases[:, 0])
    before = place[first] - (added[first] > 0)
    there = added[number] > 0
    event[some] = np.where(there, (place - before)[number], 0)
    needed[some] = np.where(there & waits[some], added[number], 0)
    return event, needed


def _counted(barrier: Words, phase: Words) -> Words:
    """Return phases modulo 4 as phases since the first that each mbarrier was seen in; rows are
    sorted by mbarrier. Between two of them at most one phase was completed by each arrival, so
    that none is passed over."""
    steps = np.diff(phase, prepend=phase[:1]) % MODULUS
    begins = np.diff(barrier, prepend=-1) != 0
    steps[begins] = phase[begins]
    whole = np.cumsum(steps)
    before = np.maximum.accumulate(np.where(begins, np.arange(len(phase)), 0))
    return whole - whole[before] + phase[before]
