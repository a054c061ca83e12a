"""From the blocks that were replayed to all of the launch."""

from __future__ import annotations

import numpy as np

from warploom.timing import layout as w
from warploom.timing.replay import Outcome
from warploom.timing.work.costs import TICKS


def extrapolated(outcome: Outcome, sampled: int, blocks: int) -> tuple[int, int]:
    """Return the cycles of all blocks, from those of the first `sampled`, and how far off that may
    be.

    Blocks end at a steady rate once the first have ended and until the device drains: the rate is
    that between a quarter and three quarters of the sample, or what DRAM needs for the others once
    L2 is full of what was written. The error is what the rates of the two halves of this stretch
    differ by.
    """
    left = blocks - sampled
    if left <= 0 or sampled == 0:
        return outcome.cycles, 0
    whole = _cycles_between(outcome, sampled, 0.25, 0.75)
    halves = [_cycles_between(outcome, sampled, *part) for part in ((0.25, 0.5), (0.5, 0.75))]
    each = whole / (0.5 * sampled)
    spread = abs(halves[0] - halves[1]) / (0.25 * sampled)
    rest = max(left * each, _dram_cycles(outcome, sampled, blocks))
    return outcome.cycles + round(rest), round(left * spread)


def _dram_cycles(outcome: Outcome, sampled: int, blocks: int) -> float:
    """Cycles in which DRAM reads what blocks behind the sample read, if they do as those of the
    sample did, and writes what L2 cannot hold: whole lines, those that are written at random among
    those that are read, so that of all pairs of neighbours in a bank 2 f (1 - f) turn it."""
    p, memory = outcome.setting.parameters, outcome.memory
    held = w.LINE_BYTES * int(p[w.L2_SETS] * p[w.L2_WAYS])
    written = int(memory[w.DRAM_WRITTEN] + memory[w.L2_DIRTY] - outcome.setting.dirty * held)
    later = max(0, written * blocks // sampled - max(held, written))
    moved = int(memory[w.DRAM_READ]) * (blocks - sampled) // sampled + later
    writes = later / max(1, moved)
    line = w.SECTORS * int(p[w.BANK_TICKS]) + 2 * writes * (1 - writes) * int(p[w.TURN_TICKS])
    return moved / w.LINE_BYTES * line / (TICKS << int(p[w.BANK_BITS]))


def _cycles_between(outcome: Outcome, sampled: int, first: float, last: float) -> float:
    """Cycles from when this share of the sample had ended to when that one had."""
    times, ended = outcome.ends[:, 0], outcome.ends[:, 1]
    shares = np.array([first, last]) * sampled
    at = np.interp(shares, ended, times)
    return float(at[1]) - float(at[0])
