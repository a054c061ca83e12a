"""Extrapolates the cycles of a launch from those of the blocks that were replayed."""

from __future__ import annotations

import numpy as np

from warploom.timing import layout as w
from warploom.timing.records import MemorySystem
from warploom.timing.replay import ReplayOutcome
from warploom.timing.work.costs import TICKS


def extrapolate_cycles(outcome: ReplayOutcome, sampled: int, blocks: int) -> tuple[int, int]:
    """Returns the cycles of all `blocks` blocks, given the replay of the first `sampled`, and an
    estimate of the error in cycles; those of the replay, and 0, if it had all blocks or none.

    Blocks end at a constant rate once the first have ended and until the device drains. The
    remaining blocks need the time that follows from the rate between a quarter and three quarters
    of the sample or, if longer, the time that DRAM needs for them once L2 is full of written data.
    The error is the difference of the cycles per block in the two halves of that stretch, times the
    remaining blocks."""
    remaining = blocks - sampled
    if remaining <= 0 or sampled == 0:
        return outcome.cycles, 0
    middle = _cycles_between(outcome, sampled, 0.25, 0.75)
    halves = [_cycles_between(outcome, sampled, *part) for part in ((0.25, 0.5), (0.5, 0.75))]
    cycles_per_block = middle / (0.5 * sampled)
    spread = abs(halves[0] - halves[1]) / (0.25 * sampled)
    rest = max(remaining * cycles_per_block, _dram_cycles(outcome, sampled, blocks))
    return outcome.cycles + round(rest), round(remaining * spread)


def _dram_cycles(outcome: ReplayOutcome, sampled: int, blocks: int) -> float:
    """Returns the cycles that DRAM needs for the blocks after the sample: to read as much for each
    as the sample's blocks read, and to write what they and the sample write beyond the capacity of
    L2.

    Whole lines are written at random among those that are read: a share f of writes makes 2 f (1 -
    f) of all pairs of neighbors in a bank switch between reading and writing."""
    p, memory = outcome.setting.parameters, outcome.memory
    l2_bytes = w.LINE_BYTES * int(p.l2_sets * p.l2_ways)
    # Dirty lines of earlier launches, which L2 began with, are not written by this one.
    written = int(
        memory[MemorySystem.dram_written]
        + memory[MemorySystem.l2_dirty]
        - outcome.setting.dirty * l2_bytes
    )
    written_back = max(0, written * blocks // sampled - max(l2_bytes, written))
    bytes_moved = int(memory[MemorySystem.dram_read]) * (blocks - sampled) // sampled + written_back
    write_share = written_back / max(1, bytes_moved)
    line_ticks = w.SECTORS * int(p.bank_ticks) + 2 * write_share * (1 - write_share) * int(
        p.turn_ticks
    )
    return bytes_moved / w.LINE_BYTES * line_ticks / (TICKS << int(p.bank_bits))


def _cycles_between(outcome: ReplayOutcome, sampled: int, first: float, last: float) -> float:
    """Returns the cycles between the ends of two blocks, those at the shares `first` and `last` (0
    to 1) of the sample in the order in which blocks end, interpolated between quanta."""
    times, ended = outcome.ends[:, 0], outcome.ends[:, 1]
    shares = np.array([first, last]) * sampled
    cycles = np.interp(shares, ended, times)
    return float(cycles[1]) - float(cycles[0])
