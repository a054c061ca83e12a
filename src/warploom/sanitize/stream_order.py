"""Computes happens-before among the streams of a device from the calls of the host program.

It uses vector clocks: a stream, or the host, knows of each other stream how much of its work ends
before the next work begins. Work is what the host issues: a launch, or a copy. Stream 1 issues two
launches and records an event; stream 2 waits for the event and issues a launch, whose clock is {1:
2, 2: 1}: it begins after both.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from threading import local

from warploom.core.mutex import Mutex

Clock = dict[Hashable, int]

HOST = "host"
"""The host as a stream: work that ends before the call that does it returns."""

LEGACY = 0
"""The default stream, which waits for blocking streams and they for it (CUDA Programming Guide,
"Default stream")."""


class Trigger(Enum):
    """Says when a launch lets the next one of its stream begin: while the previous one may not have
    ended, or after it has."""

    BEFORE_WAIT = auto()
    AFTER_WAIT = auto()


@dataclass(frozen=True, eq=False)
class IssuedWork:
    """Describes work as it was issued: its stream, its number in that, from 1 on, and the clock
    with what it knows of all streams. `begin`: the clock without its own stream, if it is a launch
    that may begin before the previous one in its stream has ended; else None."""

    stream: Hashable
    number: int
    clock: Mapping[Hashable, int]
    begin: Mapping[Hashable, int] | None = None
    moment: int = 0
    """Its number among the works of all streams, in the order of their issue."""

    def precedes(self, other: IssuedWork) -> bool:
        """Returns whether this ends before the other begins, whatever the times."""
        return other.clock.get(self.stream, 0) >= self.number


@dataclass
class StreamOrder:
    """Holds the clocks of a device's streams. `several` is true once works may overlap: there is
    more than one stream, not counting the host, or a launch lets the next one begin."""

    several: bool = False
    _clocks: dict[Hashable, Clock] = field(default_factory=dict[Hashable, Clock])
    _blocking: set[Hashable] = field(default_factory=set[Hashable])
    _launched: Clock = field(default_factory=Clock)
    _issued: int = 0
    _lock: Mutex = field(default_factory=partial(Mutex, "order streams"))
    _current: local = field(default_factory=local)

    @property
    def current(self) -> Hashable | None:
        """Returns the stream whose work the calling thread issues; None if not set."""
        return getattr(self._current, "stream", None)

    @contextmanager
    def within(self, stream: Hashable) -> Generator[None]:
        """Sets the current stream of the calling thread within the context."""
        before, self._current.stream = self.current, stream
        try:
            yield
        finally:
            self._current.stream = before

    def note_trigger(self) -> None:
        """Records that a launch lets the next one of its stream begin before it ends."""
        self.several = True

    def add(self, stream: Hashable, *, blocking: bool) -> None:
        """Adds a stream; `blocking`: it and the default stream wait for each other."""
        with self._lock:
            self.several = True
            self._clock(stream)
            if blocking:
                self._blocking.add(stream)

    def issue(self, stream: Hashable) -> IssuedWork:
        """Returns the next work of a stream, ordered as of now."""
        with self._lock:
            return self._issue(stream)

    def issue_launch(self, stream: Hashable, *, programmatic: bool) -> IssuedWork:
        """Returns the next work of a stream, which is a launch; a `programmatic` one may begin
        before a launch directly before it has ended (CUDA C++ Programming Guide, "Programmatic
        Dependent Launch and Synchronization")."""
        with self._lock:
            ahead = self._clock(stream).get(stream, 0)
            begin = None
            if programmatic and ahead and self._launched.get(stream) == ahead:
                begin = self._others(stream)
            issued = self._issue(stream, begin)
            self._launched[stream] = issued.number
            return issued

    def _issue(self, stream: Hashable, begin: Clock | None = None) -> IssuedWork:
        clock = self._clock(stream)
        join(clock, self._others(stream))
        clock[stream] = clock.get(stream, 0) + 1
        self._issued += 1
        return IssuedWork(stream, clock[stream], dict(clock), begin, self._issued)

    def _others(self, stream: Hashable) -> Clock:
        """Returns what the next work of a stream knows from other streams."""
        known = dict(self._clock(HOST))
        if stream == LEGACY:
            for other in self._blocking:
                join(known, self._clock(other))
        elif stream in self._blocking:
            join(known, self._clock(LEGACY))
        return known

    def recorded(self, stream: Hashable) -> Clock:
        """Returns the clock of an event that is recorded in a stream now."""
        return dict(self.issue(stream).clock)

    def wait(self, stream: Hashable, event: Mapping[Hashable, int]) -> None:
        """Orders all further work of a stream, or of the host, after an event."""
        with self._lock:
            self._launched.pop(stream, None)
            join(self._clock(stream), event)

    def wait_for_all(self, stream: Hashable) -> None:
        """Orders all further work of a stream after all work that was issued."""
        with self._lock:
            self._launched.pop(stream, None)
            for other in list(self._clocks):
                join(self._clock(stream), self._clock(other))

    def synchronize(self, stream: Hashable | None = None) -> None:
        """Orders all further work of the host after a stream's, or after all streams'."""
        with self._lock:
            chosen = list(self._clocks) if stream is None else [stream]
            for one in chosen:
                join(self._clock(HOST), self._clock(one))
            if stream == LEGACY:
                for other in self._blocking:
                    join(self._clock(HOST), self._clock(other))

    def is_known(self, work: IssuedWork) -> bool:
        """Returns whether the host, and so all that it issues, knows that some work has ended."""
        with self._lock:
            return self._clock(HOST).get(work.stream, 0) >= work.number

    def _clock(self, stream: Hashable) -> Clock:
        return self._clocks.setdefault(stream, {})


def join(clock: Clock, other: Mapping[Hashable, int]) -> None:
    """Adds to a clock what another one knows."""
    for stream, number in other.items():
        if clock.get(stream, 0) < number:
            clock[stream] = number
