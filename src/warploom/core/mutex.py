"""Provides a mutex that neither a signal handler nor a forked process can wait for in vain.

Python runs signal handlers in the main thread, between two instructions of what runs there. One
that acquires a lock which its own thread holds would wait for itself: `Mutex` raises LaunchError
instead. A forked process has only the thread that forked it: a lock that another thread held stays
locked there, and what it protects stays half changed. A fork therefore waits until each mutex that
is `held_by_forks` is free, holds all of them, and both processes release theirs. These protect
short work, which acquires no other mutex; a kernel that runs is none of it.

A handler may raise an exception, as that of Ctrl-C does, and also between two instructions of
`acquire` or `release`. The lock then stays locked, though no function uses it. The next one of its
thread that acquires the mutex notices, as no frame of its stack does, and unlocks it first.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from inspect import currentframe
from threading import RLock
from types import FrameType

from warploom.core.errors import LaunchError
from warploom.core.imports import wait_for_imports


class Mutex:
    """A lock that one thread holds, for `work`, a verb phrase that messages name."""

    def __init__(self, work: str, *, held_by_forks: bool = True) -> None:
        """Starts unlocked; `held_by_forks` lets a fork wait until the mutex is free."""
        # A thread never waits for a reentrant lock that it holds, wherever it is interrupted: a
        # handler that runs before `_is_held` is set, or after it is cleared, does all of its work
        # before or after that of its thread.
        self._work, self._lock, self._is_held = work, RLock(), False
        self._holder: FrameType | None = None
        if held_by_forks:
            _held_by_forks.add(self)

    def acquire(self, blocking: bool = True) -> bool:
        """Acquires the lock, waiting for another thread's release if `blocking`; returns whether it
        is acquired. Raises LaunchError instead of waiting for the calling thread itself."""
        caller = _caller()
        if self._lock._is_owned() and not self._is_used_by(caller):  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
            self._unlock()
        if not self._lock.acquire(blocking):
            return False
        if not self._is_held:
            self._holder, self._is_held = caller, True
            return True
        self._lock.release()
        if not blocking:
            return False
        raise LaunchError(
            f"cannot {self._work} here: a signal handler or a finalizer interrupted this thread "
            f"during the same operation. Set a flag in the handler, and {self._work} later."
        )

    def release(self) -> None:
        """Releases the lock."""
        self._holder, self._is_held = None, False
        self._lock.release()

    # What `threading.Condition` calls where a lock has it: after a wait, the mutex is held again by
    # the function that held it before, not by the one that waits for it.

    def _is_owned(self) -> bool:
        """Returns whether the calling thread holds the mutex."""
        return self._is_held and self._lock._is_owned()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]

    def _release_save(self) -> FrameType | None:
        """Releases the lock, and returns who held it."""
        holder = self._holder
        self.release()
        return holder

    def _acquire_restore(self, holder: FrameType | None) -> None:
        """Acquires the lock for the function that held it."""
        self.acquire()
        self._holder = holder

    def _is_used_by(self, frame: FrameType | None) -> bool:
        """Returns whether a frame, or one that it returns to, holds the mutex, or acquires or
        releases it; or a fork in progress does."""
        if _fork_holds:
            return True
        while frame is not None:
            if frame is self._holder:
                return True
            if frame.f_code.co_filename == __file__ and frame.f_locals.get("self") is self:
                return True
            frame = frame.f_back
        return False

    def _unlock(self) -> None:
        """Releases the lock, which the calling thread has, as often as it has acquired it."""
        self._holder, self._is_held = None, False
        while self._lock._is_owned():  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
            self._lock.release()

    def locked(self) -> bool:
        """Returns whether a thread holds the lock. `threading.Condition` has a lock's method of
        this name as its own from Python 3.14 on."""
        return self._is_held

    def hold(self) -> RLock:
        """Waits until no other thread holds the mutex, and excludes others until the lock that it
        returns is released; the calling thread may hold the mutex."""
        self._lock.acquire()
        return self._lock

    def __enter__(self) -> None:
        """Acquires the lock (`acquire`)."""
        self.acquire()

    def __exit__(self, *_: object) -> None:
        """Releases the lock, and lets an exception propagate."""
        self.release()


def _caller() -> FrameType | None:
    """Returns the innermost frame of the calling thread that is neither of this module nor of
    `threading`."""
    frame = currentframe()
    while frame is not None and frame.f_code.co_filename in (__file__, threading.__file__):
        frame = frame.f_back
    return frame


def is_active(frame: FrameType) -> bool:
    """Returns whether a frame is on the stack of the calling thread."""
    active = currentframe()
    while active is not None and active is not frame:
        active = active.f_back
    return active is not None


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
_fork_holds: list[RLock] = []
"""What the fork in progress has acquired; the interpreter forks in one thread at a time."""


def hold_in_forks(lock: RLock) -> None:
    """Has forks hold a lock of a library as they do a mutex. A thread that has it acquires no
    mutex."""
    _reentrant.append(lock)


def _before_fork() -> None:
    """Waits for other threads' imports, which may need any lock; then excludes them from the
    mutexes, and from the locks of libraries."""
    wait_for_imports()
    _fork_holds.extend(mutex.hold() for mutex in tuple(_held_by_forks))
    for lock in _reentrant:
        lock.acquire()
        _fork_holds.append(lock)


def _after_fork() -> None:
    """Releases, in either process, what `_before_fork` acquired."""
    while _fork_holds:
        _fork_holds.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
