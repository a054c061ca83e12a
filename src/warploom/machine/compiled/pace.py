"""Adapts how many instructions compiled code runs before it returns to the host, which polls for
interrupts."""

from __future__ import annotations

SHORTEST, LONGEST = 0.03, 0.1
"""The target duration of one call in seconds. A keyboard interrupt waits for at most about LONGEST;
returning to the host costs some 10 us."""

FIRST = 1 << 16
"""Warp instructions of the first call, few enough that they run less than a second whatever they
are."""


class Pace:
    """The number of warp instructions that a kernel runs per call (`instructions`), adapted to hold
    calls between SHORTEST and LONGEST. Each launch template has one."""

    def __init__(self) -> None:
        """Begins with FIRST instructions per call."""
        self.instructions = FIRST

    def adjust(self, seconds: float) -> None:
        """Adjusts `instructions` after a call that lasted `seconds`: doubles it below SHORTEST,
        halves it above LONGEST, down to 1."""
        if seconds < SHORTEST:
            self.instructions *= 2
        elif seconds > LONGEST and self.instructions > 1:
            self.instructions //= 2
