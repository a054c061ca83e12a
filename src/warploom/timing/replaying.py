"""Lets users step a replay: stop it, look at it, save it and resume it."""

from __future__ import annotations

from collections.abc import Callable

from warploom.core.lazy import cached_property
from warploom.timing.replay import Replay, ReplayOutcome
from warploom.timing.result import Timing
from warploom.timing.saved import ReplayState


class Replaying:
    """Controls the replay of a launch: runs it step by step, saves and restores its state, and
    returns the modelled time.

    replaying = run.replay(scheduler="gto")
    replaying.advance(100_000)           # cycles
    replaying.state.save("half.npz")
    ...
    again = run.replay(scheduler="gto")  # in another process, of the same launch
    again.restore(ReplayState.load("half.npz"))
    again.time()                         # the result of the first replay, had it not stopped
    """

    def __init__(self, replay: Replay, _make_timing: Callable[[ReplayOutcome], Timing]) -> None:
        """Stores the replay, and the function that makes the modelled time from its outcome; runs
        nothing."""
        self._replay, self._make_timing = replay, _make_timing

    @property
    def now(self) -> int:
        """Returns the next cycle that the replay will run; all before it are finished."""
        return self._replay.now

    def advance(self, cycle: int) -> bool:
        """Runs up to this cycle, or a little further: to the end of a quantum, in which SMs are
        simulated independently. Returns True if it stopped there, False if nothing was left to run
        before that."""
        return self._replay.advance(cycle)

    @property
    def state(self) -> ReplayState:
        """Returns all that is needed to resume from here, as plain arrays."""
        return self._replay.state()

    def restore(self, state: ReplayState) -> None:
        """Resumes from a state. Raises WarploomError for the state of another replay."""
        self._replay.restore(state)

    def time(self) -> Timing:
        """Runs the replay to its end and returns the modelled time; later calls return the same,
        also after `restore`. Raises WarploomError if a function of the user's raised an
        exception."""
        return self._time

    @cached_property
    def _time(self) -> Timing:
        """Runs the replay to its end once and returns the modelled time (`time`)."""
        return self._make_timing(self._replay.run())
