"""Streams and events in Numba's manner. Work is done when it is asked for: nothing ever waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any


class Stream:
    """A stream: what is put into it has happened when the call returns."""

    def __init__(self, handle: int = 0) -> None:
        self.handle = handle

    def synchronize(self) -> None:
        """Nothing is left to wait for."""

    @contextmanager
    def auto_synchronize(self) -> Generator[Stream]:
        """Synchronise at the end of the block."""
        yield self
        self.synchronize()

    def add_callback(self, callback: Callable[[Stream, int, Any], None], arg: Any = None) -> None:
        """Call `callback(stream, status, arg)`: all work of the stream is done."""
        callback(self, 0, arg)

    def async_done(self) -> asyncio.Future[Stream]:
        """Return a future that is done."""
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

    def record(self, stream: object = 0) -> None:
        self.seconds = time.perf_counter()

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        """Nothing is left to wait for."""

    def wait(self, stream: object = 0) -> None:
        """Nothing is left to wait for."""

    def elapsed_time(self, evtend: Event) -> float:
        """Milliseconds of the host from this event to another; both must have been recorded."""
        if self.seconds is None or evtend.seconds is None:
            raise RuntimeError("an event that was not recorded has no time")
        return (evtend.seconds - self.seconds) * 1e3


def stream() -> Stream:
    return Stream(id(object()))


def default_stream() -> Stream:
    return Stream(0)


def event(timing: bool = True) -> Event:
    return Event(timing)


def event_elapsed_time(evtstart: Event, evtend: Event) -> float:
    return evtstart.elapsed_time(evtend)


def synchronize() -> None:
    """Nothing is left to wait for."""
