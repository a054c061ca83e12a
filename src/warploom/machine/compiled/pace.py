"""Decides how many instructions compiled code runs before it comes back to let its host look
around."""

from __future__ import annotations

SHORTEST, LONGEST = 0.03, 0.1
"""Seconds: an interrupt from the keyboard waits for so long, and looking costs some 10 us."""

FIRST = 1 << 16
"""Warp instructions of the first call: none of them takes so long that all take a second."""


class Pace:
    """Warp instructions at a time, as many as take that long where a kernel runs; found by
    trying."""

    def __init__(self) -> None:
        self.instructions = FIRST

    def took(self, seconds: float) -> None:
        """Note that so many took so long."""
        if seconds < SHORTEST:
            self.instructions *= 2
        elif seconds > LONGEST and self.instructions > 1:
            self.instructions //= 2
