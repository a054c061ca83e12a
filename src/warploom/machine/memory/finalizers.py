"""Provides a lock for data that finalizers of Python objects change: a finalizer never waits for
it, but leaves its change to the thread that holds it.

Python runs finalizers at arbitrary points, including in a call that holds the lock: a finalizer
that waited would deadlock with its own thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock


class FinalizerLock:
    """A mutex that is held by `with`; changes that finalizers request meanwhile (`run_locked`) are
    made when it is released."""

    def __init__(self) -> None:
        """Begins with a free lock and no pending change."""
        self._lock = Lock()
        self._pending: deque[Callable[[], object]] = deque()

    def __enter__(self) -> None:
        """Waits for the lock and acquires it."""
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        """Releases the lock, then calls the changes that were passed to `run_locked` meanwhile."""
        self._lock.release()
        self._run_pending()

    def run_locked(self, change: Callable[[], object]) -> None:
        """Calls `change` with the lock held: now if the lock is free, else its holder does when it
        releases it. Never waits."""
        self._pending.append(change)
        self._run_pending()

    def _run_pending(self) -> None:
        """Calls the pending changes, each with the lock held; leaves them to the holder if the lock
        is taken."""
        # The holder of the lock runs this after releasing it, so that no change is lost.
        while self._pending and self._lock.acquire(blocking=False):
            try:
                if self._pending:
                    self._pending.popleft()()
            finally:
                self._lock.release()
