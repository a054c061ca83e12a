"""One block: its warps in turn, and the barriers at which they wait for each other."""

from __future__ import annotations

from collections.abc import Sequence

from warploom.machine.deadlock import Waiting, deadlock_error
from warploom.machine.launch import WARP_SIZE
from warploom.machine.reference.lanes import lanes_of
from warploom.machine.reference.state import Block, Run, Warp, new_block, new_warp
from warploom.machine.reference.warp import advance, step


def run_block(run: Run, number: int) -> None:
    """Run a block to its end: warps in order, each until it ends or waits, again and again.

    Raises DeadlockError where all that are left wait for something that cannot come.
    """
    block = new_block(run, number)
    warps = [new_warp(block, i) for i in range(run.launch.warps_per_block)]
    while not all(warp.ended for warp in warps):
        for warp in warps:
            while warp.can_run:
                step(warp)
        release(block, [warp for warp in warps if not warp.ended])


def release(block: Block, waiting: Sequence[Warp]) -> None:
    """Let the warps go on whose barriers are complete; all that have not ended are waiting.

    A barrier counts a warp as 32 threads, and without a number of its own awaits every warp that
    has not ended (PTX ISA, bar: on targets before sm_70 warps arrive whole).
    """
    complete = [warp for warp in waiting if _is_complete(warp, waiting)]
    for warp in complete:
        warp.waiting = None
        advance(warp)
    if waiting and not complete:
        raise deadlock_error(block.run.program, block.run.launch, block.number, _stuck(waiting))


def _is_complete(warp: Warp, waiting: Sequence[Warp]) -> bool:
    assert warp.waiting is not None
    number = warp.waiting.barrier
    arrived = sum(1 for w in waiting if w.waiting and w.waiting.barrier == number)
    return WARP_SIZE * arrived == (warp.waiting.threads or WARP_SIZE * len(waiting))


def _stuck(waiting: Sequence[Warp]) -> list[Waiting]:
    return [
        Waiting(
            warp.number,
            tuple(lanes_of(warp.stack.active)),
            warp.waiting.instruction,
            warp.waiting.barrier,
            warp.waiting.threads,
        )
        for warp in waiting
        if warp.waiting is not None
    ]
