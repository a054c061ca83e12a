"""Runs the workers' parts of a launch in compiled code to their ends, one in the calling thread and
the others in pooled threads.

Machine code returns to the host at least every `pace.LONGEST` seconds or so, so that a keyboard
interrupt or a cancellation is handled between two calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat

from warploom.abi.environment import Slot
from warploom.machine.compiled.cores import other_cores
from warploom.machine.compiled.threads import Runner
from warploom.machine.compiled.work import WorkerLaunch

Progress = Callable[[int, int], None]
"""A callback that is called now and then while a kernel runs, with the numbers of blocks done and
of all blocks."""

POLL_SECONDS = 0.1


def run_with_threads(works: Sequence[WorkerLaunch], progress: Progress | None) -> list[int]:
    """Runs each worker's part of a launch and returns the Status in which each ended, in the order
    of the parts: PAUSED if `launch.cancellation` stopped it. A part that fails does not stop the
    others. The first part runs in the calling thread and the others in pooled ones; all of them run
    in pooled ones if the kernel calls the host. Calls `progress`, if given, at this thread's
    pauses, each POLL_SECONDS while it waits, and at the end. An exception here (Ctrl-C, or of
    `progress`) stops all parts, waits for them and is raised again; one of a pooled thread is
    raised when all parts have ended."""
    # An interrupt during a function that machine code calls would be lost.
    # So a kernel that calls the host runs in a pooled thread, and this one handles interrupts.
    local = 0 if works[0].launch_template.calls_host else 1
    running = [Runner.borrow() for _ in works[local:]]

    def report() -> None:
        """Calls `progress`, if given, with the blocks done of all parts and the launch's number of
        blocks."""
        if progress is not None:
            progress(sum(map(_blocks_done, works)), works[0].launch.blocks)

    try:
        # A single thread may run on any core; only parallel ones are placed.
        cores = other_cores() if len(works) > 1 else repeat(None)
        for runner, work, core in zip(running, works[local:], cores, strict=False):
            runner.start(work.run, core)
        statuses = [work.run(report) for work in works[:local]]
        for runner in running:
            # Wake up regularly: a lock cannot be interrupted by Ctrl-C on every platform.
            while not runner.wait_until_idle(POLL_SECONDS):
                report()
    # The threads use buffers of this launch, so they have to stop before the exception propagates.
    except BaseException:
        works[0].launch.cancellation.request()
        for runner in running:
            while not runner.wait_until_idle(POLL_SECONDS):
                pass
        raise
    report()
    return [*statuses, *(runner.give_back() for runner in running)]


def _blocks_done(work: WorkerLaunch) -> int:
    """Returns the number of the part's blocks that have ended, or that have begun if several are
    resident."""
    return int(work.environment[Slot.BLOCKS_DONE]) - work.blocks.start
