"""The ways one thread can go.

A thread is a function that runs on a `Path` and records there what it does. Where its path depends
on a value that a load has yet to find (a branch, an address), the `Path` decides, and keeps the
decision as a condition; `paths_of` runs the thread again for every sequence of decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from warploom.core.errors import WarploomError
from warploom.memory_model.events import Event
from warploom.memory_model.values import Value, loads_of


class TooLong(Exception):
    """A path goes through a loop more often than is looked at."""


class _Undecided(Exception):
    """A path needs a decision that its run was not given."""

    def __init__(self, choices: Sequence[int]) -> None:
        self.choices = choices


@dataclass
class Path:
    """One way through a thread: its events, the conditions under which it is taken (a value, what
    it must be), its registers at the end. `decisions` are those that the run was given."""

    decisions: tuple[int, ...]
    rounds: int
    events: list[Event] = field(default_factory=list[Event])
    conditions: list[tuple[Value, int]] = field(default_factory=list[tuple[Value, int]])
    registers: Mapping[str, Value] = field(default_factory=dict[str, Value])
    control: frozenset[int] = frozenset()
    _taken: int = 0
    _visits: dict[int, int] = field(default_factory=dict[int, int])

    def add(self, event: Event) -> int:
        """Appends an event; returns its number in the thread."""
        self.events.append(event)
        return len(self.events) - 1

    def decide(self, value: Value, choices: Sequence[int]) -> int:
        """Returns what a value is on this path, of `choices` where it depends on loads."""
        if isinstance(value, int):
            return value
        if self._taken == len(self.decisions):
            raise _Undecided(choices)
        chosen = self.decisions[self._taken]
        self._taken += 1
        self.conditions.append((value, chosen))
        return chosen

    def branch(self, value: Value) -> bool:
        """Returns whether a condition holds on this path; all that follows depends on it."""
        self.control |= loads_of(value)
        return bool(self.decide(value, (0, 1)))

    def visit(self, place: int) -> None:
        """Counts an arrival at a location of the program. Raises TooLong if there are too many."""
        times = self._visits[place] = self._visits.get(place, 0) + 1
        if times > self.rounds:
            raise TooLong


MOST = 10_000
"""So many paths of a thread are looked at."""


def paths_of(run: Callable[[Path], None], rounds: int) -> tuple[list[Path], bool]:
    """Returns all paths of a thread that arrive at any instruction at most `rounds` times, and
    whether there are longer ones. Raises WarploomError where there are too many."""
    found: list[Path] = []
    pending: list[tuple[int, ...]] = [()]
    longer = False
    while pending:
        path = Path(pending.pop(), rounds)
        try:
            run(path)
        except _Undecided as undecided:
            pending += [(*path.decisions, choice) for choice in undecided.choices]
        except TooLong:
            longer = True
        else:
            found.append(path)
        if len(found) + len(pending) > MOST:
            raise WarploomError(
                f"a thread has more than {MOST:,} possible paths: use fewer loops whose exit "
                "depends on a load"
            )
    return found, longer
