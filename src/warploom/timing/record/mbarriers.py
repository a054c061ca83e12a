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
            instruction.operation.name == "mbarrier"
            and instruction.operation.modifiers["op"] in WAITS
            for instruction in program.instructions
        ]
    )


def owners_of(launch: Launch, stride: int, block: Words, place: Words) -> tuple[Words, Words]:
    """Return the blocks whose mbarriers warps of the blocks look at or tell, and the place of each
    with its phase in that block's own shared memory; `place` (`abi.log_copies`) is that in the
    cluster's, in which a block's begins `stride` bytes behind the one before."""
    if launch.cluster_blocks == 1 or stride == 0:
        return block, place
    rank, offset = np.divmod(place >> PHASE_BITS, stride)
    distance = _coordinates(rank, launch.cluster) - _coordinates_in_cluster(block, launch)
    width, height, _ = launch.grid
    owner = block + distance[0] + width * (distance[1] + height * distance[2])
    has_phase = place >= 0
    own_place = offset << PHASE_BITS | place & MODULUS - 1
    return np.where(has_phase, owner, block), np.where(has_phase, own_place, place)


def _coordinates(rank: Words, cluster: Dim3) -> Words:
    """Return where blocks of a cluster are in it, along each axis; ranks count x fastest."""
    width, height, _ = cluster
    return np.stack([rank % width, rank // width % height, rank // (width * height)])


def _coordinates_in_cluster(block: Words, launch: Launch) -> Words:
    """Return where blocks of the grid are in their clusters, along each axis."""
    coordinates = _coordinates(block, launch.grid)
    return coordinates % np.array(launch.cluster)[:, None]


def phases_of(block: Words, phase: Words, waits: npt.NDArray[np.bool_]) -> tuple[Words, Words]:
    """Return, of accesses in the order of the log, the phase that each adds to or waits for, one
    more than its number in its block, 0 for none; and for what waits, how often others add to it.

    `block` is the one whose mbarrier that is. `phase` is the mbarrier and its phase modulo 4
    (`owners_of`), less than 0 for none; it
    is the one that was not complete yet. What waits went on, so the phase before was.
    """
    phase_id, arrivals = np.zeros(len(block), np.int64), np.zeros(len(block), np.int64)
    used = np.flatnonzero(phase >= 0)
    if not len(used):
        return phase_id, arrivals
    barrier = np.stack([block[used], phase[used] >> PHASE_BITS], axis=1)
    mbarriers, mbarrier = np.unique(barrier, axis=0, return_inverse=True)
    order = np.argsort(mbarrier.reshape(-1), kind="stable")
    absolute_in_order = _absolute_phases(mbarrier.reshape(-1)[order], phase[used][order] % MODULUS)
    absolute = np.empty(len(used), np.int64)
    absolute[order] = absolute_in_order
    absolute -= waits[used]
    keys = np.stack([block[used], mbarriers[mbarrier.reshape(-1), 1], absolute], axis=1)
    phases, number = np.unique(keys, axis=0, return_inverse=True)
    number = number.reshape(-1)
    added = np.bincount(number[~waits[used]], minlength=len(phases))
    rank = np.cumsum(added > 0)
    first = np.searchsorted(phases[:, 0], phases[:, 0])
    before = rank[first] - (added[first] > 0)
    has_arrivals = added[number] > 0
    phase_id[used] = np.where(has_arrivals, (rank - before)[number], 0)
    arrivals[used] = np.where(has_arrivals & waits[used], added[number], 0)
    return phase_id, arrivals


def _absolute_phases(barrier: Words, phase: Words) -> Words:
    """Return phases modulo 4 as phases since the first that each mbarrier was seen in; rows are
    sorted by mbarrier. Between two of them at most one phase was completed by each arrival, so
    that none is passed over."""
    steps = np.diff(phase, prepend=phase[:1]) % MODULUS
    is_first = np.diff(barrier, prepend=-1) != 0
    steps[is_first] = phase[is_first]
    total = np.cumsum(steps)
    first = np.maximum.accumulate(np.where(is_first, np.arange(len(phase)), 0))
    return total - total[first] + phase[first]
