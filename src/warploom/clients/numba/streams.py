"""Provides streams and events with Numba's interface. Work is done when it is submitted, so that
nothing ever waits; the race detector records which work a stream would have waited for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Hashable, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

from warploom.clients.driver import ordering

FIRST_HANDLE = 0x100
"""The default streams have smaller ones."""


class Stream:
    """A stream: what is put into it has happened when the call returns."""

    def __init__(self, handle: int = 0) -> None:
        self.handle = handle

    def synchronize(self) -> None:
        """Orders the host after the stream, whose work has been done."""
        ordering.host_waits_for(self.handle)

    @contextmanager
    def auto_synchronize(self) -> Generator[Stream]:
        """Synchronizes at the end of the block."""
        yield self
        self.synchronize()

    def add_callback(self, callback: Callable[[Stream, int, Any], None], arg: Any = None) -> None:
        """Calls `callback(stream, status, arg)`: all work of the stream is done."""
        callback(self, 0, arg)

    def async_done(self) -> asyncio.Future[Stream]:
        """Returns a future that is done."""
        future: asyncio.Future[Stream] = asyncio.get_running_loop().create_future()
        future.set_result(self)
        return future

    def __int__(self) -> int:
        return self.handle


class Event:
    """A moment in a stream."""

    def __init__(self, timing: bool = True) -> None:
        self.timing = timing
        self.seconds: float | None = None
        self._before: Mapping[Hashable, int] = {}

    def record(self, stream: object = 0) -> None:
        self.seconds = time.perf_counter()
        with ordering.within(handle_of(stream)):
            self._before = ordering.recorded()

    def query(self) -> bool:
        self.synchronize()
        return True

    def synchronize(self) -> None:
        """Orders the host after the event, which has happened."""
        ordering.host_waits(self._before)

    def wait(self, stream: object = 0) -> None:
        """Orders a stream after the event, which has happened."""
        ordering.stream_waits(handle_of(stream), self._before)

    def elapsed_time(self, evtend: Event) -> float:
        """Milliseconds of the host from this event to another; both must have been recorded."""
        if self.seconds is None or evtend.seconds is None:
            raise RuntimeError("the event was not recorded, so it has no time")
        return (evtend.seconds - self.seconds) * 1e3


_numbers = count(FIRST_HANDLE)


def stream() -> Stream:
    made = Stream(next(_numbers))
    ordering.made(made.handle, blocking=True)
    return made


def handle_of(stream: object) -> int:
    """Returns the handle of a stream, or of what stands for the default stream: 0, or None."""
    return stream.handle if isinstance(stream, Stream) else 0


def default_stream() -> Stream:
    return Stream(0)


def event(timing: bool = True) -> Event:
    return Event(timing)


def event_elapsed_time(evtstart: Event, evtend: Event) -> float:
    return evtstart.elapsed_time(evtend)


def synchronize() -> None:
    """Nothing is left to wait for."""
    ordering.host_waits_for(None)
