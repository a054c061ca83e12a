"""Runs launches whose blocks may conflict on several workers, which record what they access, and
undoes a launch in which blocks have conflicted: speculative parallelization, by whole launches.

    x[y[i]] = z[i]     no analysis knows whether two blocks write the same element of x

Each worker records its accesses (`abi.access_sets`) in code compiled for that. If no worker has
written what another accessed, the launch has left what one worker leaves: each read what blocks
before it on its own worker wrote, or what was there before. Otherwise memory gets its old contents,
everything else of the launch is dropped, and one worker runs it again; so does one after a fault, a
deadlock, or a launch that does not end in time, which conflicts may cause. A kernel whose blocks
have conflicted is not tried again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import cast

from warploom.abi.environment import Slot
from warploom.core.errors import LaunchError
from warploom.core.host_cores import usable_cores
from warploom.machine.caches import NO_CACHES
from warploom.machine.compiled.access_sets import AccessSets, recorded_pages
from warploom.machine.compiled.block_times import SHORTEST_SECONDS
from warploom.machine.compiled.counted import Counted
from warploom.machine.compiled.launch_template import TieredTemplate
from warploom.machine.compiled.parts import EndedPart, PartRunner
from warploom.machine.compiled.running import Progress
from warploom.machine.compiled.work import WorkerLaunch
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.turn import Cancellation
from warploom.program.program import Program
from warploom.program.tracking import Tracking

CONFLICTED = (
    "when several workers ran the blocks, some blocks accessed memory that other blocks wrote"
)
OVERDUE = "several workers took several times as long as one worker would have taken"

COST = 1.3
"""The expected time of code that records accesses, over that of code that does not."""

FAILURE = "failure of speculation"
"""The key in a program's cache of the reason why several workers could not run a launch."""

LEAST_LIMIT, LIMIT = 0.5, 4
"""A launch is given up after LIMIT times the seconds that it is expected to take on one worker, but
not before LEAST_LIMIT seconds: a loop whose end depends on a conflict may have none."""


class _GivenUpError(Exception):
    """Ends a launch that does not end in time, or that is to be cancelled."""


@dataclass(eq=False)
class Speculation:
    """Runs launches of one engine on up to `workers` workers, None for one on each core. The access
    sets of the last launch serve the next."""

    workers: int | None
    _last: AccessSets | None = None

    @property
    def _most(self) -> int:
        """Returns the most workers of a launch that begins now."""
        return self.workers or usable_cores()

    def pays(self, program: Program, code: TieredTemplate, seconds: float) -> bool:
        """Returns whether to run a launch, for which one worker needs `seconds`, in `code`, which
        records accesses. It is not to run if an earlier one failed, or if that would not save time.
        Otherwise adds the time that it would save to what launches have missed so far, and returns
        true once that is as much as the time to compile the code (`BlockTimes.pays`)."""
        times, saved = code.block_times, seconds * (1 - COST / self._most)
        if failure_of(program) or times.is_contended or saved < SHORTEST_SECONDS / 2:
            return False
        return times.pays(saved, code.tiers.seconds_to_begin())

    def run(
        self,
        launch: Launch,
        memory: DeviceMemory,
        code: TieredTemplate,
        blocks: range,
        seconds: float,
        progress: Progress | None,
    ) -> Counted | None:
        """Runs some blocks of a launch, for which one worker needs `seconds`, in `code`; returns
        their counts. Returns None, and leaves memory as it was, if one worker has to run them:
        there are no access sets for the memory, blocks have conflicted, or the launch did not end
        in time. The last two are stored in the program's cache as the reason why later launches do
        not try (`failure_of`).

        After a success, records the times of a block (`BlockTimes`), and retains the access sets
        for the next launch. If `progress` or a host callback raises an exception, restores memory
        before it is raised again."""
        tracking = code.tiers.variant.tracks
        assert tracking is not None
        sets = self._sets(memory, tracking)
        if sets is None:
            return None
        code.current()  # compiles it, which is no time of the launch
        was_touched = sets is self._last
        began, failure = time.perf_counter(), ""
        parts: list[EndedPart] = []
        try:
            parts = self._run_parts(launch, memory, code, sets, blocks, seconds, progress)
        except _GivenUpError:
            failure = "" if launch.cancellation.requested else OVERDUE
        except BaseException:
            sets.undo(memory)
            self._last = None
            raise
        counts = [part.counts for part in parts if part.counts is not None]
        failure = CONFLICTED if sets.have_conflict() else failure
        if failure or not counts or len(counts) < len(parts):
            sets.undo(memory)
            self._last = None
            code.tiers.program.cache[FAILURE] = failure
            return None
        sets.clear()
        self._last = sets if sets.are_reusable else None
        kernel, times = parts[-1].work.kernel, code.block_times
        times.record_alone(kernel, seconds / len(blocks))
        if was_touched:  # else the time has that of making the pages of the access sets
            times.record_contention(kernel, (time.perf_counter() - began) / len(blocks))
        workers = min(sets.workers, len(blocks))
        return Counted.of_parts(parts[0].work.launch_template, counts, workers, "")

    def _run_parts(
        self,
        launch: Launch,
        memory: DeviceMemory,
        code: TieredTemplate,
        sets: AccessSets,
        blocks: range,
        seconds: float,
        progress: Progress | None,
    ) -> list[EndedPart]:
        """Runs parts of some blocks, each with the access set of its worker; returns them in
        order. Raises _GivenUpError if the launch is cancelled or does not end in time."""
        # An exception cancels what runs, but the launch itself may have to run again.
        tried = replace(launch, cancellation=Cancellation())
        ends = time.perf_counter() + max(LEAST_LIMIT, LIMIT * seconds)

        def prepare(part: range, worker: int) -> WorkerLaunch:
            """Returns a part of the launch with these blocks, ready to run."""
            work = WorkerLaunch.prepare(code.current(), tried, memory, NO_CACHES, part, code)
            work.environment[Slot.ACCESS_SET_AT] = sets.address(worker)
            return work

        def report(done: int, all_blocks: int) -> None:
            """Calls `progress`, and ends the launch if it is time."""
            if launch.cancellation.requested or time.perf_counter() > ends:
                raise _GivenUpError
            if progress is not None:
                progress(blocks.start + done, all_blocks)

        runner = PartRunner(prepare, tried, sets.workers)
        return runner.work_off(runner.start(blocks, seconds / len(blocks)), report)

    def _sets(self, memory: DeviceMemory, tracking: Tracking) -> AccessSets | None:
        """Returns empty access sets for the memory that kernels can access now, None if there can
        be none."""
        recorded = recorded_pages(memory)
        if recorded is None:
            return None
        last = self._last
        if last is not None and last.serve(recorded, tracking.unit, self._most):
            return last
        try:
            return AccessSets(recorded, tracking.unit, self._most)
        except LaunchError:
            return None


def failure_of(program: Program) -> str:
    """Returns why an earlier launch of a program could not be run by several workers; empty if none
    failed."""
    return cast(str, program.cache.get(FAILURE, ""))
