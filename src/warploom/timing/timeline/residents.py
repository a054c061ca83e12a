"""Computes which blocks are resident on which SM over a timeline, from the share of the device's
block slots that each kernel has (`timeline.schedule`).

As long as a kernel has as many slots, its blocks stay on the SMs where they are (one that ends is
followed by another of the same kernel). Further blocks go to the SM with most of its slots free, as
those of a launch do (`host.residency`); a kernel that needs fewer gives up slots where it has most.

Two SMs, kernel a with half an SM for each of its 2 blocks, then b with a third for each of its 3:
SM 0: a 1, b 1; SM 1: a 1, b 1; the third block of b has its share only on both SMs together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from warploom.timing.timeline.work import ScheduledWork

Counts = npt.NDArray[np.int64]

EPSILON = 1e-6
"""Shares that differ by less are equal: sums of floats are inexact."""


@dataclass(frozen=True)
class ResidentBlocksOfSms:
    """Holds, for the time from `begin` to `end` in seconds, the blocks of each kernel on each SM,
    by the kernel's index in the works; and how many blocks have their share of slots only on
    several SMs together, and so are on none."""

    begin: float
    end: float
    blocks: dict[int, Counts]
    without_sm: dict[int, int]


def share_at(work: ScheduledWork, moment: float) -> float:
    """Returns the share of block slots that a kernel has from a moment on."""
    if not work.begin <= moment < work.end:
        return 0.0
    return next((share for since, share in reversed(work.slots) if since <= moment), 0.0)


def change_moments(works: Sequence[ScheduledWork]) -> list[float]:
    """Returns the moments at which the slots of some kernel change, in order."""
    kernels = [work for work in works if work.slots]
    ends = {work.end for work in kernels}
    return sorted(ends | {moment for work in kernels for moment, _ in work.slots})


def residents(works: Sequence[ScheduledWork], sms: int) -> list[ResidentBlocksOfSms]:
    """Returns the resident blocks from each change of slots to the next."""
    blocks: dict[int, Counts] = {}
    moments: list[ResidentBlocksOfSms] = []
    kernels = [index for index, work in enumerate(works) if work.slots]
    kernels.sort(key=lambda index: (works[index].begin, index))
    for begin, end in pairwise(change_moments(works)):
        shares = {index: share_at(works[index], begin) for index in kernels}
        wanted = {
            index: round(share / works[index].work.demand.block_share)
            for index, share in shares.items()
            if share
        }
        blocks = {index: _fewer(blocks[index], n) for index, n in wanted.items() if index in blocks}
        sizes = {index: works[index].work.demand.block_share * sms for index in wanted}
        for index, count in wanted.items():
            had = blocks.get(index, np.zeros(sms, np.int64))
            free = np.ones(sms)
            for other, on_sm in blocks.items():
                free -= on_sm * sizes[other]
            blocks[index] = had + _dealt(free, sizes[index], count - int(had.sum()))
        left = {index: count - int(blocks[index].sum()) for index, count in wanted.items()}
        moments.append(ResidentBlocksOfSms(begin, end, dict(blocks), left))
    return moments


def _dealt(free: npt.NDArray[np.float64], size: float, count: int) -> Counts:
    """Returns how many of up to `count` blocks go to each SM, of which a share is `free`, if each
    needs the share `size` of one: the next to the SM with most of it free."""
    turns = [
        (earlier * size - share, sm)
        for sm, share in enumerate(free.tolist())
        for earlier in range(int((share + EPSILON) / size))
    ]
    turns.sort(key=lambda turn: (round(turn[0] / EPSILON), turn[1]))
    chosen = [sm for _, sm in turns[:count]]
    return np.bincount(np.array(chosen, np.int64), minlength=len(free))


def _fewer(counts: Counts, most: int) -> Counts:
    """Returns the blocks that stay on each SM if at most `most` do: first those leave that are on
    an SM with more than others, of the last SM first."""
    counts = counts.copy()
    for _ in range(int(counts.sum()) - most):
        counts[len(counts) - 1 - int(counts[::-1].argmax())] -= 1
    return counts
