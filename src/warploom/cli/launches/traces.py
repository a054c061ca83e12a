"""Records the traces of a program's launches for a page that chooses among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Lock

from warploom.cli.launches.captures import CapturedLaunch


class LaunchTraces:
    """The traces of several launches by their numbers in a list, each recorded when it is first
    read: recording takes longer than capturing, and most launches may never be looked at."""

    def __init__(self, launches: Sequence[CapturedLaunch], record: Callable[[Path], bytes]) -> None:
        """`record` returns the trace of a launch's core file."""
        self._launches, self._record = launches, record
        self._recorded: dict[int, bytes] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._launches)

    def __getitem__(self, number: int) -> bytes:
        """Returns the trace of a launch. Raises IndexError, and what recording does."""
        with self._lock:
            if number not in self._recorded:
                self._recorded[number] = self._record(self._launches[number].file)
            return self._recorded[number]

    def __iter__(self) -> Iterator[bytes]:
        return (self[number] for number in range(len(self)))
