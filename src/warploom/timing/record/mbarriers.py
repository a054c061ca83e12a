"""Finds the phases of mbarriers in a log: who adds to which, and who waits for it to be complete.

A phase is complete when all have arrived at it, and all copies that it expects are over. How many
those were in the functional run is how many a replay waits for, those of other blocks of the
cluster among them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warploom.abi.log_copies import PHASE_BITS
from warploom.core.errors import Dim3
from warploom.isa.ops.mbarrier import WAITS
from warploom.machine.launch import Launch
from warploom.program.program import Program

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


def owners_of(launch: Launch, stride: int, block: Words, place: Words) -> tuple[Words, Words]:
    """Return the blocks whose mbarriers warps of the blocks look at or tell, and the place of each
    with its phase in that block's own shared memory; `place` (`abi.log_copies`) is that in the
    cluster's, in which a block's begins `stride` bytes behind the one before."""
    if launch.cluster_blocks == 1 or stride == 0:
        return block, place
    rank, offset = np.divmod(place >> PHASE_BITS, stride)
    steps = _steps(rank, launch.cluster) - _steps_in_grid(block, launch)
    wide, high, _ = launch.grid
    owner = block + steps[0] + wide * (steps[1] + high * steps[2])
    some = place >= 0
    own = offset << PHASE_BITS | place & MODULUS - 1
    return np.where(some, owner, block), np.where(some, own, place)


def _steps(rank: Words, cluster: Dim3) -> Words:
    """Return where blocks of a cluster are in it, along each axis; ranks count x fastest."""
    wide, high, _ = cluster
    return np.stack([rank % wide, rank // wide % high, rank // (wide * high)])


def _steps_in_grid(block: Words, launch: Launch) -> Words:
    """Return where blocks of the grid are in their clusters, along each axis."""
    places = _steps(block, launch.grid)
    return places % np.array(launch.cluster)[:, None]


def phases_of(block: Words, phase: Words, waits: npt.NDArray[np.bool_]) -> tuple[Words, Words]:
    """Return, of accesses in the order of the log, the phase that each adds to or waits for, one
    more than its number in its block, 0 for none; and for what waits, how often others add to it.

    `block` is the one whose mbarrier that is. `phase` is the mbarrier and its phase modulo 4
    (`owners_of`), less than 0 for none; it
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
