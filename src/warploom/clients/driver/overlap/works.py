"""Performs what cannot be performed when the program asks for it: kernels that may wait for memory,
and the work that has to follow one of them.

A `Work` runs in a thread of its own once the unfinished works that it has to follow have ended:
those of its stream, those of blocking streams if its stream is the legacy default stream (and the
other way round; CUDA Programming Guide, "Default stream"), and those of events that its stream
waits for.
"""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Callable, Generator, Hashable, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from warploom.clients.driver.state import Context, state
from warploom.core.interrupts import wait_until
from warploom.core.mutex import Mutex
from warploom.host.stream import LAST_SECONDS
from warploom.machine.compiled.threads import Runner
from warploom.machine.turn import Cancellation

LEGACY = 0


@dataclass(frozen=True)
class Queue:
    """Identifies a stream by what orders its work; `blocking` streams and the legacy default stream
    wait for each other."""

    key: Hashable
    blocking: bool = True

    def precedes(self, other: Queue) -> bool:
        """Returns whether work of this stream comes before later work of another one."""
        if self.key == other.key:
            return True
        return (self.key == LEGACY and other.blocking) or (other.key == LEGACY and self.blocking)


DEFAULT_QUEUE = Queue(LEGACY)


@dataclass(eq=False)
class Work:
    """Work of a stream that has been asked for and has not ended. `waits_for` are the works that it
    follows; `cancellation` that of its kernel, where it launches one."""

    queue: Queue
    context: Context
    perform: Callable[[], object]
    cancellation: Cancellation = field(default_factory=Cancellation)
    waits_for: set[Work] = field(default_factory=set["Work"])
    ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Performs the work in the context that was current when it was asked for."""
        state.stack.append(self.context)
        try:
            if self.context.error is None and not self.cancellation.requested:
                self.perform()
        finally:
            state.stack.clear()


_lock = Mutex("ask for work")
_unfinished: list[Work] = []
"""In the order in which they were asked for."""
_runners: list[Runner] = []
"""The threads that were given works to run."""


def unfinished_before(queue: Queue | None) -> list[Work]:
    """Returns the unfinished works that work of a stream has to follow; all for None."""
    if not _unfinished:
        return []
    with _lock:
        return [work for work in _unfinished if queue is None or work.queue.precedes(queue)]


def unfinished_in(queue: Queue) -> list[Work]:
    """Returns the unfinished works of a stream itself."""
    return [work for work in unfinished_before(queue) if work.queue.key == queue.key]


def add(
    queue: Queue,
    perform: Callable[[], object],
    cancellation: Cancellation | None = None,
    after: Iterable[Work] = (),
) -> Work:
    """Adds work to a stream, which begins when the unfinished works before it, and those of
    `after`, have ended. `perform` raises nothing that the program has to see."""
    work = Work(queue, state.current(), perform, cancellation or Cancellation())
    work.cancellation.lock = state.device.turn
    with _lock:
        if not _unfinished:
            atexit.unregister(finish)
            atexit.register(finish)
        work.waits_for = {one for one in _unfinished if one.queue.precedes(queue)}
        work.waits_for.update(one for one in after if not one.ended.is_set())
        for earlier in work.waits_for:
            if cancellation is not None and earlier.queue.key == queue.key:
                earlier.cancellation.followers += 1
        _unfinished.append(work)
        ready = not work.waits_for
    if ready:
        _begin(work)
    return work


def _begin(work: Work) -> None:
    """Starts the thread of a work; the device counts it among those that may still run until it has
    ended, or waits for memory."""
    state.device.turn.expect(work.cancellation)
    with _lock:
        for runner in [one for one in _runners if one.wait_until_idle(0)]:
            _runners.remove(runner)
            runner.give_back()
        _runners.append(Runner.borrow())
        _runners[-1].start(partial(_serve, work))


def _serve(work: Work) -> int:
    """Runs a work in a thread of the pool, then begins those that had to wait for it alone."""
    try:
        work.run()
    finally:
        with _lock:
            _unfinished.remove(work)
            followers = [one for one in _unfinished if work in one.waits_for]
            for follower in followers:
                follower.waits_for.discard(work)
            ready = [one for one in followers if not one.waits_for]
        # Before this work is dismissed: else nothing seemed to run for a moment, and a kernel that
        # waits for a follower would be taken for one that waits for ever.
        for follower in ready:
            _begin(follower)
        work.ended.set()
        state.device.turn.dismiss(work.cancellation)
    return 0


def let_begin(work: Work) -> None:
    """Waits until a work has ended, waits for memory in vain, or has to follow one that does."""
    if any(not earlier.ended.is_set() for earlier in tuple(work.waits_for)):
        return
    try:
        state.device.turn.await_standstill(work.cancellation, work.ended.is_set)
    except KeyboardInterrupt:
        work.cancellation.request()
        raise


def host_waits_for(works: Iterable[Work]) -> None:
    """Waits, as the host, until some works have ended; a kernel among them, or before them, that
    can never go on ends with a deadlock then. Ctrl-C cancels them."""
    chosen = list(works)
    if not chosen:
        return
    with _awaited(chosen):
        for work in chosen:
            wait_until(work.ended.wait)


@contextmanager
def _awaited(works: Iterable[Work]) -> Generator[None]:
    """Notes in some works, and in all that come before them, that the host waits for their end."""
    pending, closure = list(works), set[Work]()
    with _lock:
        while pending:
            work = pending.pop()
            if work not in closure:
                closure.add(work)
                pending.extend(work.waits_for)
    for work in closure:
        work.cancellation.begin_wait()
    try:
        yield
    except KeyboardInterrupt:
        for work in closure:
            work.cancellation.request()
        raise
    finally:
        for work in closure:
            work.cancellation.end_wait()


def finish() -> None:
    """Cancels what has not ended when the process ends, as a GPU does, and says so."""
    left = unfinished_before(None)
    for work in left:
        work.cancellation.request()
    for work in left:
        work.ended.wait(LAST_SECONDS)
    if left:
        print(
            f"warploom: the program ended while {len(left)} of its launches and copies had not:"
            f" call cudaDeviceSynchronize() before the end to have their results",
            file=sys.stderr,
            flush=True,
        )
