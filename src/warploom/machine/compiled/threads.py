"""Maintains a pool of threads that run machine code while the caller waits.

Starting a thread lasts longer than many a kernel does; waking an idle one costs a sixth of that.
"""

from __future__ import annotations

import _thread
import os
import time
from collections.abc import Callable

from warploom.machine.compiled.cores import bind

Job = Callable[[], int]
"""A function that a pooled thread runs; it returns a status number."""


class Runner:
    """A pooled thread that runs one job after the other: `borrow`, `start`, `wait_until_idle`, then
    `give_back`."""

    _idle: list[Runner] = []  # noqa: RUF012  (of all runners, on purpose)

    def __init__(self) -> None:
        """Starts the thread, which waits for its first job."""
        self._job: Job | None = None
        self._started = self._ended = 0
        self._thread: int | None = None
        self._bound_from: set[int] | None = None
        self._result = 0
        self._error: BaseException | None = None
        # Two locks as binary semaphores: free means that a job is ready, or done.
        self._job_ready, self._job_done = _thread.allocate_lock(), _thread.allocate_lock()
        self._job_ready.acquire()
        self._job_done.acquire()
        _thread.start_new_thread(self._serve, ())

    @classmethod
    def borrow(cls) -> Runner:
        """Returns an idle runner from the pool, or a new one."""
        try:
            return cls._idle.pop()
        except IndexError:
            return cls()

    def start(self, job: Job, core: int | None = None) -> None:
        """Starts a job in the thread, which must be idle. If `core` is given and the thread has run
        before, so that its id is known, it is bound to that core so that it wakes up there;
        `_serve` restores its cores."""
        if core is not None and self._thread is not None:
            cores_before = bind(self._thread, {core})
            # An interrupt may have ended an earlier `start` after its `bind`: the first mask is the
            # one to restore.
            self._bound_from = self._bound_from or cores_before
        self._job = job
        self._started += 1
        self._job_ready.release()

    def wait_until_idle(self, seconds: float) -> bool:
        """Waits at most `seconds` for the job to end and returns true if it has. Calling it again
        is always correct, even if an interrupt ended the last call early: the numbers of jobs
        decide. The lock only ends the wait, and may be free for a job before."""
        end = time.monotonic() + seconds
        while self._ended < self._started:
            left = end - time.monotonic()
            if left <= 0 or not self._job_done.acquire(timeout=left):
                break
        return self._ended == self._started

    def give_back(self) -> int:
        """Returns the result of the job, which must have ended (`wait_until_idle`), or raises the
        exception that it raised; puts the runner back into the pool."""
        result, error, self._error = self._result, self._error, None
        self._idle.append(self)
        if error is not None:
            raise error
        return result

    def _serve(self) -> None:
        """Runs the jobs that `start` passes, one after the other, forever; the body of the thread.
        Waits for a job, undoes the binding to a core by `start`, and runs the job. Stores its
        result in `_result`, or the exception that it raised, of any kind, in `_error` for
        `give_back` to raise; then counts the job as ended and signals `_job_done`."""
        self._thread = _thread.get_native_id()
        while True:
            self._job_ready.acquire()
            # `start` bound the thread only to choose the core on which it wakes up; from here the
            # system may move it.
            if self._bound_from is not None:
                bind(self._thread, self._bound_from)
                self._bound_from = None
            if self._job is not None:
                try:
                    self._result = self._job()
                # Raised again where the job was started: without a result the caller would wait
                # for ever.
                except BaseException as error:
                    self._error = error
            self._job = None
            self._ended += 1
            if self._job_done.locked():  # else nobody has waited for an earlier job
                self._job_done.release()

    @classmethod
    def forget(cls) -> None:
        """Empties the pool in a forked child process, in which the threads do not exist."""
        cls._idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=Runner.forget)
