"""A lock for what finalizers of Python objects change.

Python collects garbage wherever it likes, in the midst of a call that holds the lock too: a
finalizer that waited for the lock would wait for its own thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock


class FinalizerLock:
    """A lock that is held by `with`; what finalizers ask for is done once it is free."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._pending: deque[Callable[[], object]] = deque()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        self._run_pending()

    def run_locked(self, job: Callable[[], object]) -> None:
        """Call `job` with the lock held: now, or as soon as whoever holds it lets go."""
        self._pending.append(job)
        self._run_pending()

    def _run_pending(self) -> None:
        # Whoever holds the lock looks here after letting go, so that nothing is forgotten.
        while self._pending and self._lock.acquire(blocking=False):
            try:
                if self._pending:
                    self._pending.popleft()()
            finally:
                self._lock.release()
