"""Serializes kernels of a device: one runs at a time, in the order of the launch calls.

`LaunchLock` is a ticket lock: a launch to a stream draws a ticket when it is called and runs when
all launches with lower tickets have ended, though streams have threads of their own. Host code that
runs in the middle of a kernel cannot launch another one, which would wait for the first: neither
the output callback of printf, which `callback` marks, nor a signal handler in the thread of a
launch. `Cancellation` stops the launch that runs.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Condition, RLock, local
from time import monotonic
from types import FrameType

from warploom.core.errors import LaunchCancelled, LaunchError
from warploom.core.forked import forget_in_child
from warploom.core.interrupts import wait_until
from warploom.core.mutex import Mutex, is_active

RETRY_SECONDS, POLL_SECONDS = 0.05, 0.005
"""After how long a launch that waits for memory looks again, as the host may have written it, and
how often it looks whether the host waits for it."""


NOT_WAITING = -1
"""In place of what a launch has seen, while it is about to look again."""


class Cancellation:
    """A flag that one thread sets and the thread of a launch polls: compiled code each time that it
    returns to the host or calls it, the reference machine before each instruction."""

    requested = False
    awaited = 0
    """Threads of the host that wait for the launch."""
    waits = looked_at_wait = 0
    """How often the host has begun to wait for it, and how often it had when the launch looked at
    memory last."""
    lock: LaunchLock | None = None
    """The lock in whose order the launch of a stream runs; None for others, beside which no other
    can run."""
    changes = 0
    """The launch's changes of memory when it resumed."""
    owner: object = None
    """The launch while it runs, if others can run beside it."""
    occupied: Sequence[int] = ()
    """The slots of its blocks while it waits for memory."""
    on_resume: Callable[[], object] | None = None
    """Called when it resumes, before it runs."""
    crowded_out = 0
    """Launches for whose blocks the device had no room, if it was found to wait for ever."""
    followers = 0
    """Launches without tickets that wait for its end in its stream."""
    queued_after = 0
    """Launches of its stream that wait for its end, if it was found to wait for ever."""

    def begin_wait(self) -> None:
        """Notes that a thread of the host waits for the launch from now on."""
        self.waits += 1
        self.awaited += 1

    def end_wait(self) -> None:
        """Notes that a thread of the host no longer waits for the launch."""
        self.awaited -= 1

    def await_others(self, changes: int, occupied: Sequence[int]) -> bool:
        """Lets launches of other streams run, for a launch whose threads all wait for memory, that
        has changed memory `changes` times and whose blocks have the slots `occupied`. Returns
        whether it is to look again, False if nothing can change what it waits for."""
        self.occupied = occupied
        if self.lock is None or not self.lock.let_others_run(self, changes):
            return False
        self.changes = changes + 1
        if self.on_resume is not None:
            self.on_resume()
        return True

    def request(self) -> None:
        """Requests that the launch stops at its next poll."""
        self.requested = True

    def check(self) -> None:
        """Raises LaunchCancelled if a stop was requested."""
        if self.requested:
            raise cancellation_error()


def cancellation_error() -> LaunchCancelled:
    """Returns the error that a poll raises, or the compiled engine returns, for a launch that was
    stopped before its end."""
    return LaunchCancelled(
        "the launch was canceled before it ended: its results are incomplete. Launch it again."
    )


class _CurrentTicket(local):
    """Holds, per thread, the ticket of the launch that it runs, and its stream; None and 0 if it
    runs none, or one without a ticket."""

    number: int | None = None
    stream = 0


class LaunchLock:
    """A mutex over kernel execution that records which launch holds it.

    `with` holds it for work that is not a launch. Launches that have a ticket hold it in the order
    of their tickets, because an earlier launch of one stream may write memory that a later launch
    of another stream polls.
    """

    def __init__(self) -> None:
        """Starts unlocked, and registers the lock to be reset (`forget`) in forked processes."""
        self._current = _CurrentTicket()
        self.forget()
        forget_in_child(self)

    def issue(self, stream: object) -> int:
        """Records a new ticket for a launch of a stream, and returns it: a number higher than those
        of all launches so far. The launch has to `leave` it, or no later ticket is served."""
        with self._changed:
            self._issued += 1
            self._tickets[self._issued] = id(stream)
            return self._issued

    def let_others_run(self, launch: Cancellation, changes: int) -> bool:
        """Releases the lock, which this thread's launch holds, and removes its ticket, until
        another launch has ended or RETRY_SECONDS have passed; then acquires the lock again. Returns
        whether the launch is to look at memory again. It is not once the host waits for it, it has
        looked since, and no other launch can run: those of its own stream wait for its end, and
        others wait for memory as it does. Sets the launch's `queued_after` and `crowded_out` to the
        numbers of launches that have to follow it, and that do not fit beside it."""
        number, stream = self._current.number, self._current.stream
        with self._changed:
            if changes != launch.changes:
                self._progress += 1
            seen = self._progress
            if number is not None:
                self._tickets.pop(number, None)
            self._waiting[launch] = stream, seen
            self._changed.notify_all()
        self._lock.release()
        looks_again, until = True, monotonic() + RETRY_SECONDS
        try:
            with self._changed:
                # While the host waits for this launch, it does not write what that waits for.
                while self._progress == seen and (launch.awaited or monotonic() < until):
                    if launch.requested or (launch.awaited and self._all_wait()):
                        # The host may have written between the last look and its wait.
                        looks_again = launch.looked_at_wait != launch.waits
                        break
                    self._changed.wait(POLL_SECONDS)
                launch.crowded_out = sum(not other.occupied for other in self._waiting)
                launch.queued_after = launch.followers + sum(
                    ticket == stream for ticket in self._tickets.values()
                )
                launch.looked_at_wait = launch.waits
                # Until it holds the lock again, others do not take it for one that waits.
                self._waiting[launch] = stream, NOT_WAITING
        finally:
            wait_until(lambda seconds: self._lock.acquire(timeout=seconds))
            self._holder = launch
            with self._changed:
                del self._waiting[launch]
        return looks_again

    @property
    def has_waiting(self) -> bool:
        """Returns whether a launch waits for memory."""
        return bool(self._waiting)

    @property
    def waiting(self) -> list[Cancellation]:
        """Returns the launches that wait for memory, while the caller holds the lock."""
        return list(self._waiting)

    def _all_wait(self) -> bool:
        """Returns whether no launch runs, none can begin, and those that wait for memory have
        looked since it last changed."""
        streams = {stream for stream, _ in self._waiting.values()}
        begun = all(seen == self._progress for _, seen in self._waiting.values())
        if not begun or self._is_running() or not self._expected <= self._waiting.keys():
            return False
        return streams.issuperset(self._tickets.values())

    def _is_running(self) -> bool:
        """Returns whether a launch of another thread runs."""
        if not self._lock.acquire(blocking=False):
            return True
        self._lock.release()
        return False

    def expect(self, launch: Cancellation) -> None:
        """Counts a launch without a ticket, or other work with a `Cancellation` of its own, among
        what may still run and change memory, until it is dismissed."""
        with self._changed:
            self._expected.add(launch)

    def dismiss(self, launch: Cancellation) -> None:
        """Notes that an expected launch, or other work, has ended (`expect`), and wakes the threads
        that wait."""
        with self._changed:
            self._expected.discard(launch)
            self._changed.notify_all()

    def await_standstill(self, launch: Cancellation, has_ended: Callable[[], bool]) -> None:
        """Waits until an expected launch of another thread has ended, or has found that it waits
        for memory which nothing has changed since."""

        def stands() -> bool:
            _, seen = self._waiting.get(launch, (0, NOT_WAITING))
            return seen == self._progress or has_ended()

        with self._changed:
            wait_until(lambda seconds: self._changed.wait_for(stands, seconds))

    def await_ticket(self, number: int) -> None:
        """Waits until every launch with a lower ticket has left, then records `number` as the
        ticket of this thread's launch. Ctrl-C stops the wait (KeyboardInterrupt) and cancels the
        launch that is running. Raises LaunchError in the middle of a launch of this thread."""
        refuse_in_launch("launch a kernel")
        try:
            with self._changed:
                wait_until(
                    lambda seconds: self._changed.wait_for(
                        lambda: self._next_ticket(number) >= number, seconds
                    )
                )
        except KeyboardInterrupt:
            if self._holder is not None:
                self._holder.request()
            raise
        self._current.number, self._current.stream = number, self._tickets[number]

    def _next_ticket(self, last: int) -> int:
        """Returns the lowest ticket of a stream without a launch that waits for memory; `last` if
        there is none. Tickets are issued in rising order and removed in any."""
        streams = {stream for stream, _ in self._waiting.values()}
        return next((n for n, stream in self._tickets.items() if stream not in streams), last)

    def leave(self, number: int | None) -> None:
        """Removes a ticket, so that launches with higher ones may run, and wakes those that wait;
        this thread's launch then counts as one without a ticket. Does nothing for None."""
        if number is None:
            return
        self._current.number, self._current.stream = None, 0
        with self._changed:
            self._tickets.pop(number, None)
            self._changed.notify_all()

    def acquire(
        self, cancellation: Cancellation | None = None, holder: FrameType | None = None
    ) -> None:
        """Acquires the lock, in no order among those that wait: waits until no kernel runs.
        `cancellation`, stored while the lock is held, is the flag by which Ctrl-C in a waiting
        thread stops the launch that holds it; `holder` is the frame of the function that holds it
        then, the caller's if None.

        Ctrl-C stops the wait (KeyboardInterrupt) and cancels the launch that holds the lock. Raises
        LaunchError in the middle of a launch of this thread, which would wait for itself.
        """
        refuse_in_launch("launch a kernel")
        # Of a launch of this thread that an exception ended in the midst of `acquire` or
        # `give_back`.
        self._release_own()
        # From before the lock is acquired until after it is released: a signal handler that comes
        # between would wait for its own thread.
        _thread.launch = holder or _caller()
        try:
            if not self._lock.acquire(blocking=False):
                wait_until(lambda seconds: self._lock.acquire(timeout=seconds))
        except BaseException as error:
            self._release_own()
            _thread.launch = None
            # The thread that runs the kernel cannot receive Ctrl-C, so the waiting thread passes it
            # on.
            if isinstance(error, KeyboardInterrupt) and self._holder is not None:
                self._holder.request()
            raise
        self._holder = cancellation

    def give_back(self) -> None:
        """Releases the lock, and removes the ticket of this thread's launch if it has one."""
        self._holder = None
        # Before the release, so that no launch that waits for memory misses what this one wrote.
        self._progress += 1
        self._lock.release()
        _thread.launch = None
        self.leave(self._current.number)

    def _release_own(self) -> None:
        """Releases the lock if the calling thread has it."""
        if self._lock._is_owned():  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
            self._holder = None
            self._lock.release()

    def __enter__(self) -> None:
        """Acquires the lock (`acquire`), for work that Ctrl-C cannot cancel."""
        self.acquire(holder=_caller())

    def __exit__(self, *_: object) -> None:
        """Releases the lock (`give_back`), and lets an exception propagate."""
        self.give_back()

    def forget(self) -> None:
        """Sets the lock to its initial state: unlocked, no tickets, numbers from 1. Called when it
        is made, and in a forked child process, in which the threads that hold it do not exist."""
        self._lock = RLock()
        tickets = Mutex("queue a launch", held_by_forks=False)
        self._changed = Condition(tickets)  # pyright: ignore[reportArgumentType]  (any lock will do)
        self._holder: Cancellation | None = None
        self._tickets: OrderedDict[int, int] = OrderedDict()  # the lowest first, to their streams
        self._waiting: dict[Cancellation, tuple[int, int]] = {}
        """By launch that waits for memory, its stream, and `_progress` when it looked last."""
        self._expected: set[Cancellation] = set()
        """Launches that have no ticket and may still run."""
        self._progress = 0
        """Counts launches that have ended, and times that one changed memory and then waited. Only
        who holds the lock counts."""
        self._issued = 0


def _caller() -> FrameType:
    """Returns the frame of the caller of the function that calls this one."""
    # In a variable of its own, a frame would refer to itself, and keep all objects of its callers
    # until a garbage collection.
    return sys._getframe(2)  # pyright: ignore[reportPrivateUsage]


class _Thread(local):
    """Holds, per thread, the frame of the function that launches a kernel, and whether the thread
    is in the middle of user code that the kernel called."""

    launch: FrameType | None = None
    calls_back = False


_thread = _Thread()


class callback:  # noqa: N801  (used as `with callback():`)
    """Marks the `with` body as user code that this thread runs in the middle of a kernel."""

    def __enter__(self) -> None:
        """Marks the calling thread as in a callback (`refuse_in_launch`)."""
        _thread.calls_back = True

    def __exit__(self, *_: object) -> None:
        """Removes the mark from the calling thread, and lets an exception propagate."""
        _thread.calls_back = False


def refuse_in_launch(action: str) -> None:
    """Raises LaunchError if the calling thread is in the middle of a launch, or of a `callback` of
    one, so that waiting for a kernel would deadlock; `action` is a verb phrase for the message
    ("launch a kernel")."""
    if _thread.calls_back:
        raise LaunchError(
            f"cannot {action} from the output callback: the printing kernel waits for the "
            f"callback to return. Save the text in the callback, and {action} after the launch has "
            "ended."
        )
    if _thread.launch is not None and is_active(_thread.launch):
        raise LaunchError(
            f"cannot {action} from a signal handler or a finalizer while this thread is running a "
            "kernel: the kernel waits for the handler to return. Set a flag in the handler, and "
            f"{action} after the launch has ended. To stop the launch itself, press Ctrl-C."
        )
