"""Running the works of a launch to their end: in the thread that asks, and beside it.

A work comes back now and then, so that an interrupt from the keyboard is heard between two calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from threading import Event

from warploom.codegen.environment import Slot, Status
from warploom.machine.cores import cores_beside
from warploom.machine.threads import Runner
from warploom.machine.work import Work

Progress = Callable[[int, int], None]
"""Called now and then while a kernel runs: blocks done, blocks in all."""

POLL_SECONDS = 0.1


def run_all(works: Sequence[Work], progress: Progress | None) -> list[int]:
    """Run each work; gives the Status in which each ended."""
    # An interrupt that comes in a function which machine code calls would be lost.
    here = 0 if works[0].outfit.serves else 1
    if len(works) == here and progress is None:
        return [_run_here(works[0], lambda: None)]
    return _run_beside(works, here, progress or _ignore)


def _run_beside(works: Sequence[Work], here: int, progress: Progress) -> list[int]:
    """The first so many in this thread, the others in threads of their own, which stop where this
    one is interrupted."""
    running, stop = [Runner.borrow() for _ in works[here:]], Event()

    def tell() -> None:
        progress(sum(map(_done, works)), works[0].launch.blocks)

    try:
        cores = cores_beside() if len(works) > 1 else repeat(None)
        for runner, work, core in zip(running, works[here:], cores, strict=False):
            runner.start(partial(_run_until, stop, work), core)
        own = [_run_here(work, tell) for work in works[:here]]
        for runner in running:
            while not runner.ended(POLL_SECONDS):
                tell()
    except BaseException:
        stop.set()
        for runner in running:
            while not runner.ended(POLL_SECONDS):
                pass
        raise
    tell()
    return [*own, *(runner.give_back() for runner in running)]


def _run_here(work: Work, tell: Callable[[], None]) -> int:
    while (status := work.go_on()) == Status.PAUSED:
        tell()
    return status


def _run_until(stop: Event, work: Work) -> int:
    while (status := work.go_on()) == Status.PAUSED and not stop.is_set():
        pass
    return status


def _done(work: Work) -> int:
    """How many of its blocks have ended, or begun where several are resident."""
    return int(work.environment[Slot.BLOCKS_DONE]) - work.blocks.start


def _ignore(_: int, __: int) -> None:
    """Nobody wants to know."""
