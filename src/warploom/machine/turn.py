"""The lock under which kernels of a device run: one at a time."""

from __future__ import annotations

from threading import Lock, local

from warploom.core.errors import LaunchError
from warploom.core.forked import forget_in_child
from warploom.machine.cancellation import Cancellation


class Turn:
    """A lock that knows which launch holds it; `with` holds it for work that is no launch."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._holder: Cancellation | None = None
        forget_in_child(self)

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

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def forget(self) -> None:
        """Frees the turn in a forked child: the thread that held it is not there."""
        self._lock, self._holder = Lock(), None


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
