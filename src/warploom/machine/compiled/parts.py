"""Runs a launch in parts of its thread blocks, on several threads of the host.

Blocks are handed out in parts, which become smaller, in the order of their numbers, so that threads
end at about the same time:

    1,000 blocks, 2 workers:  333  222  148  99  99  99

Each part has buffers of its own, whose counts are copied when it ends. Added up in the order of
blocks, the counts of all parts are those of one worker.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import ceil

from warploom.abi.environment import Status
from warploom.machine.compiled.block_times import WORKER_SECONDS
from warploom.machine.compiled.launch_template import Bytes
from warploom.machine.compiled.running import PooledThreads, Progress, Report
from warploom.machine.compiled.work import WorkerLaunch
from warploom.machine.late_updates import LateUpdates
from warploom.machine.launch import Launch

Prepare = Callable[[range, int], WorkerLaunch]
"""Prepares a part of a launch, with the given blocks, for the worker of that number."""

PARTS_OF_A_WORKER = 8
"""No part is smaller than this share of what a worker has in all."""

STUCK_SECONDS = 0.0001
"""How long a part whose blocks all wait leaves the others to run before it looks again."""

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
        return cls(work, status, work.launch_template.give_back(work.buffers))


class LaunchParts:
    """The parts of a launch that have run (`ended`), and the blocks that are left to hand out.
    Several threads may call `work_off` at once."""

    def __init__(
        self,
        prepare: Prepare,
        blocks: range,
        workers: int,
        smallest: int,
        late: LateUpdates | None,
    ) -> None:
        """Cuts `blocks`, which may be fewer than the launch has, into parts for `workers` workers,
        of at least `smallest` blocks each; runs none. `prepare` returns a part of the launch that
        is ready to run; `late` performs updates in the order of blocks, if their order shows. With
        `Schedule.any_order`, blocks of one part may wait for those of another."""
        self._prepare, self._late, self._lock = prepare, late, threading.Lock()
        self._left = deque(_parts_of(blocks, workers, smallest))
        self._running: list[WorkerLaunch] = []
        self.ended: list[EndedPart] = []
        self._preparing = self._progress = 0
        self._stuck: dict[WorkerLaunch, int] = {}
        self._is_broken = False

    def work_off(self, worker: int, report: Report | None = None) -> int:
        """Runs parts as worker number `worker` until none is left, or one did not end; returns 0.
        Calls `report` at each pause. If a part cannot be run, stops all parts and raises the
        exception."""
        while (part := self._next_part()) is not None:
            try:
                work = self._begin(part, worker)
                self.finish(work, self._run(work, partial(self._at_pause, work, report)))
            except BaseException:
                self._stop_all()  # other parts may wait for this one
                raise
        return 0

    def _begin(self, part: range, worker: int) -> WorkerLaunch:
        """Returns a part that is ready to run as one of several."""
        work = self._prepare(part, worker)
        work.share(self._late and self._late.begin(part))
        with self._lock:
            # A part of earlier blocks may have failed since this one was handed out.
            work.is_stopped = self._is_broken or self._has_failed_before(part.start)
            self._running.append(work)
            self._preparing -= 1
        return work

    def _at_pause(self, work: WorkerLaunch, report: Report | None) -> None:
        """Calls `report`. If a part has its turn to update memory (`LateUpdates`), it performs what
        it has logged, and logs no more; one whose log is full first waits for its turn."""
        if report is not None:
            report()
        late, log = self._late, work.update_log
        if late and log and late.has_turn(work.blocks, log, lambda: work.is_cancelled):
            work.log_updates(None)

    def _run(self, work: WorkerLaunch, report: Report) -> int:
        """Runs a part until it ends, or cannot go on; returns its last status. Where blocks of
        parts may wait for each other (`Schedule.any_order`), a part that is in a deadlock by itself
        is run again, until all parts that run are in one, and none of them has changed memory
        since."""
        if not work.launch.schedule.any_order:
            return work.run(report)
        while True:
            began, changes = self._progress, work.expect_changes()
            status = work.run(report)
            if work.is_cancelled and status == Status.DEADLOCK:
                status = Status.PAUSED
            changes = work.changes - changes
            if status != Status.DEADLOCK or self._are_all_stuck(work, began, changes):
                break
            time.sleep(STUCK_SECONDS)
        with self._lock:
            self._progress += 1
        return status

    def _are_all_stuck(self, work: WorkerLaunch, began: int, changes: int) -> bool:
        """Notes that a part cannot go on, which began to run when `_progress` was `began` and has
        changed memory so often since; returns whether all parts have looked at memory since its
        last change, and none of them can go on."""
        with self._lock:
            self._progress += changes > 0
            self._stuck[work] = began
            if self._left or self._preparing:
                return False
            return all(self._stuck.get(running) == self._progress for running in self._running)

    def finish(self, work: WorkerLaunch, status: int) -> None:
        """Adds a part that has run to `status` to `ended`. If it did not end, it stops the parts of
        later blocks, whose failures would not be reported, or all where they may wait for it.
        Performs the updates that it has logged, if all parts before it have ended."""
        ended = EndedPart.of(work, status)
        with self._lock:
            self._running = [running for running in self._running if running is not work]
            self.ended.append(ended)
            for unfinished in self._running if ended.counts is None else ():
                is_later = unfinished.blocks.start > work.blocks.start
                unfinished.is_stopped |= is_later or work.launch.schedule.any_order
        if self._late is not None:
            self._late.end(work.blocks, work.update_log, is_complete=ended.counts is not None)

    def _next_part(self) -> range | None:
        """Removes the next part from those left, and returns its blocks. Returns None if there is
        none, or if a part of earlier blocks (of any, where parts may wait for each other) did not
        end."""
        with self._lock:
            if not self._left or self._has_failed_before(self._left[0].start):
                return None
            self._preparing += 1
            return self._left.popleft()

    def _has_failed_before(self, block: int) -> bool:
        """Returns whether some part of blocks before one did not end, or of any blocks where they
        may wait for each other."""
        return any(
            part.counts is None
            and (part.work.blocks.start < block or part.work.launch.schedule.any_order)
            for part in self.ended
        )

    def _stop_all(self) -> None:
        """Stops all parts, and hands out no more, after one could not be run."""
        with self._lock:
            self._is_broken = True
            self._left.clear()
            for work in self._running:
                work.is_stopped = True

    def blocks_done(self) -> int:
        """Returns how many blocks of all parts have ended, or have begun where several are
        resident."""
        with self._lock:
            ended = sum(len(part.work.blocks) for part in self.ended)
            return ended + sum(work.blocks_done for work in self._running)

    def in_order(self) -> list[EndedPart]:
        """Returns the parts that have run, in the order of their blocks."""
        return sorted(self.ended, key=lambda part: part.work.blocks.start)


def _parts_of(blocks: range, workers: int, smallest: int) -> Iterator[range]:
    """Yields parts of `blocks`, in order: two thirds of what each worker would get of those that
    are left, as long as the rest is enough for two parts of `smallest` blocks each; then one equal
    part for each worker."""
    while len(blocks) > 2 * workers * smallest:
        size = len(blocks) * 2 // (3 * workers)
        yield blocks[:size]
        blocks = blocks[size:]
    for workers_left in range(min(workers, len(blocks)), 0, -1):
        size = ceil(len(blocks) / workers_left)
        yield blocks[:size]
        blocks = blocks[size:]


class PartRunner:
    """Runs parts of a launch on up to `most` workers, of which the calling thread is one: `start`,
    then `work_off`. `workers` is how many do, and `wall_seconds` how long they have run, both from
    `start` on."""

    def __init__(self, prepare: Prepare, launch: Launch, most: int) -> None:
        """Starts nothing; `prepare` returns parts of the launch that are ready to run."""
        self._prepare, self._launch, self.most = prepare, launch, most
        self._threads = PooledThreads(launch.cancellation)
        self._began = 0.0
        self.workers = 1

    def start(
        self,
        blocks: range,
        seconds_of_block: float,
        running: int = 0,
        late: LateUpdates | None = None,
    ) -> LaunchParts:
        """Cuts `blocks` into parts, and wakes the other workers, which run them; returns the parts,
        for `work_off`. `late` performs updates in the order of blocks, if their order shows. Sets
        `workers`: as many as there are blocks and `running` parts, which run other blocks already,
        but at most `most`; and, if `seconds_of_block` is known (else 0), two or as many as have
        WORKER_SECONDS to run. Stops the workers again if one cannot be started."""
        self.workers = min(self.most, len(blocks) + running)
        if seconds_of_block:
            worthwhile = int(len(blocks) * seconds_of_block / WORKER_SECONDS)
            self.workers = min(self.workers, max(2, worthwhile))
        self._began = time.perf_counter()
        smallest = max(1, len(blocks) // (PARTS_OF_A_WORKER * self.workers))
        if self._launch.schedule.any_order:
            # A block may wait for any other: no part is to be left that nobody begins.
            smallest = ceil(len(blocks) / self.workers)
        elif seconds_of_block:
            smallest = max(smallest, ceil(PART_SECONDS / seconds_of_block))
        parts = LaunchParts(self._prepare, blocks, self.workers, smallest, late)
        try:
            jobs = [partial(parts.work_off, worker) for worker in range(1, self.workers)]
            self._threads.start(jobs, spread=True)
        except BaseException:
            self.abort()
            raise
        return parts

    def work_off(self, parts: LaunchParts, progress: Progress | None) -> list[EndedPart]:
        """Runs parts in this thread as well, and waits for the other workers; returns all parts in
        order. Calls `progress`, if given, at this thread's pauses, each POLL_SECONDS while it
        waits, and at the end. An exception here (Ctrl-C, or of `progress`) stops all parts, waits
        for them and is raised again; one of a pooled thread is raised when all parts have ended."""

        def report() -> None:
            """Calls `progress`, if given, with the blocks done and the launch's number of
            blocks."""
            if progress is not None:
                progress(parts.blocks_done(), self._launch.blocks)

        try:
            parts.work_off(0, report)
            self._threads.wait(report)
        except BaseException:
            self.abort()
            raise
        report()
        return parts.in_order()

    @property
    def wall_seconds(self) -> float:
        """Returns the time since the workers were woken."""
        return time.perf_counter() - self._began

    def abort(self) -> None:
        """Stops the other threads and waits for them, before an exception is raised."""
        self._threads.abort()
