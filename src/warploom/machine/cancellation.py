"""The request that a running launch should stop."""

from __future__ import annotations

from warploom.core.errors import LaunchCancelled


class Cancellation:
    """A flag that one thread sets and the thread that runs a launch looks at: compiled code each
    time that it returns to the host, the reference machine before each instruction."""

    __slots__ = ("requested",)

    def __init__(self) -> None:
        self.requested = False

    def request(self) -> None:
        """Ask the launch to stop as soon as it can."""
        self.requested = True

    def check(self) -> None:
        """Raise LaunchCancelled where the launch should stop."""
        if self.requested:
            raise cancellation_error()


def cancellation_error() -> LaunchCancelled:
    """Returns the error of a launch that was stopped."""
    return LaunchCancelled(
        "the launch was cancelled before it ended: its results are incomplete. Launch it again."
    )
