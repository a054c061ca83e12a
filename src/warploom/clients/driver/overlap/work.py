"""Defines the work of streams that has been asked for and has not ended, and its order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from warploom.clients.driver.state import Context, state
from warploom.machine.turn import Cancellation

LEGACY = 0
"""The legacy default stream."""


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
    give_up: Callable[[], object]
    cancellation: Cancellation
    waits_for: set[Work] = field(default_factory=set["Work"])
    ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Performs the work in the context that was current when it was asked for, or gives it
        up."""
        state.stack.append(self.context)
        try:
            if self.context.error is None and not self.cancellation.requested:
                self.perform()
            else:
                self.cancellation.request()
                self.give_up()
        finally:
            state.stack.clear()
