"""Runs a launch in compiled code to its end: each worker's share of the thread blocks, one in the
calling thread and the others in pooled threads.

Machine code returns to the host at least every `pace.LONGEST` seconds or so, so that a keyboard
interrupt or a cancellation takes effect between two calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat

from warploom.abi.environment import Slot, Status
from warploom.machine.cancellation import Cancellation
from warploom.machine.compiled.cores import other_cores
from warploom.machine.compiled.threads import Runner
from warploom.machine.compiled.work import WorkerLaunch

Progress = Callable[[int, int], None]
"""A callback that is called now and then while a kernel runs, with the numbers of blocks done and
of all blocks."""

POLL_SECONDS = 0.1


def run_all(works: Sequence[WorkerLaunch], progress: Progress | None) -> list[int]:
    """Runs each worker's part of a launch and returns the Status in which each ended: PAUSED if
    `launch.cancellation` stopped it. A part that fails does not stop the others. Calls `progress`,
    if given, now and then. An exception in this thread (Ctrl-C, or of `progress`) stops all parts
    and is raised again. The first part runs in the calling thread and the others in pooled ones;
    all of them run in pooled ones if the kernel calls the host."""
    # An interrupt during a function that machine code calls would be lost.
    # So a kernel that calls the host runs in a pooled thread, and this one handles interrupts.
    local = 0 if works[0].launch_template.calls_host else 1
    stop = works[0].launch.cancellation or Cancellation()
    if len(works) == local and progress is None:
        return [_run_until(stop, works[0])]
    return _run_with_threads(works, local, stop, progress or _no_progress)


def _run_with_threads(
    works: Sequence[WorkerLaunch], local: int, stop: Cancellation, progress: Progress
) -> list[int]:
    """Runs the first `local` (0 or 1) parts in this thread and the others in pooled threads;
    returns the statuses in the order of the parts. Host callbacks poll `stop`, too. Calls
    `progress` at this thread's pauses, each POLL_SECONDS while it waits, and at the end. On an
    exception here (Ctrl-C), stops all parts, waits for them and raises it again."""
    running = [Runner.borrow() for _ in works[local:]]
    for work in works:
        if work.host_callbacks is not None:
            work.host_callbacks.stop = stop

    def report() -> None:
        """Calls `progress` with the blocks done of all parts and the launch's number of blocks."""
        progress(sum(map(_blocks_done, works)), works[0].launch.blocks)

    try:
        # A single thread may run on any core; only parallel ones are placed.
        cores = other_cores() if len(works) > 1 else repeat(None)
        for runner, work, core in zip(running, works[local:], cores, strict=False):
            runner.start(partial(_run_until, stop, work), core)
        statuses = [_run_until(stop, work, report) for work in works[:local]]
        for runner in running:
            # Wake up regularly: a lock cannot be interrupted by Ctrl-C on every platform.
            while not runner.wait_until_idle(POLL_SECONDS):
                report()
    # The threads use buffers of this launch, so they have to stop before the exception propagates.
    except BaseException:
        stop.request()
        for runner in running:
            while not runner.wait_until_idle(POLL_SECONDS):
                pass
        raise
    report()
    return [*statuses, *(runner.give_back() for runner in running)]


def _run_until(
    stop: Cancellation, work: WorkerLaunch, report: Callable[[], None] | None = None
) -> int:
    """Runs a part slice by slice until it ends or `stop` is requested; calls `report` at each
    pause. Returns its last Status."""
    while (status := work.run_slice()) == Status.PAUSED and not stop.requested:
        if report is not None:
            report()
    return status


def _blocks_done(work: WorkerLaunch) -> int:
    """Returns the number of the part's blocks that have ended, or that have begun if several are
    resident."""
    return int(work.environment[Slot.BLOCKS_DONE]) - work.blocks.start


def _no_progress(_: int, __: int) -> None:
    """Ignores progress."""
