"""Requests that a launch which runs in another thread stops: the flag that both machines poll, and
the error that they raise for it."""

from __future__ import annotations

from warploom.core.errors import LaunchCancelled


class Cancellation:
    """A flag that one thread sets and the thread of a launch polls: compiled code each time that it
    returns to the host or calls it, the reference machine before each instruction."""

    __slots__ = ("requested",)

    def __init__(self) -> None:
        """Begins with no stop requested."""
        self.requested = False

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
        "the launch was cancelled before it ended: its results are incomplete. Launch it again."
    )
