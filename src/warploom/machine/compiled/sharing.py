"""Decides whether several threads of the host share the thread blocks of a launch, from its start
or once it has run for a while."""

from __future__ import annotations

from collections.abc import Callable

from warploom.machine.compiled.block_times import SHORTEST_SECONDS, BlockTimes
from warploom.machine.compiled.parts import EndedPart, LaunchParts, PartRunner, Prepare
from warploom.machine.compiled.running import Progress
from warploom.machine.compiled.work import WorkerLaunch
from warploom.machine.compiled.workers import BlockDependences, updates_memory
from warploom.machine.launch import Launch

TOO_SHORT = "the launch is too short for several workers"
CONTENDED = "several workers took as long as one worker, because they update the same memory"
ONE_CORE = "this process may use only one core"


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
        workers: int,
        dependences: BlockDependences,
        speculates: Callable[[float], bool],
    ) -> None:
        """Starts nothing. `prepare` returns parts of the launch that are ready to run; `times` has
        how long its blocks run; `workers`: how many share the blocks at most. `dependences` decides
        whether several can. `speculates` decides whether several workers run blocks that may
        conflict, by the seconds that one worker needs for them."""
        self._launch, self._times = launch, times
        self._runner = PartRunner(prepare, launch, workers)
        self._dependences, self._speculates = dependences, speculates
        self._updates_memory = updates_memory(dependences.program)
        self._shared_blocks = 0
        self._parts: LaunchParts | None = None
        self.serial_reason = TOO_SHORT

    @property
    def workers(self) -> int:
        """Returns the number of threads that run the launch."""
        return self._runner.workers

    @property
    def is_undecided(self) -> bool:
        """Returns whether others may still join, if a launch that one worker runs lasts longer than
        it seemed to."""
        return self._parts is None and self.serial_reason == TOO_SHORT

    def begins_shared(self) -> bool:
        """Sets `serial_reason` for the whole launch (`_may_share`), and returns whether several
        workers run it from its start."""
        return self._may_share(self._launch.blocks, self._times.seconds)

    def _may_share(self, blocks: int, seconds_of_block: float) -> bool:
        """Sets `serial_reason` to why one worker is to run `blocks` blocks of `seconds_of_block`
        seconds each: sharing them does not pay, or is not possible; empty if neither. Returns
        whether it is empty."""
        self.serial_reason = (
            self._loss(blocks, seconds_of_block) or self._dependences.serial_reason()
        )
        return not self.serial_reason

    def _loss(self, blocks: int, seconds_of_block: float) -> str:
        """Returns why it does not pay to share `blocks` blocks; empty if it does. Adds the time
        that sharing would save, if it is worth a look, to what launches have missed so far
        (`BlockTimes.pays`)."""
        if self._runner.most == 1:
            return ONE_CORE
        if self._times.is_contended:
            return CONTENDED
        saved = seconds_of_block * blocks * (1 - 1 / self._runner.most)
        if saved < SHORTEST_SECONDS / 2 or not self._times.pays(
            saved, self._dependences.proof_seconds()
        ):
            return TOO_SHORT
        return ""

    def run(self, progress: Progress | None) -> list[EndedPart]:
        """Runs all blocks in parts; returns those, in order (`PartRunner.work_off`)."""
        parts = self._start(range(self._launch.blocks), self._times.seconds)
        return self._work_off(parts, progress)

    def at_pause(self, work: WorkerLaunch) -> None:
        """Decides, when a launch pauses that one worker has begun whole, who runs the blocks that
        have not begun. If sharing pays and no reason forbids it, they become parts, which the other
        workers start on at once. If a reason forbids it, such as blocks that may conflict, and
        speculation pays, they are withheld, for several workers that record what they access to
        run them once the first worker has ended. Else the first worker runs them as well.

        Sets `serial_reason` (`_may_share`) if there are such blocks. Of a kernel with atomics on
        global memory, records how long a block runs while one worker is alone: `_work_off` compares
        with that."""
        begun = work.following - work.blocks.start
        left = len(work.blocks) - begun
        seconds_of_block = work.seconds / max(1, begun)
        if self._updates_memory:
            self._times.record_alone(work.kernel, seconds_of_block)
        if left and self._may_share(left, seconds_of_block):
            self._parts = self._start(work.leave_following(), seconds_of_block, running=1)
        elif left and not self.is_undecided and self._speculates(left * seconds_of_block):
            work.withhold_following()

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
        self._runner.abort()

    def _start(self, blocks: range, seconds_of_block: float, running: int = 0) -> LaunchParts:
        """Notes the number of `blocks`, for the time of one (`_work_off`), and wakes the other
        workers, which run them in parts (`PartRunner.start`)."""
        self._shared_blocks = len(blocks)
        late = self._dependences.late_updates()
        return self._runner.start(blocks, seconds_of_block, running, late)

    def _work_off(self, parts: LaunchParts, progress: Progress | None) -> list[EndedPart]:
        """Runs parts in this thread as well, waits for the other workers, and returns all parts in
        order. Records how long the parts ran, added up, from which later launches estimate the time
        of a block. Of a kernel with atomics on global memory, also records the wall time of a
        block, by which `BlockTimes.record_contention` decides whether workers contend for the same
        memory."""
        ended = self._runner.work_off(parts, progress)
        if self._updates_memory:
            wall = self._runner.wall_seconds / self._shared_blocks
            self._times.record_contention(parts.ended[-1].work.kernel, wall)
        self._times.record(sum(part.work.seconds for part in ended), self._launch.blocks)
        return ended
