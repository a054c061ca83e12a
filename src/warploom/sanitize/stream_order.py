"""Keeps what comes before what among the streams of a device, by what the host program asks for.

Vector clocks: a stream, or the host, knows of each other one how much of its work has ended before
whatever comes next. Work is what the host issues: a launch, or a copy.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from threading import Lock, local

Clock = dict[Hashable, int]

HOST = "host"
"""The host as a stream: of what ends before the call that does it returns."""

LEGACY = 0
"""The default stream, which waits for blocking streams and lets them wait (CUDA Programming Guide,
"Default stream")."""


class Trigger(Enum):
    """Says when a launch lets the next one of its stream begin: while the one before it may not
    have ended, or after it has."""

    BEFORE_WAIT = auto()
    AFTER_WAIT = auto()


@dataclass(frozen=True, eq=False)
class Issued:
    """Work as it was issued: the stream, how much of that came before, it included, and what it
    knows of all streams. `begin`: of a launch that may begin before the one ahead of it in its
    stream has ended, what orders it besides that stream; None where it may not."""

    stream: Hashable
    number: int
    clock: Mapping[Hashable, int]
    begin: Mapping[Hashable, int] | None = None

    def precedes(self, other: Issued) -> bool:
        """Return whether this ends before the other begins, whatever the times."""
        return other.clock.get(self.stream, 0) >= self.number


@dataclass
class StreamOrder:
    """The clocks of a device's streams. `several` is true from the time that works may run beside
    each other: that more than one stream, the host aside, has been told of, or that a launch lets
    the next one begin."""

    several: bool = False
    _clocks: dict[Hashable, Clock] = field(default_factory=dict[Hashable, Clock])
    _blocking: set[Hashable] = field(default_factory=set[Hashable])
    _launched: Clock = field(default_factory=Clock)
    _lock: Lock = field(default_factory=Lock)
    _current: local = field(default_factory=local)

    @property
    def current(self) -> Hashable | None:
        """Return the stream that this thread does the work of; None where that was not said."""
        return getattr(self._current, "stream", None)

    @contextmanager
    def within(self, stream: Hashable) -> Generator[None]:
        """Do what is done here as the work of a stream."""
        before, self._current.stream = self.current, stream
        try:
            yield
        finally:
            self._current.stream = before

    def keep(self) -> None:
        """Tell of a launch that lets the next one of its stream begin before it ends."""
        self.several = True

    def add(self, stream: Hashable, *, blocking: bool) -> None:
        """Tell of a stream; `blocking`: it waits for the default stream, and that for it."""
        with self._lock:
            self.several = True
            self._clock(stream)
            if blocking:
                self._blocking.add(stream)

    def issue(self, stream: Hashable) -> Issued:
        """Return the next work of a stream, as it stands when the host asks for it."""
        with self._lock:
            return self._issue(stream)

    def issue_launch(self, stream: Hashable, *, programmatic: bool) -> Issued:
        """Return the next work of a stream, which is a launch; a `programmatic` one may begin
        before a launch right ahead of it has ended (CUDA C++ Programming Guide, "Programmatic
        Dependent Launch and Synchronization")."""
        with self._lock:
            ahead = self._clock(stream).get(stream, 0)
            begin = None
            if programmatic and ahead and self._launched.get(stream) == ahead:
                begin = self._others(stream)
            issued = self._issue(stream, begin)
            self._launched[stream] = issued.number
            return issued

    def _issue(self, stream: Hashable, begin: Clock | None = None) -> Issued:
        clock = self._clock(stream)
        join(clock, self._others(stream))
        clock[stream] = clock.get(stream, 0) + 1
        return Issued(stream, clock[stream], dict(clock), begin)

    def _others(self, stream: Hashable) -> Clock:
        """Return what the next work of a stream knows besides what came before in that stream."""
        known = dict(self._clock(HOST))
        if stream == LEGACY:
            for other in self._blocking:
                join(known, self._clock(other))
        elif stream in self._blocking:
            join(known, self._clock(LEGACY))
        return known

    def recorded(self, stream: Hashable) -> Clock:
        """Return what an event stands for that is recorded in a stream now."""
        return dict(self.issue(stream).clock)

    def wait(self, stream: Hashable, event: Mapping[Hashable, int]) -> None:
        """Let all further work of a stream, or of the host, wait for an event."""
        with self._lock:
            self._launched.pop(stream, None)
            join(self._clock(stream), event)

    def wait_for_all(self, stream: Hashable) -> None:
        """Let all further work of a stream wait for all that was issued."""
        with self._lock:
            self._launched.pop(stream, None)
            for other in list(self._clocks):
                join(self._clock(stream), self._clock(other))

    def synchronize(self, stream: Hashable | None = None) -> None:
        """Let the host wait for a stream, or for all of them."""
        with self._lock:
            chosen = list(self._clocks) if stream is None else [stream]
            for one in chosen:
                join(self._clock(HOST), self._clock(one))
            if stream == LEGACY:
                for other in self._blocking:
                    join(self._clock(HOST), self._clock(other))

    def is_known(self, work: Issued) -> bool:
        """Return whether the host knows that some work has ended, and so all that it issues."""
        with self._lock:
            return self._clock(HOST).get(work.stream, 0) >= work.number

    def _clock(self, stream: Hashable) -> Clock:
        return self._clocks.setdefault(stream, {})


def join(clock: Clock, other: Mapping[Hashable, int]) -> None:
    """Let a clock know what another one does."""
    for stream, number in other.items():
        if clock.get(stream, 0) < number:
            clock[stream] = number
