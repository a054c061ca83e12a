"""Runs parts of a launch in compiled code to their ends, one in the calling thread and others in
pooled threads.

Machine code returns to the host at least every `pace.LONGEST` seconds or so, so that a keyboard
interrupt or a cancellation is handled between two calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat

from warploom.core.interrupts import interrupts_held, let_interrupts_through
from warploom.machine.compiled.cores import other_cores
from warploom.machine.compiled.threads import Job, Runner
from warploom.machine.compiled.work import WorkerLaunch
from warploom.machine.turn import Cancellation

Progress = Callable[[int, int], None]
"""A callback that is called now and then while a kernel runs, with the numbers of blocks done and
of all blocks."""

Report = Callable[[], None]
"""A callback that is called at each pause of a launch."""

POLL_SECONDS = 0.1


class PooledThreads:
    """Pooled threads that run jobs of one launch beside the calling thread, which has to call
    `wait`, or `abort` if it raises an exception: the jobs use buffers of the launch."""

    def __init__(self, cancellation: Cancellation) -> None:
        """`cancellation` is the launch's, by which `abort` stops the jobs."""
        self._cancellation = cancellation
        self._running: list[Runner] = []

    def start(self, jobs: Sequence[Job], *, spread: bool) -> None:
        """Starts each job in a thread of the pool, if `spread` on a core of its own."""
        # An interrupt between the two halves of `Runner.start` would leave a job that never begins,
        # and that `abort` would wait for.
        with interrupts_held():
            for job, core in zip(jobs, other_cores() if spread else repeat(None), strict=False):
                runner = Runner.borrow()
                self._running.append(runner)
                runner.start(job, core)

    def wait(self, report: Report) -> list[int]:
        """Waits until all jobs have ended, and calls `report` each POLL_SECONDS; returns their
        results. Raises the exception of a job when all have ended."""
        self._wait(report)
        return [runner.give_back() for runner in self._running]

    def abort(self) -> None:
        """Stops all jobs and waits for them."""
        self._cancellation.request()
        self._wait(lambda: None)

    def _wait(self, report: Report) -> None:
        """Waits until all jobs have ended."""
        with interrupts_held():
            for runner in self._running:
                # Wake up regularly: a lock cannot be interrupted by Ctrl-C on every platform.
                while not runner.wait_until_idle(POLL_SECONDS):
                    let_interrupts_through()
                    report()


def run_whole(work: WorkerLaunch, progress: Progress | None) -> int:
    """Runs a launch that one worker has whole; returns the Status in which it ended: PAUSED if
    `launch.cancellation` stopped it. Calls `progress`, if given, at pauses, each POLL_SECONDS while
    it waits, and at the end. An exception here (Ctrl-C, or of `progress`) stops the launch and is
    raised again."""

    def report() -> None:
        """Calls `progress`, if given, with the blocks done and the launch's number of blocks."""
        if progress is not None:
            progress(work.blocks_done, work.launch.blocks)

    # An interrupt during a function that machine code calls would be lost.
    # So a kernel that calls the host runs in a pooled thread, and this one handles interrupts.
    if work.launch_template.calls_host:
        status = _run_pooled(work, report)
    else:
        status = work.run(None if progress is None else report)
    report()
    return status


def _run_pooled(work: WorkerLaunch, report: Report) -> int:
    """Runs a launch in a pooled thread; calls `report` each POLL_SECONDS."""
    threads = PooledThreads(work.launch.cancellation)
    try:
        # A single thread may run on any core; only parallel ones are placed.
        threads.start([work.run], spread=False)
        [status] = threads.wait(report)
    except BaseException:
        threads.abort()
        raise
    return status
