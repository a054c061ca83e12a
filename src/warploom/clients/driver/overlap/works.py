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
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import contextmanager
from functools import partial

from warploom.clients.driver.overlap import held
from warploom.clients.driver.overlap.work import Queue, Work
from warploom.clients.driver.state import state
from warploom.clients.registry import nothing
from warploom.core.interrupts import wait_until
from warploom.core.mutex import Mutex
from warploom.host.stream import LAST_SECONDS
from warploom.machine.compiled.threads import Runner
from warploom.machine.turn import Cancellation

_lock = Mutex("submit work")
_unfinished: list[Work] = []
"""In the order in which they were asked for."""
_runners: list[Runner] = []
"""The threads that were given works to run."""


def has_any() -> bool:
    """Returns whether any work is unfinished: a kernel that is launched now may not fit on the
    device beside that."""
    return bool(_unfinished)


def defers(queue: Queue) -> bool:
    """Returns whether work of a stream cannot be performed now."""
    return bool(_unfinished and unfinished_before(queue)) or held.holds_work()


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
    give_up: Callable[[], object] = nothing,
) -> Work:
    """Adds work to a stream, which begins when the unfinished works before it, and those of
    `after`, have ended. `perform` raises nothing that the program has to see; `give_up` is called
    in its place if the context has failed, or the work was cancelled."""
    work = Work(queue, state.current(), perform, give_up, cancellation or Cancellation())
    work.cancellation.lock = state.device.turn
    with _lock:
        if not _unfinished:
            atexit.unregister(finish)
            atexit.register(finish)
        work.waits_for = {one for one in _unfinished if one.queue.precedes(queue)}
        # Not by `ended`, which is set only after a work has let go those that wait for it.
        work.waits_for.update(one for one in after if one in _unfinished)
        for earlier in work.waits_for:
            if cancellation is not None and earlier.queue.key == queue.key:
                earlier.cancellation.followers += 1
        _unfinished.append(work)
        ready = not work.waits_for
    if ready:
        _begin_unless_held(work)
    return work


def _begin_unless_held(work: Work) -> None:
    """Begins a work that has nothing to follow any more, or adds it to those that are held."""
    if held.holds_work():
        held.hold(work, begin)
    else:
        begin(work)


def begin(work: Work) -> None:
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
            _begin_unless_held(follower)
        work.ended.set()
        state.device.turn.dismiss(work.cancellation)
    return 0


def let_begin(work: Work) -> None:
    """Waits until a work has ended, waits for memory in vain, or has to follow one that does."""
    if work.waits_for or held.has(work):
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
    with _awaited(chosen) as closure:
        while left := [work for work in chosen if not work.ended.is_set()]:
            if not _begin_held(closure):
                wait_until(lambda seconds: left[0].ended.wait(seconds) or held.has_any())


def let_some_run() -> None:
    """Begins one of the works that are held, for a host that asks again and again whether work has
    ended."""
    _begin_held(())


def _begin_held(wanted: Collection[Work]) -> bool:
    """Begins one of the works that are held, and waits until it has ended or waits for memory;
    returns False if none is held."""
    work = held.take_next(wanted)
    if work is None:
        return False
    begin(work)
    let_begin(work)
    return True


@contextmanager
def _awaited(works: Iterable[Work]) -> Generator[set[Work]]:
    """Notes in some works, and in all that come before them, that the host waits for their end;
    gives all of these."""
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
        yield closure
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
            f"warploom: the program ended before {len(left)} of its launches and copies had "
            "finished. To get their results, call cudaDeviceSynchronize() before the program ends",
            file=sys.stderr,
            flush=True,
        )
