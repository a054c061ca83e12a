"""From the blocks that were replayed to all of the launch."""

from __future__ import annotations

import numpy as np

from warploom.timing.replay import Outcome


def extrapolated(outcome: Outcome, sampled: int, blocks: int) -> tuple[int, int]:
    """Return the cycles of all blocks, from those of the first `sampled`, and how far off that may
    be.

    Blocks end at a steady rate once the first have ended and until the device drains: the rate is
    that between a quarter and three quarters of the sample. The error is what the rates of the two
    halves of this stretch differ by.
    """
    left = blocks - sampled
    if left <= 0 or sampled == 0:
        return outcome.cycles, 0
    whole = _cycles_between(outcome, sampled, 0.25, 0.75)
    halves = [_cycles_between(outcome, sampled, *part) for part in ((0.25, 0.5), (0.5, 0.75))]
    each = whole / (0.5 * sampled)
    apart = abs(halves[0] - halves[1]) / (0.25 * sampled)
    return outcome.cycles + round(left * each), round(left * apart)


def _cycles_between(outcome: Outcome, sampled: int, first: float, last: float) -> float:
    """Cycles from when this share of the sample had ended to when that one had."""
    times, ended = outcome.ends[:, 0], outcome.ends[:, 1]
    shares = np.array([first, last]) * sampled
    at = np.interp(shares, ended, times)
    return float(at[1]) - float(at[0])
