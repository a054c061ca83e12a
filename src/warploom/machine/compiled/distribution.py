"""Runs a launch to its end: in one worker, or with its blocks distributed over several, from its
start or from a pause on, where that changes no result and saves time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from warploom.abi.environment import Interleaving, Status
from warploom.core.host_cores import usable_cores
from warploom.machine.caches import NO_CACHES
from warploom.machine.compiled.block_times import SHORTEST_SECONDS
from warploom.machine.compiled.counted import Counted, in_sequence
from warploom.machine.compiled.launch_template import TieredTemplate
from warploom.machine.compiled.outcome import check_limit, error_of
from warploom.machine.compiled.parts import EndedPart, PartRunner
from warploom.machine.compiled.running import Progress, run_whole
from warploom.machine.compiled.sharing import CONTENDED, TOO_SHORT, SharedLaunch
from warploom.machine.compiled.speculation import Speculation, failure_of
from warploom.machine.compiled.work import Words, WorkerLaunch
from warploom.machine.compiled.workers import (
    CALLS_HOST,
    BlockDependences,
    calls_host_in_order,
    updates_memory,
)
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.tally import Tally
from warploom.program.program import Program
from warploom.program.tracking import Tracking

CAUSES = (Status.FAULT, Status.LIMIT, Status.DEADLOCK, Status.PAUSED)
"""The states of parts that did not end, those first that may be why others have not."""


@dataclass(eq=False, slots=True)
class DistributedLaunch:
    """One launch of a program, to be run once.

    `template`: that of its code. `caches`: the simulated caches, NO_CACHES if there are none.
    `workers`: the most threads that share its blocks, None for one on each core. `speculation` runs
    blocks that may conflict, in the code of the template that `find_template` returns for the
    accesses to record.
    """

    program: Program
    launch: Launch
    memory: DeviceMemory
    template: TieredTemplate
    caches: Words
    workers: int | None
    speculation: Speculation
    find_template: Callable[[Program, Launch, None, Tracking], TieredTemplate]
    interleaving: Interleaving = Interleaving.UNKNOWN
    """Whether code may interleave the warps of a block."""

    def run(self, progress: Progress | None) -> Callable[[], Tally]:
        """Runs the launch, its blocks distributed over workers unless there is a reason to run them
        in one (`BlockDependences.serial_reason`). Returns a function that builds the tally when it
        is called. Raises the error of the first part that did not end; with `max_instructions`, the
        tally is built here, since only it shows that the last slice exceeded the limit."""
        progress = progress and _rising(progress)
        self._decide_order()
        shared, blocks = None, range(self.launch.blocks)
        may_share = len(blocks) > 1 and self.workers != 1
        if may_share and self.launch.schedule.any_order:
            return self._run_side_by_side(progress)
        if may_share and self.template.block_times.is_long:
            shared = self._shared_launch()
            if shared is not None and shared.begins_shared():
                return _counts(shared.run(progress), shared)
            if shared is not None and not shared.is_undecided:
                counted = self._speculate(blocks, self.template.block_times.seconds, progress)
                if counted is not None:
                    return counted
        work = self._prepare(blocks)
        is_undecided = shared is None or shared.is_undecided
        calls_host = work.launch_template.calls_host
        if may_share and is_undecided and not (calls_host and calls_host_in_order(self.program)):
            shared, status = self._run_until_shared(work, shared, progress)
            if shared is not None and work.withheld and status == Status.ENDED:
                return self._run_left(work, shared, progress)
            if shared is not None:
                return _counts(shared.complete(work, status, progress), shared)
        else:
            status = run_alone(work, progress)
        if status != Status.ENDED:
            raise error_of(work, Status(status))
        if may_share and work.seconds >= SHORTEST_SECONDS:
            self.template.block_times.record(work.seconds, len(blocks))
            if updates_memory(self.program):
                self.template.block_times.record_alone(work.kernel, work.seconds / len(blocks))
        too_short = CONTENDED if self.template.block_times.is_contended else TOO_SHORT
        reason = too_short if may_share else ""
        if shared is not None:
            reason = failure_of(self.program) or shared.serial_reason
        return _checked(self._counted(work, reason), work)

    def _decide_order(self) -> None:
        """Sets which warps code may interleave, as far as that is known or worth a proof now."""
        times = self.template.block_times
        if times.wants_interleaving and self.interleaving is Interleaving.UNKNOWN:
            self.interleaving = self._dependences.interleaving(times)

    def _prepare(self, blocks: range, _worker: int = 0) -> WorkerLaunch:
        """Returns a part of the launch with these blocks, ready to run."""
        code = self.template.current()
        work = WorkerLaunch.prepare(
            code, self.launch, self.memory, self.caches, blocks, self.template
        )
        work.interleave(self.interleaving)
        return work

    def _run_until_shared(
        self, work: WorkerLaunch, shared: SharedLaunch | None, progress: Progress | None
    ) -> tuple[SharedLaunch | None, int]:
        """Runs a launch of one part in this thread; from a pause on, when it has run for
        SHORTEST_SECONDS, its warps may be interleaved, and others may join
        (`SharedLaunch.at_pause`). Returns the object that shares the blocks (`shared`, or one made
        when it is needed; None if none can be made or the launch ended before) and the Status in
        which the part ended."""

        def at_pause() -> None:
            """Calls `progress`, if given, and lets others join when it is time."""
            nonlocal shared
            if progress is not None:
                progress(work.blocks_done, work.launch.blocks)
            if work.seconds < SHORTEST_SECONDS:
                return
            self._decide_order()
            work.interleave(self.interleaving)
            if shared is None:
                shared = self._shared_launch()
            if shared is not None and shared.is_undecided:
                shared.at_pause(work)

        try:
            status = work.run(at_pause)
            if progress is not None and shared is None:
                progress(work.blocks_done, work.launch.blocks)
        except BaseException:
            if shared is not None:
                shared.abort()
            raise
        return shared, status

    def _most_workers(self) -> int:
        """Returns how many workers share blocks now at most: `workers`, or one for each core, but
        for one that compiles better code (`Tiers.reserves_core`)."""
        return self.workers or max(1, usable_cores() - self.template.tiers.reserves_core)

    def _shared_launch(self) -> SharedLaunch | None:
        """Returns the object that shares the blocks among workers; None while the only other core
        compiles."""
        most = self._most_workers()
        if most == 1 and self.template.tiers.reserves_core and usable_cores() > 1:
            return None
        return SharedLaunch(
            self._prepare,
            self.launch,
            self.template.block_times,
            most,
            self._dependences,
            lambda seconds: self._speculative_code(seconds) is not None,
        )

    @property
    def _dependences(self) -> BlockDependences:
        """Returns what decides how the blocks depend on each other."""
        simulates_caches = self.caches is not NO_CACHES
        return BlockDependences(self.program, self.launch, self.memory, simulates_caches)

    @staticmethod
    def _counted(work: WorkerLaunch, serial_reason: str = "") -> Counted:
        """Returns the counts of a part that has ended, and gives its buffers back."""
        code = work.launch_template
        return Counted.of_parts(code, [code.give_back(work.buffers)], 1, serial_reason)

    def _run_side_by_side(self, progress: Progress | None) -> Callable[[], Tally]:
        """Runs the launch on all workers, whether or not blocks conflict; on one where it has to
        be in order for another reason (`BlockDependences.order_reason`), or calls the host."""
        code, calls_in_order = self.template.current(), calls_host_in_order(self.program)
        reason = CALLS_HOST if calls_in_order else self._dependences.order_reason()
        most = 1 if reason else self._most_workers()
        runner = PartRunner(self._prepare, self.launch, most)
        parts = runner.work_off(runner.start(range(self.launch.blocks), 0.0), progress)
        failed = [part for part in parts if part.counts is None]
        if failed:
            # Of parts that waited for another one, that one's error is the cause.
            part = min(failed, key=lambda part: CAUSES.index(Status(part.status)))
            raise error_of(part.work, Status(part.status))
        counts = [part.counts for part in parts if part.counts is not None]
        counted = Counted.of_parts(code, counts, runner.workers, reason)
        return _checked(counted, parts[0].work)

    # ---- blocks that may conflict ---------------------------------------------------------------

    def _speculative_code(self, seconds: float) -> TieredTemplate | None:
        """Returns the template of code in which several workers run blocks that may conflict, if
        they can and if that pays where one worker needs `seconds` (`Speculation.pays`); else
        None."""
        tracking = self._dependences.tracking()
        if tracking is None:
            return None
        code = self.find_template(self.program, self.launch, None, tracking)
        return code if self.speculation.pays(self.program, code, seconds) else None

    def _speculate(
        self, blocks: range, seconds_of_block: float, progress: Progress | None
    ) -> Counted | None:
        """Runs blocks by several workers that record what they access, if that saves time; returns
        their counts, None if one worker has to run them."""
        seconds = seconds_of_block * len(blocks)
        code = self._speculative_code(seconds)
        if code is None:
            return None
        return self.speculation.run(self.launch, self.memory, code, blocks, seconds, progress)

    def _run_left(
        self, work: WorkerLaunch, shared: SharedLaunch, progress: Progress | None
    ) -> Callable[[], Tally]:
        """Runs the blocks that `work`, which has ended, has withheld, by several workers, or by one
        if they conflict; returns a function that builds the tally of the launch. Raises the error
        of a part that did not end."""
        seconds_of_block, blocks = work.seconds / len(work.blocks), self.launch.blocks
        self.template.block_times.record(seconds_of_block * blocks, blocks)
        head = self._counted(work)
        rest = self._speculate(work.withheld, seconds_of_block, progress)
        if rest is None:
            work = self._prepare(work.withheld)
            status = run_alone(work, progress)
            if status != Status.ENDED:
                raise error_of(work, Status(status))
            rest = self._counted(work, failure_of(self.program) or shared.serial_reason)
        return in_sequence(head, rest)


def _rising(progress: Progress) -> Progress:
    """Returns a callback that calls `progress` with the most blocks that were done so far: those of
    a launch that is undone and run again are done twice."""
    most = 0

    def report(done: int, blocks: int) -> None:
        """Calls `progress`."""
        nonlocal most
        most = max(most, done)
        progress(most, blocks)

    return report


def run_alone(work: WorkerLaunch, progress: Progress | None) -> int:
    """Runs a launch of one part and returns the Status in which it ended."""
    if progress is None and not work.launch_template.calls_host:
        return work.run()
    return run_whole(work, progress)


def _counts(parts: Sequence[EndedPart], shared: SharedLaunch) -> Callable[[], Tally]:
    """Returns a function that builds the tally of a launch from its parts, which are in the order
    of their blocks. Raises the error of the first that did not end."""
    for part in parts:
        if part.counts is None:
            raise error_of(part.work, Status(part.status))
    counts, work = [part.counts for part in parts if part.counts is not None], parts[0].work
    counted = Counted.of_parts(work.launch_template, counts, shared.workers, shared.serial_reason)
    return _checked(counted, work)


def _checked(counted: Counted, work: WorkerLaunch) -> Callable[[], Tally]:
    """Returns a function that builds the tally of a launch that has ended. With `max_instructions`
    the tally is built here, since only it shows that the last slice exceeded the limit."""
    if work.launch.max_instructions is None:
        return counted
    tally = counted()
    check_limit(tally, work)
    return lambda: tally
