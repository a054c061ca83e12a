"""Shares the thread blocks of a launch among threads of the host.

Blocks are handed out in parts, which become smaller, in the order of their numbers, so that threads
end at about the same time:

    1,000 blocks, 2 workers:  333  222  148  99  66  62  62  8

Each part has buffers of its own, whose counts are copied when it ends. Added up in the order of
blocks, the counts of all parts are those of one worker.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from warploom.abi.environment import Status
from warploom.core.host_cores import usable_cores
from warploom.machine.compiled.block_times import SHORTEST_SECONDS, BlockTimes
from warploom.machine.compiled.launch_template import Bytes
from warploom.machine.compiled.running import PooledThreads, Progress, Report
from warploom.machine.compiled.work import WorkerLaunch
from warploom.machine.launch import Launch

TOO_SHORT = "the launch is too short for several workers"
CONTENDED = "several workers took as long as one, for they update the same memory"
ONE_CORE = "this process may use one core"

Prepare = Callable[[range], WorkerLaunch]
"""Prepares a part of a launch with the given blocks."""

PARTS_OF_A_WORKER = 8
"""No part is smaller than this share of what a worker has in all."""

PART_SECONDS = 0.002
"""The least time of a part, as far as it is known: preparing one lasts 0.1 to 0.2 ms."""


@dataclass(frozen=True, eq=False)
class EndedPart:
    """A part of a launch that ran to `status`, and a copy of its counts; None if it did not end."""

    work: WorkerLaunch
    status: int
    counts: Bytes | None

    @classmethod
    def of(cls, work: WorkerLaunch, status: int) -> EndedPart:
        """Copies the counts of a part, and gives its buffers back, if it has ended."""
        if status != Status.ENDED:
            return cls(work, status, None)
        counts = work.buffers.counts()
        work.launch_template.give_back(work.buffers)
        return cls(work, status, counts)


class LaunchParts:
    """The parts of a launch that have run (`ended`), and the blocks that are left to hand out.
    Several threads may call `work_off` at once."""

    def __init__(self, prepare: Prepare, blocks: range, workers: int, smallest: int) -> None:
        """Hands out `blocks`, which may be fewer than the launch has, to `workers` workers, at
        least `smallest` at once; `prepare` returns a part of the launch that is ready to run."""
        self._prepare, self._left, self._workers = prepare, blocks, workers
        self._smallest, self._lock = smallest, threading.Lock()
        self._running: list[WorkerLaunch] = []
        self.ended: list[EndedPart] = []

    def work_off(self, report: Report | None = None) -> int:
        """Runs parts until none is left, or one did not end; returns 0. Calls `report` at each
        pause."""
        while (part := self._next_part()) is not None:
            work = self._prepare(part)
            work.share()
            with self._lock:
                # A part of earlier blocks may have failed since this one was handed out.
                work.is_stopped = self._has_failed_before(part.start)
                self._running.append(work)
            self.finish(work, work.run(report))
        return 0

    def finish(self, work: WorkerLaunch, status: int) -> None:
        """Adds a part that has run to `status` to `ended`. If it did not end, it stops the parts of
        later blocks, whose failures would not be reported."""
        ended = EndedPart.of(work, status)
        with self._lock:
            self._running = [each for each in self._running if each is not work]
            self.ended.append(ended)
            for other in self._running if ended.counts is None else ():
                other.is_stopped |= other.blocks.start > work.blocks.start

    def _next_part(self) -> range | None:
        """Returns the blocks of the next part; None if there is none, or if a part did not end."""
        with self._lock:
            left = self._left
            if not left or self._has_failed_before(left.start):
                return None
            size = max(len(left) * 2 // (3 * self._workers), self._smallest)
            part, self._left = left[:size], left[size:]
            return part

    def _has_failed_before(self, block: int) -> bool:
        """Returns whether some part of blocks before one did not end."""
        return any(p.counts is None and p.work.blocks.start < block for p in self.ended)

    def blocks_done(self) -> int:
        """Returns how many blocks of all parts have ended, or have begun where several are
        resident."""
        with self._lock:
            ended = sum(len(part.work.blocks) for part in self.ended)
            return ended + sum(work.blocks_done for work in self._running)

    def in_order(self) -> list[EndedPart]:
        """Returns the parts that have run, in the order of their blocks."""
        return sorted(self.ended, key=lambda part: part.work.blocks.start)


class SharedLaunch:
    """Runs a launch whose blocks several threads share, from its start (`run`) or once one has run
    for a while (`at_pause`, then `complete`).

    `workers` is the number of threads that run it, `serial_reason` why that is one, empty if it
    could be several."""

    def __init__(
        self,
        prepare: Prepare,
        launch: Launch,
        times: BlockTimes,
        workers: int | None,
        reason: Callable[[], str],
        reason_seconds: Callable[[], float],
        updates_memory: bool,
    ) -> None:
        """`workers`: how many share the blocks at most, None for one on each core. `reason`
        returns why one worker has to run all blocks, empty if several can, `reason_seconds` the
        expected time of that answer. `updates_memory`: the kernel has atomics on global memory."""
        self._prepare, self._launch, self._times = prepare, launch, times
        self._most = workers or usable_cores()
        self._reason, self._reason_seconds = reason, reason_seconds
        self._updates_memory = updates_memory
        self._threads = PooledThreads(launch.cancellation)
        self._began, self._shared_blocks = 0.0, 0
        self._parts: LaunchParts | None = None
        self.workers, self.serial_reason = 1, TOO_SHORT

    @property
    def is_undecided(self) -> bool:
        """Returns whether others may still join, if a launch that one worker runs lasts longer than
        it seemed to."""
        return self._parts is None and self.serial_reason == TOO_SHORT

    def begins_shared(self) -> bool:
        """Decides whether several workers run the launch from its start."""
        return self._may_share(self._launch.blocks, self._times.seconds)

    def _may_share(self, blocks: int, seconds_of_block: float) -> bool:
        """Decides whether several workers run `blocks` blocks: if that pays, and they can."""
        self.serial_reason = self._loss(blocks, seconds_of_block) or self._reason()
        return not self.serial_reason

    def _loss(self, blocks: int, seconds_of_block: float) -> str:
        """Returns why it does not pay to share `blocks` blocks (`BlockTimes.pays`); empty if it
        does."""
        if self._most == 1:
            return ONE_CORE
        if self._times.is_contended:
            return CONTENDED
        saved = seconds_of_block * blocks * (1 - 1 / self._most)
        if saved < SHORTEST_SECONDS / 2 or not self._times.pays(saved, self._reason_seconds()):
            return TOO_SHORT
        return ""

    def run(self, progress: Progress | None) -> list[EndedPart]:
        """Runs all blocks in parts; returns those, in order. Calls `progress`, if given, at
        this thread's pauses, each POLL_SECONDS while it waits, and at the end. An exception here
        (Ctrl-C, or of `progress`) stops all parts, waits for them and is raised again; one of a
        pooled thread is raised when all parts have ended."""
        parts = self._start(range(self._launch.blocks), self._times.seconds)
        return self._work_off(parts, progress)

    def at_pause(self, work: WorkerLaunch) -> None:
        """Lets others join a launch that one worker has begun whole, and that pauses, if that
        pays."""
        begun = work.following - work.blocks.start
        left = len(work.blocks) - begun
        seconds_of_block = work.seconds / max(1, begun)
        if self._updates_memory:
            self._times.record_alone(work.kernel, seconds_of_block)
        if left and self._may_share(left, seconds_of_block):
            self._parts = self._start(work.leave_following(), seconds_of_block, running=1)

    def complete(
        self, work: WorkerLaunch, status: int, progress: Progress | None
    ) -> list[EndedPart]:
        """Runs the parts that are left after the first one, which has run to `status` in this
        thread; returns all in order."""
        if self._parts is None:
            if progress is not None:
                progress(work.blocks_done, self._launch.blocks)
            self._times.record(work.seconds, self._launch.blocks)
            return [EndedPart.of(work, status)]
        self._parts.finish(work, status)
        return self._work_off(self._parts, progress)

    def abort(self) -> None:
        """Stops the other threads and waits for them, before an exception is raised."""
        self._threads.abort()

    def _start(self, blocks: range, seconds_of_block: float, running: int = 0) -> LaunchParts:
        """Wakes the other workers, which run parts of `blocks`; `running` parts of other blocks run
        already."""
        self.workers = min(self._most, len(blocks) + running)
        self._began, self._shared_blocks = time.perf_counter(), len(blocks)
        smallest = max(1, len(blocks) // (PARTS_OF_A_WORKER * self.workers))
        if seconds_of_block:
            smallest = max(smallest, ceil(PART_SECONDS / seconds_of_block))
        parts = LaunchParts(self._prepare, blocks, self.workers, smallest)
        try:
            self._threads.start([parts.work_off] * (self.workers - 1), spread=True)
        except BaseException:
            self.abort()
            raise
        return parts

    def _work_off(self, parts: LaunchParts, progress: Progress | None) -> list[EndedPart]:
        """Runs parts in this thread as well, and waits for the other workers; returns all parts in
        order."""

        def report() -> None:
            """Calls `progress`, if given, with the blocks done and the launch's number of
            blocks."""
            if progress is not None:
                progress(parts.blocks_done(), self._launch.blocks)

        try:
            parts.work_off(report)
            self._threads.wait(report)
        except BaseException:
            self.abort()
            raise
        report()
        self._record(parts)
        return parts.in_order()

    def _record(self, parts: LaunchParts) -> None:
        """Stores how long the blocks ran, and of a kernel with atomics whether that saved time."""
        times, seconds = self._times, sum(part.work.seconds for part in parts.ended)
        if self._updates_memory:
            wall = time.perf_counter() - self._began
            times.record_contention(parts.ended[-1].work.kernel, wall / self._shared_blocks)
        times.record(seconds, self._launch.blocks)
