"""A replay that its user runs: it can stop, be looked at, saved, and go on."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from warploom.timing.replay import Replay, ReplayOutcome
from warploom.timing.result import Timing
from warploom.timing.saved import ReplayState


class Replaying:
    """A launch's replay on its way.

    replaying = run.replay(scheduler="gto")
    replaying.advance(100_000)           # cycles
    replaying.state.save("half.npz")
    ...
    again = run.replay(scheduler="gto")  # in another process, of the same launch
    again.restore(State.load("half.npz"))
    again.time()                         # what the first would have come to
    """

    def __init__(self, replay: Replay, _make_timing: Callable[[ReplayOutcome], Timing]) -> None:
        self._replay, self._make_timing = replay, _make_timing

    @property
    def now(self) -> int:
        """Return the cycle that comes next."""
        return self._replay.now

    def advance(self, cycle: int) -> bool:
        """Run up to this cycle, or to the end of a stretch in which SMs cannot learn of each other;
        whether something is left to run."""
        return self._replay.advance(cycle)

    @property
    def state(self) -> ReplayState:
        """Return all that is needed to go on from here; plain arrays."""
        return self._replay.state()

    def restore(self, state: ReplayState) -> None:
        """Go on from a state. Raises WarploomError where it is one of another replay."""
        self._replay.restore(state)

    def time(self) -> Timing:
        """Run it to its end, for what it tells."""
        return self._time

    @cached_property
    def _time(self) -> Timing:
        return self._make_timing(self._replay.run())
