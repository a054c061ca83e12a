"""Threads in which machine code runs while the caller waits, kept for the next launch.

To start one costs more than many a kernel takes; to wake one that waits costs a sixth of that.
"""

from __future__ import annotations

import _thread
import os
from collections.abc import Callable

from warploom.machine.compiled.cores import bind

Job = Callable[[], int]


class Runner:
    """A thread that runs one job after the other; `borrow` gives one."""

    _idle: list[Runner] = []  # noqa: RUF012  (of all runners, on purpose)

    def __init__(self) -> None:
        self._job: Job | None = None
        self._thread: int | None = None
        self._bound_from: set[int] | None = None
        self._result = 0
        self._job_ready, self._job_done = _thread.allocate_lock(), _thread.allocate_lock()
        self._job_ready.acquire()
        self._job_done.acquire()
        _thread.start_new_thread(self._serve, ())

    @classmethod
    def borrow(cls) -> Runner:
        """Return one that has nothing to do."""
        try:
            return cls._idle.pop()
        except IndexError:
            return cls()

    def start(self, job: Job, core: int | None = None) -> None:
        """Let it run a job, which must not raise, from a core on if one is given."""
        self._job_done.acquire(blocking=False)
        if core is not None and self._thread is not None:
            before = bind(self._thread, {core})
            self._bound_from = self._bound_from or before  # an interrupt may have come between
        self._job = job
        self._job_ready.release()

    def wait_until_idle(self, seconds: float) -> bool:
        """Returns whether it has nothing to do any more, after waiting so long at most. To ask
        again is right, wherever an interrupt broke in."""
        return self._job is None or self._job_done.acquire(timeout=seconds)

    def give_back(self) -> int:
        """Returns what the job that has ended gave; the thread is free for others now."""
        result = self._result
        self._idle.append(self)
        return result

    def _serve(self) -> None:
        self._thread = _thread.get_native_id()
        while True:
            self._job_ready.acquire()
            if self._bound_from is not None:
                bind(self._thread, self._bound_from)
                self._bound_from = None
            if self._job is not None:
                self._result = self._job()
            self._job = None
            self._job_done.release()

    @classmethod
    def forget(cls) -> None:
        """Forget the threads of a process, which are not in what is forked from it."""
        cls._idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=Runner.forget)
