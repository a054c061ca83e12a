"""The lock under which kernels of a device run: one at a time, in the order of their calls."""

from __future__ import annotations

from collections import OrderedDict
from threading import Condition, Lock, local

from warploom.core.errors import LaunchError
from warploom.core.forked import forget_in_child
from warploom.machine.cancellation import Cancellation


class _CurrentTicket(local):
    """Has the place of the launch that the thread runs, None where it runs none or has none."""

    number: int | None = None


class LaunchLock:
    """A lock that knows which launch holds it; `with` holds it for work that is no launch. Launches
    that have a place take it one after the other: one of a stream may change what a later one of
    another stream waits for in memory."""

    def __init__(self) -> None:
        self._current = _CurrentTicket()
        self.forget()
        forget_in_child(self)

    def issue(self) -> int:
        """Return a place behind all launches so far. Its launch has to `leave` it."""
        with self._changed:
            self._issued += 1
            self._tickets[self._issued] = None
            return self._issued

    def await_ticket(self, number: int) -> None:
        """Wait until all launches before a place have run, or have left theirs; from here on this
        thread runs its launch. Ctrl-C cancels the launch that runs."""
        refuse_in_callback("launch a kernel")
        try:
            with self._changed:
                self._changed.wait_for(lambda: next(iter(self._tickets), number) >= number)
        except KeyboardInterrupt:
            if self._holder is not None:
                self._holder.request()
            raise
        self._current.number = number

    def leave(self, number: int | None) -> None:
        """Let those behind a place go on, if there is one."""
        if number is None:
            return
        self._current.number = None
        with self._changed:
            self._tickets.pop(number, None)
            self._changed.notify_all()

    def take(self, cancellation: Cancellation | None = None) -> None:
        """Waits until no kernel runs. `cancellation` stops the launch that takes the turn.

        Ctrl-C while it waits cancels the launch that it waits for. Raises LaunchError in a
        callback of the kernel that runs, which would wait for itself.
        """
        refuse_in_callback("launch a kernel")
        try:
            self._lock.acquire()
        except KeyboardInterrupt:
            if self._holder is not None:
                self._holder.request()
            raise
        self._holder = cancellation

    def give_back(self) -> None:
        """Lets the next one run."""
        self._holder = None
        self._lock.release()
        self.leave(self._current.number)

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def forget(self) -> None:
        """Frees the turn in a forked child: the thread that held it is not there."""
        self._lock, self._changed = Lock(), Condition()
        self._holder: Cancellation | None = None
        self._tickets: OrderedDict[int, None] = OrderedDict()  # the lowest first
        self._issued = 0


class _Callback(local):
    """Set in the thread that runs the user's code in the middle of a kernel."""

    running = False


_callback = _Callback()


class callback:  # noqa: N801  (used as `with callback():`)
    """Marks the user's code that runs in the middle of a kernel, in this thread."""

    def __enter__(self) -> None:
        _callback.running = True

    def __exit__(self, *_: object) -> None:
        _callback.running = False


def refuse_in_callback(action: str) -> None:
    """Raises LaunchError where the calling code runs in the middle of a kernel."""
    if _callback.running:
        raise LaunchError(
            f"cannot {action} from the output callback: the kernel that prints waits for the"
            f" callback to return. Keep the text, and {action} after the launch has ended."
        )
