"""From the blocks that were replayed to all of the launch."""

from __future__ import annotations

import numpy as np

from warploom.timing import layout as w
from warploom.timing.replay import ReplayOutcome
from warploom.timing.work.costs import TICKS


def extrapolate_cycles(outcome: ReplayOutcome, sampled: int, blocks: int) -> tuple[int, int]:
    """Return the cycles of all blocks, from those of the first `sampled`, and how far off that may
    be.

    Blocks end at a steady rate once the first have ended and until the device drains: the rate is
    that between a quarter and three quarters of the sample, or what DRAM needs for the others once
    L2 is full of what was written. The error is what the rates of the two halves of this stretch
    differ by.
    """
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
    """Cycles in which DRAM reads what blocks behind the sample read, if they do as those of the
    sample did, and writes what L2 cannot hold: whole lines, those that are written at random among
    those that are read, so that of all pairs of neighbours in a bank 2 f (1 - f) turn it."""
    p, memory = outcome.setting.parameters, outcome.memory
    l2_bytes = w.LINE_BYTES * int(p[w.L2_SETS] * p[w.L2_WAYS])
    written = int(memory[w.DRAM_WRITTEN] + memory[w.L2_DIRTY] - outcome.setting.dirty * l2_bytes)
    written_back = max(0, written * blocks // sampled - max(l2_bytes, written))
    bytes_moved = int(memory[w.DRAM_READ]) * (blocks - sampled) // sampled + written_back
    write_share = written_back / max(1, bytes_moved)
    line_ticks = w.SECTORS * int(p[w.BANK_TICKS]) + 2 * write_share * (1 - write_share) * int(
        p[w.TURN_TICKS]
    )
    return bytes_moved / w.LINE_BYTES * line_ticks / (TICKS << int(p[w.BANK_BITS]))


def _cycles_between(outcome: ReplayOutcome, sampled: int, first: float, last: float) -> float:
    """Cycles from when this share of the sample had ended to when that one had."""
    times, ended = outcome.ends[:, 0], outcome.ends[:, 1]
    shares = np.array([first, last]) * sampled
    cycles = np.interp(shares, ended, times)
    return float(cycles[1]) - float(cycles[0])
