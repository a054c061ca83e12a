"""Keeps what comes before what among the streams of a device, by what the host program asks for.

Vector clocks: a stream, or the host, knows of each other one how much of its work has ended before
whatever comes next. Work is what the host issues: a launch, or a copy.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock, local

Clock = dict[Hashable, int]

HOST = "host"
"""The host as a stream: of what ends before the call that does it returns."""

LEGACY = 0
"""The default stream, which waits for blocking streams and lets them wait (CUDA Programming Guide,
"Default stream")."""


@dataclass(frozen=True, eq=False)
class Issued:
    """Work as it was issued: the stream, how much of that came before, it included, and what it
    knows of all streams."""

    stream: Hashable
    number: int
    clock: Mapping[Hashable, int]

    def precedes(self, other: Issued) -> bool:
        """Return whether this ends before the other begins, whatever the times."""
        return other.clock.get(self.stream, 0) >= self.number


@dataclass
class StreamOrder:
    """The clocks of a device's streams. `several` is true from the time that more than one stream,
    the host aside, has been told of."""

    several: bool = False
    _clocks: dict[Hashable, Clock] = field(default_factory=dict[Hashable, Clock])
    _blocking: set[Hashable] = field(default_factory=set[Hashable])
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
            clock = self._clock(stream)
            _join(clock, self._clock(HOST))
            if stream == LEGACY:
                for other in self._blocking:
                    _join(clock, self._clock(other))
            elif stream in self._blocking:
                _join(clock, self._clock(LEGACY))
            clock[stream] = clock.get(stream, 0) + 1
            return Issued(stream, clock[stream], dict(clock))

    def recorded(self, stream: Hashable) -> Clock:
        """Return what an event stands for that is recorded in a stream now."""
        return dict(self.issue(stream).clock)

    def wait(self, stream: Hashable, event: Mapping[Hashable, int]) -> None:
        """Let all further work of a stream, or of the host, wait for an event."""
        with self._lock:
            _join(self._clock(stream), event)

    def wait_for_all(self, stream: Hashable) -> None:
        """Let all further work of a stream wait for all that was issued."""
        with self._lock:
            for other in list(self._clocks):
                _join(self._clock(stream), self._clock(other))

    def synchronize(self, stream: Hashable | None = None) -> None:
        """Let the host wait for a stream, or for all of them."""
        with self._lock:
            chosen = list(self._clocks) if stream is None else [stream]
            for one in chosen:
                _join(self._clock(HOST), self._clock(one))
            if stream == LEGACY:
                for other in self._blocking:
                    _join(self._clock(HOST), self._clock(other))

    def is_known(self, work: Issued) -> bool:
        """Return whether the host knows that some work has ended, and so all that it issues."""
        with self._lock:
            return self._clock(HOST).get(work.stream, 0) >= work.number

    def _clock(self, stream: Hashable) -> Clock:
        return self._clocks.setdefault(stream, {})


def _join(clock: Clock, other: Mapping[Hashable, int]) -> None:
    """Let a clock know what another one does."""
    for stream, number in other.items():
        if clock.get(stream, 0) < number:
            clock[stream] = number
