"""Provides a mutex that neither a signal handler nor a forked process can wait for in vain.

Python runs signal handlers in the main thread, between two instructions of what runs there. One
that acquires a lock which its own thread holds would wait for itself: `Mutex` raises LaunchError
instead. A forked process has only the thread that forked it: a lock that another thread held stays
locked there, and what it protects stays half changed. A fork therefore waits until each mutex that
is `held_by_forks` is free, holds all of them, and both processes release theirs. These protect
short work, which acquires no other mutex; a kernel that runs is none of it.
"""

from __future__ import annotations

import os
import weakref
from collections import deque
from collections.abc import Callable
from threading import Lock, RLock, get_ident

from warploom.core.errors import LaunchError


class Mutex:
    """A lock that one thread holds, for `work`, a verb phrase that messages name."""

    def __init__(self, work: str, *, held_by_forks: bool = True) -> None:
        """Starts unlocked; `held_by_forks` lets a fork wait until the mutex is free."""
        self._work, self._lock = work, Lock()
        self._owner = 0
        if held_by_forks:
            _held_by_forks.add(self)

    def acquire(self, blocking: bool = True) -> bool:
        """Acquires the lock, waiting for another thread's release if `blocking`; returns whether it
        is acquired. Raises LaunchError instead of waiting for the calling thread itself."""
        if blocking and self.is_owned:
            raise LaunchError(
                f"cannot {self._work} here: this thread was interrupted, by a signal handler or a"
                f" finalizer, while it did the same. Set a flag there, and {self._work} later."
            )
        acquired = self._lock.acquire(blocking)
        if acquired:
            self._owner = get_ident()
        return acquired

    def release(self) -> None:
        """Releases the lock."""
        self._owner = 0
        self._lock.release()

    @property
    def is_owned(self) -> bool:
        """Returns whether the calling thread holds the lock."""
        return self._owner == get_ident()

    def __enter__(self) -> None:
        """Acquires the lock (`acquire`)."""
        self.acquire()

    def __exit__(self, *_: object) -> None:
        """Releases the lock, and lets an exception propagate."""
        self.release()


class FinalizerLock(Mutex):
    """A mutex for data that finalizers of Python objects change. Python runs them anywhere, even
    where their thread holds the mutex: changes that they request meanwhile (`run_locked`) are made
    when it is released."""

    def __init__(self, work: str) -> None:
        """Begins with a free lock and no pending change."""
        super().__init__(work)
        self._pending: deque[Callable[[], object]] = deque()

    def __exit__(self, *_: object) -> None:
        """Releases the lock, then calls the changes that were passed to `run_locked` meanwhile."""
        self.release()
        self._run_pending()

    def run_locked(self, change: Callable[[], object]) -> None:
        """Calls `change` with the lock held: now if the lock is free, else its holder does when it
        releases it. Never waits."""
        self._pending.append(change)
        self._run_pending()

    def _run_pending(self) -> None:
        """Calls the pending changes, each with the lock held; leaves them to the holder if another
        thread or an interrupted call has it."""
        # The holder of the lock runs this after releasing it, so that no change is lost.
        while self._pending and self.acquire(blocking=False):
            try:
                if self._pending:
                    self._pending.popleft()()
            finally:
                self.release()


_held_by_forks: weakref.WeakSet[Mutex] = weakref.WeakSet()
_reentrant: list[RLock] = []
_fork_holds: list[Mutex | RLock] = []
"""What the fork in progress has acquired; the interpreter forks in one thread at a time."""


def hold_in_forks(lock: RLock) -> None:
    """Has forks hold a lock of a library as they do a mutex. A thread that has it acquires no
    mutex."""
    _reentrant.append(lock)


def _before_fork() -> None:
    """Acquires the mutexes that the forking thread does not hold, then the locks of libraries."""
    mutexes = [each for each in tuple(_held_by_forks) if not each.is_owned]
    for each in (*mutexes, *_reentrant):
        each.acquire()
        _fork_holds.append(each)


def _after_fork() -> None:
    """Releases, in either process, what `_before_fork` acquired."""
    while _fork_holds:
        _fork_holds.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
