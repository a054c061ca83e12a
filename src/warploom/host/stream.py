"""Streams: launches that run one after another while the host goes on."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Generic, TypeVar

from warploom.core.errors import LaunchError
from warploom.core.forked import forget_in_child
from warploom.core.interrupts import wait_until
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.turn import Cancellation, refuse_in_launch

T = TypeVar("T")

MOST_QUEUED = 1024
"""The most launches that a stream queues; a further call waits until one has run. Each takes some
20 KB until then."""

LAST_SECONDS = 5.0
"""How long the end of the process waits for cancelled launches; one that runs ends in 0.1 s, one
that is being compiled at the end of that."""


@dataclass(frozen=True, eq=False)
class Queued(Generic[T]):
    """Holds the outcome of work that was queued in a stream. `work` checks the cancellation itself;
    `on_wait` is called when the host has waited for the work."""

    work: Callable[[], T]
    cancellation: Cancellation
    on_wait: Callable[[], object] | None = None
    future: Future[T] = field(default_factory=Future["T"])
    process: int = field(default_factory=os.getpid)

    def done(self) -> bool:
        """Returns whether it has ended, well or not."""
        return self.future.done()

    def result(self) -> T:
        """Waits for its end; returns what came of it, or raises what it raised. Ctrl-C cancels it.

        Raises LaunchError in a process that was forked while it was queued.
        """
        try:
            self.wait()
            return self.future.result()
        except KeyboardInterrupt:
            self.cancel()
            raise
        finally:
            if self.on_wait is not None and self.future.done():
                self.on_wait()

    def wait(self) -> None:
        """Waits for its end. Raises LaunchError in a process that was forked meanwhile."""
        if not self.done():
            self.check_reachable()
            self.cancellation.begin_wait()
            try:
                wait_until(lambda seconds: bool(wait([self.future], seconds).done))
            finally:
                self.cancellation.end_wait()

    def cancel(self) -> None:
        """Stops it where it runs, and drops it where it does not."""
        self.cancellation.request()

    def run(self) -> None:
        """Executes the work, in the thread of the stream."""
        try:
            result = self.work()
        except BaseException as error:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)

    def check_reachable(self) -> None:
        refuse_in_launch("wait for a stream")
        if os.getpid() != self.process:
            raise LaunchError(
                "a launch that was queued before a fork does not run in the child process; wait "
                "for the stream before the fork, or launch again in the child process"
            )


class Stream:
    """A queue of launches with a thread of its own; launches run in the order of their calls.

    The thread never holds the process at its end: what still runs then is cancelled. `memory` is
    that of its device; a stream without one queues launches of any device.
    """

    def __init__(self, memory: DeviceMemory | None = None) -> None:
        self.memory = memory
        self._open_queue()
        _streams.add(self)
        forget_in_child(self)

    def _open_queue(self) -> None:
        self._queue: SimpleQueue[Queued[object] | None] = SimpleQueue()
        self._unfinished: deque[Queued[object]] = deque()
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._last_wait: Callable[[], object] | None = None

    def submit(
        self,
        work: Callable[[], T],
        cancellation: Cancellation | None = None,
        on_wait: Callable[[], object] | None = None,
    ) -> Queued[T]:
        """Queues `work`; `cancellation` stops it while it runs, and `on_wait` is called when the
        host has waited for it."""
        queued = Queued(work, cancellation or Cancellation(), on_wait)
        if len(self._unfinished) >= MOST_QUEUED:
            self._unfinished[-MOST_QUEUED].wait()
        self._collect()
        if self._thread is None:
            self._thread = _start(self._queue)
            weakref.finalize(self, self._queue.put, None).atexit = False
        self._last_wait = on_wait
        self._unfinished.append(queued)  # pyright: ignore[reportArgumentType]
        self._queue.put(queued)  # pyright: ignore[reportArgumentType]
        return queued

    def synchronize(self) -> None:
        """Waits for all that was queued; then raises the first error among it, if any. Ctrl-C
        cancels what it waits for."""
        try:
            for queued in tuple(self._unfinished):
                queued.wait()
        except KeyboardInterrupt:
            self.cancel()
            raise
        if self._last_wait is not None:
            self._last_wait()
        self._collect()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def cancel(self) -> None:
        """Stops the launch that runs and drops those queued after it; each raises LaunchCancelled
        where its results are asked for."""
        for queued in tuple(self._unfinished):
            queued.cancel()

    def _collect(self) -> None:
        """Drops what has ended, but for the first error."""
        while self._unfinished and self._unfinished[0].done():
            error = self._unfinished.popleft().future.exception()
            self._error = self._error or error

    def wait_briefly(self, seconds: float) -> None:
        """Waits for the thread to end what it does, so long at most."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(seconds)

    def forget(self) -> None:
        """Begins anew in a forked child, where the thread is not."""
        self._open_queue()


def _start(queue: SimpleQueue[Queued[object] | None]) -> threading.Thread:
    """Starts the thread of a stream, which does not keep the stream alive."""
    thread = threading.Thread(target=_serve, args=(queue,), name="warploom-stream", daemon=True)
    thread.start()
    return thread


def _serve(queue: SimpleQueue[Queued[object] | None]) -> None:
    while (queued := queue.get()) is not None:
        queued.run()
        del queued


_streams: weakref.WeakSet[Stream] = weakref.WeakSet()


@atexit.register
def _cancel_all() -> None:
    """Cancels what still runs when the process ends."""
    streams = tuple(_streams)
    for stream in streams:
        stream.cancel()
    for stream in streams:
        stream.wait_briefly(LAST_SECONDS)
