"""Runs the works of a launch to their end, in the calling thread and in others.

Machine code returns to the host at least every `pace.LONGEST` seconds or so, so that an interrupt
from the keyboard and a cancellation take effect between two calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat

from warploom.abi.environment import Slot, Status
from warploom.machine.cancellation import Cancellation
from warploom.machine.compiled.cores import cores_beside
from warploom.machine.compiled.threads import Runner
from warploom.machine.compiled.work import WorkerLaunch

Progress = Callable[[int, int], None]
"""Called now and then while a kernel runs: blocks done, blocks in all."""

POLL_SECONDS = 0.1


def run_all(works: Sequence[WorkerLaunch], progress: Progress | None) -> list[int]:
    """Runs each work; returns the Status in which each ended: PAUSED where it was cancelled."""
    # An interrupt that comes in a function which machine code calls would be lost.
    here = 0 if works[0].launch_template.serves else 1
    stop = works[0].launch.cancellation or Cancellation()
    if len(works) == here and progress is None:
        return [_run_until(stop, works[0])]
    return _run_beside(works, here, stop, progress or _ignore)


def _run_beside(
    works: Sequence[WorkerLaunch], here: int, stop: Cancellation, progress: Progress
) -> list[int]:
    """Runs the first `here` works in this thread, the others in threads of their own, which stop
    where this one is interrupted."""
    running = [Runner.borrow() for _ in works[here:]]
    for work in works:
        if work.host_callbacks is not None:
            work.host_callbacks.stop = stop

    def tell() -> None:
        progress(sum(map(_done, works)), works[0].launch.blocks)

    try:
        cores = cores_beside() if len(works) > 1 else repeat(None)
        for runner, work, core in zip(running, works[here:], cores, strict=False):
            runner.start(partial(_run_until, stop, work), core)
        own = [_run_until(stop, work, tell) for work in works[:here]]
        for runner in running:
            while not runner.ended(POLL_SECONDS):
                tell()
    except BaseException:
        stop.request()
        for runner in running:
            while not runner.ended(POLL_SECONDS):
                pass
        raise
    tell()
    return [*own, *(runner.give_back() for runner in running)]


def _run_until(
    stop: Cancellation, work: WorkerLaunch, tell: Callable[[], None] | None = None
) -> int:
    """Runs a work to its end, or until it should stop; calls `tell` at each pause."""
    while (status := work.go_on()) == Status.PAUSED and not stop.requested:
        if tell is not None:
            tell()
    return status


def _done(work: WorkerLaunch) -> int:
    """Returns how many of its blocks have ended, or begun where several are resident."""
    return int(work.environment[Slot.BLOCKS_DONE]) - work.blocks.start


def _ignore(_: int, __: int) -> None:
    """Takes the place of a progress callback where there is none."""
