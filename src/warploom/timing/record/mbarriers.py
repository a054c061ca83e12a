"""Finds the phases of mbarriers in a log: which accesses arrive at each phase, and which wait for
it.

A phase is complete when all threads have arrived at it and all copies that it expects have ended. A
replay waits for as many arrivals as there were in the functional run, those from other blocks of
the cluster included. For example, two arrivals and a wait in the log,

    mbarrier.arrive [b]      phase 0  ->  phase_id 1
    mbarrier.arrive [b]      phase 0  ->  phase_id 1
    mbarrier.try_wait [b]    phase 1  ->  phase_id 1, arrivals 2   (awaits the phase before)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warploom.abi.log_copies import PHASE_BITS
from warploom.core.errors import Dim3
from warploom.isa.kinds import OpKind
from warploom.machine.launch import Launch
from warploom.program.program import Program

Words = npt.NDArray[np.int64]

MODULUS = 1 << PHASE_BITS


def waits_for_phases(program: Program) -> npt.NDArray[np.bool_]:
    """Returns, by index of the instruction, whether it waits for a phase of an mbarrier (a test or
    try_wait counts)."""
    return np.array(
        [instruction.operation.kind is OpKind.MBARRIER_WAIT for instruction in program.instructions]
    )


def owners_of(
    launch: Launch, stride: int, block: Words, packed_phase: Words
) -> tuple[Words, Words]:
    """Returns, for accesses by warps of the blocks `block`, the number in the grid of the block
    that owns the mbarrier (the own block if there is none), and the address and phase of the
    mbarrier in that block's own shared memory. Without clusters, or with a `stride` of 0, these are
    the arguments.

    `packed_phase` (`abi.log_copies`: byte address, shifted left by PHASE_BITS, plus the phase)
    counts in the cluster's shared memory, in which each block's begins `stride` bytes after the
    previous one; less than 0 stands for no mbarrier."""
    if launch.cluster_blocks == 1 or stride == 0:
        return block, packed_phase
    rank, offset = np.divmod(packed_phase >> PHASE_BITS, stride)
    distance = _coordinates(rank, launch.cluster) - _coordinates_in_cluster(block, launch)
    width, height, _ = launch.grid
    owner = block + distance[0] + width * (distance[1] + height * distance[2])
    has_phase = packed_phase >= 0
    own_packed_phase = offset << PHASE_BITS | packed_phase & MODULUS - 1
    return np.where(has_phase, owner, block), np.where(has_phase, own_packed_phase, packed_phase)


def _coordinates(rank: Words, cluster: Dim3) -> Words:
    """Returns the coordinates of ranks in a cluster (or of blocks in a grid), shape (3, ranks);
    ranks count x fastest."""
    width, height, _ = cluster
    return np.stack([rank % width, rank // width % height, rank // (width * height)])


def _coordinates_in_cluster(block: Words, launch: Launch) -> Words:
    """Returns the coordinates of blocks of the grid, by number, within their clusters, shape (3,
    blocks)."""
    coordinates = _coordinates(block, launch.grid)
    return coordinates % np.array(launch.cluster)[:, None]


def phases_of(
    block: Words, packed_phase: Words, waits: npt.NDArray[np.bool_]
) -> tuple[Words, Words]:
    """Returns, for accesses in the order of the log, the phase that each signals or awaits, as 1
    plus its number in its block (0 for none, and for a phase at which nothing arrives). Returns as
    well, for accesses that wait, how many arrivals complete the phase (0 for all others).

    `block` is the block that owns the mbarrier. `packed_phase` is the mbarrier and the phase that
    was incomplete then, modulo 4 (`owners_of`), less than 0 for none. An access that waited went
    on, so it awaited the phase before.
    """
    phase_id, arrivals = np.zeros(len(block), np.int64), np.zeros(len(block), np.int64)
    used = np.flatnonzero(packed_phase >= 0)
    if not len(used):
        return phase_id, arrivals
    barrier = np.stack([block[used], packed_phase[used] >> PHASE_BITS], axis=1)
    mbarriers, mbarrier = np.unique(barrier, axis=0, return_inverse=True)
    order = np.argsort(mbarrier.reshape(-1), kind="stable")
    absolute_in_order = _absolute_phases(
        mbarrier.reshape(-1)[order], packed_phase[used][order] % MODULUS
    )
    absolute = np.empty(len(used), np.int64)
    # Back to the order of the log.
    absolute[order] = absolute_in_order
    absolute -= waits[used]
    keys = np.stack([block[used], mbarriers[mbarrier.reshape(-1), 1], absolute], axis=1)
    phases, number = np.unique(keys, axis=0, return_inverse=True)
    number = number.reshape(-1)
    added = np.bincount(number[~waits[used]], minlength=len(phases))
    # Phases without arrivals get no number: a wait for such a phase does not wait.
    rank = np.cumsum(added > 0)
    first = np.searchsorted(phases[:, 0], phases[:, 0])
    before = rank[first] - (added[first] > 0)
    has_arrivals = added[number] > 0
    phase_id[used] = np.where(has_arrivals, (rank - before)[number], 0)
    arrivals[used] = np.where(has_arrivals & waits[used], added[number], 0)
    return phase_id, arrivals


def _absolute_phases(barrier: Words, phase: Words) -> Words:
    """Returns phases modulo 4 as numbers that do not wrap; each mbarrier's first row retains its
    phase. `barrier` is the number of the mbarrier; rows are sorted by it and then in the order of
    the log. Each arrival completes at most one phase, so none is skipped between two rows."""
    steps = np.diff(phase, prepend=phase[:1]) % MODULUS
    # The first row of each mbarrier has no previous phase.
    is_first = np.diff(barrier, prepend=-1) != 0
    steps[is_first] = phase[is_first]
    total = np.cumsum(steps)
    first = np.maximum.accumulate(np.where(is_first, np.arange(len(phase)), 0))
    return total - total[first] + phase[first]
