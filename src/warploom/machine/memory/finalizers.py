"""Provides a lock for data that finalizers of Python objects change.

Python runs finalizers at arbitrary points, including in a call that holds the lock: a finalizer
that waited for the lock would deadlock with its own thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock


class FinalizerLock:
    """A lock that is held by `with`; changes that finalizers request meanwhile are made when it is
    released."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._pending: deque[Callable[[], object]] = deque()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        self._run_pending()

    def run_locked(self, change: Callable[[], object]) -> None:
        """Calls `change` with the lock held: now, or as soon as the current holder releases it."""
        self._pending.append(change)
        self._run_pending()

    def _run_pending(self) -> None:
        """Makes the pending changes, unless another thread holds the lock: that thread does it when
        it releases the lock."""
        # The holder of the lock runs this after releasing it, so that no change is lost.
        while self._pending and self._lock.acquire(blocking=False):
            try:
                if self._pending:
                    self._pending.popleft()()
            finally:
                self._lock.release()
