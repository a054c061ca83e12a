"""Launches that are recorded for timing, and their replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from warploom.abi.environment import Status
from warploom.core.errors import WarploomError
from warploom.cost.device_rules import access_rules
from warploom.devices.timing import TimingSpec, find_timing
from warploom.host.engines import Progress
from warploom.host.loaded import LoadedKernel
from warploom.host.records.replayed import code_of
from warploom.machine.caches import l1_bytes
from warploom.machine.compiled.counted import Counted, combined_tally
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.compiled.logs import Log
from warploom.machine.compiled.outcome import check_limit, error_of
from warploom.machine.compiled.workers import BlockDependences
from warploom.machine.launch import Launch, shared_bytes
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.observation import Observation
from warploom.machine.tally import Tally
from warploom.machinecode.counted import MachineCounts
from warploom.program.accesses import route_of
from warploom.program.program import Program
from warploom.timing import layout as w
from warploom.timing.engine.state import LaunchSizes, setting_of
from warploom.timing.policies import (
    AddressMapping,
    CacheModel,
    Policies,
    Prefetcher,
    ReplacementPolicy,
    WarpScheduler,
    cache_model,
)
from warploom.timing.record.order import issue_order
from warploom.timing.record.patterns import PatternTable
from warploom.timing.record.predicted import alignment_period, with_predicted_blocks
from warploom.timing.record.record import Record
from warploom.timing.record.records import RecordBuilder
from warploom.timing.record.spins import load_polling_loops, poll_barrier_warps
from warploom.timing.records import BlockOperations, TimedOperation
from warploom.timing.replay import Replay, ReplayOutcome
from warploom.timing.replaying import Replaying
from warploom.timing.result import Timing
from warploom.timing.work.costs import WorkCosts
from warploom.timing.work.operations import MachineWork, work_of

MOST_WORDS = 1 << 23
"""So large a record may become (64 MiB); blocks beyond are not in it."""

ROWS_OF_A_PART = 1 << 17
"""About so many rows of the log are made before they are taken in."""

FIRST_BLOCKS, GROWTH = 16, 16
"""Blocks of the first part, and how many times as many as before a part can have."""

LEAST_WAVES = 4

FILLED_WAVES = 2
"""A record of fewer waves is filled up (`timing.record.predicted`)."""

MOST_REPLAYED = 20_000_000
"""Without a sample that is asked for, about so many operations are replayed at most."""


class TimedRun:
    """Runs a launch part by part, each with a log of its own, and keeps the record."""

    def __init__(
        self,
        kernel: LoadedKernel,
        observation: Observation | None = None,
        *,
        keeps_masks: bool = False,
    ) -> None:
        self._kernel, self._observation, self._keeps_masks = kernel, observation, keeps_masks
        context = kernel.context
        self._engine = CompiledEngine(context.spec, context.options)
        self.record: Record | None = None
        self.executed_blocks = 0

    def execute(
        self, program: Program, launch: Launch, memory: DeviceMemory, progress: Progress | None
    ) -> Callable[[], Tally]:
        """Runs the launch to its end. Raises KernelFault, DeadlockError or InstructionLimit."""
        context = self._kernel.context
        rules = access_rules(context.spec, replace(context.options, caches=True))
        patterns = PatternTable(lambda index: route_of(program.instructions[index]), rules)
        recorder = RecordBuilder(program, launch, patterns, memory.base, self._keeps_masks)
        counted: list[Counted] = []
        last = self._last_block(launch)
        part = self._first_part(program, launch, memory, last)
        recorded = _chosen(launch, part, last)
        observer = self._observation.begin(program) if self._observation else None
        while True:
            log = _log(launch, recorded) if recorded else None
            given = program, launch, memory, log, progress, part
            work, status = self._engine.record(*given, observer, baseline=context.sampled)
            if status is not Status.ENDED:
                raise error_of(work, status)
            counted.append(Counted.of(work))
            whole = log is not None and recorder.add(log, recorded) == len(recorded)
            self.executed_blocks = part.stop
            if whole and part.start == 0:
                last = self._aligned(launch, last, recorder)
            part = _next_part(part, last, log)
            recorded = part if whole and recorder.size < MOST_WORDS else range(0)
            if not part:
                break
        placement = None
        if program.shows_multiprocessor:
            placement = launch.sms_of_slots()[work.slots_of_blocks()]
        elif launch.placement is not None:
            placement = np.array([launch.sm_of(block) for block in range(launch.blocks)], np.int64)
        self.record = replace(recorder.record(), placement=placement)
        if observer is not None:
            observer.check()

        @lru_cache(maxsize=1)
        def tally() -> Tally:
            warps = self.executed_blocks * launch.warps_per_block
            return replace(combined_tally(counted), workers=1, launched_warps=warps)

        if launch.max_instructions is not None:  # then all blocks were one part
            check_limit(tally(), work)
        return tally

    def _last_block(self, launch: Launch) -> int:
        """Returns the block before which execution ends: where the device asks for a sample, the
        first blocks of every axis along which the blocks that are resident at once lie, so that the
        addresses of the others can be predicted. They never need later blocks, but in a cooperative
        launch. The first part can show that more are needed
        (`timing.record.predicted.repetition`)."""
        if not self._kernel.context.sampled or launch.cooperative:
            return launch.blocks
        resident = resident_blocks(launch)
        x, y, _ = launch.grid
        steps = [step + 1 for step in (x, x * y) if step < resident]
        return min(resident, max(FIRST_BLOCKS, *steps, 1))

    def _first_part(
        self, program: Program, launch: Launch, memory: DeviceMemory, last: int
    ) -> range:
        """Returns the blocks to run first. Independent blocks run in parts; all blocks up to `last`
        run at once where they may depend on each other or share a limit of instructions."""
        sampled = self._kernel.context.sampled
        kernel = self._engine.kernel(program, launch, records=True, baseline=sampled)
        dependences = BlockDependences(program, launch, memory, caches=False)
        independent = not kernel.suspends or not dependences.serial_reason()
        in_one_run = launch.cooperative or launch.max_instructions is not None or not independent
        return range(last if in_one_run else min(FIRST_BLOCKS, last))

    def _aligned(self, launch: Launch, last: int, recorder: RecordBuilder) -> int:
        """Returns the block before which execution ends, once the first part is recorded: of a
        sample, at least those until accesses along x begin at the same bytes of lines again."""
        if not self._kernel.context.sampled or launch.max_instructions is not None:
            return last
        return max(last, min(resident_blocks(launch), alignment_period(recorder.record())))


def resident_blocks(launch: Launch) -> int:
    """Returns how many blocks of a launch are resident at once, from the first."""
    return min(launch.blocks, launch.schedule.resident_blocks)


def _chosen(launch: Launch, part: range, last: int) -> range:
    """Returns the blocks of a first part that are recorded: a few waves, where it is all that is
    executed."""
    most = LEAST_WAVES * launch.schedule.resident_blocks
    return part if len(part) < last else range(min(most, last))


def _log(launch: Launch, blocks: range) -> Log:
    """Returns an empty log for all steps of the warps of these blocks."""
    warps = launch.blocks * launch.warps_per_block
    return Log.empty(launch, warps=warps, steps=1 << 40, blocks=blocks)


def _next_part(part: range, blocks: int, log: Log | None) -> range:
    """Returns the blocks after a part: as many as make a log of the wished size, and not many more
    than before; all that are left, where they are not recorded."""
    if log is None:
        return range(part.stop, blocks)
    head = log.head
    rows = head.entries.count + head.accesses.count + 4 * head.scattered.count
    count = min(ROWS_OF_A_PART * len(part) // max(1, rows), GROWTH * len(part))
    return range(part.stop, min(blocks, part.stop + max(1, count)))


@dataclass(frozen=True)
class ReplayOptions:
    """Holds the options of a replay (`host.run.TimeOptions` has what each is)."""

    scheduler: str | WarpScheduler | None = None
    prefetcher: Prefetcher | None = None
    l1: CacheModel | ReplacementPolicy | None = None
    l2: CacheModel | ReplacementPolicy | None = None
    dram: AddressMapping | None = None
    sample: int | None = None
    workers: int | None = None
    timeline: int = 0
    spec: TimingSpec | None = None
    code: str | None = None
    caches: str = "cold"

    def policies(self, timing: TimingSpec) -> Policies:
        """Returns the policies of the replay: the device's own scheduler (`timing`) without
        another."""
        caches = cache_model(self.l1), cache_model(self.l2)
        return Policies(self.scheduler or timing.policy, self.prefetcher, *caches, self.dram)


def replaying(
    kernel: LoadedKernel,
    record: Record | None,
    machine: Callable[[], MachineCounts],
    options: ReplayOptions,
) -> Replaying:
    """Returns the replay of a recorded launch; see `Run.replay`. `machine` returns its machine
    instructions, if the kernel has machine code."""
    if record is None:
        raise WarploomError("this launch was not recorded; create the device with record=True")
    device, timing = kernel.context.spec, options.spec or find_timing(kernel.context.spec)
    policies, timeline = options.policies(timing), options.timeline
    if record.blocks == 0:
        raise WarploomError(
            f"the record of {kernel.program.title} exceeds the size limit; launch fewer blocks, or "
            "give them less work"
        )
    if timeline and options.code == "machine":
        raise WarploomError(
            "a timeline shows PTX instructions: omit code='machine', or the timeline"
        )
    wave = min(device.sms, record.launch.blocks) * _block_slots(kernel, record)
    record = with_predicted_blocks(
        record, min(record.launch.blocks, (options.sample or FILLED_WAVES) * wave)
    )
    costs = WorkCosts(device, timing)
    replayed = code_of(kernel, record, machine, costs, options.code, timeline=timeline > 0)
    record, work = replayed.record, replayed.work
    shape = _shape(kernel, record, work)
    blocks = _sampled(record, work, shape, options.sample)
    met = poll_barrier_warps(record.poll_counts, record.launch.warps_per_block)
    if met and blocks == record.launch.blocks:
        program = kernel.program
        work = work_of(program, costs, issue_order(program), load_polling_loops(program).values())
    shape = shape._replace(sms=_sms_with_blocks(device.sms, record, blocks), poll_barrier_warps=met)
    setting = setting_of(device, timing, shape, policies, timeline)

    def timed(outcome: ReplayOutcome) -> Timing:
        basis = replayed.basis
        name = policies.name
        return Timing(kernel.program, device, timing, name, record, work, outcome, basis)

    earlier = None
    if options.caches == "warm":
        earlier = Replay(setting, work, record, blocks, options.workers).run()
    return Replaying(Replay(setting, work, record, blocks, options.workers, earlier), timed)


def _block_slots(kernel: LoadedKernel, record: Record) -> int:
    """Returns how many blocks of the launch an SM holds."""
    return max(1, kernel.occupancy(record.launch).active_blocks)


def _sms_with_blocks(sms: int, record: Record, blocks: int) -> int:
    """Returns the number of SMs to replay, of the `sms` of a device: the first ones, up to the last
    that has one of the first `blocks` blocks."""
    count = min(sms, blocks)
    if record.placement is None:
        return count
    return max(count, 1 + int(record.placement[:blocks].max(initial=0)))


def _shape(kernel: LoadedKernel, record: Record, work: MachineWork) -> LaunchSizes:
    launch, spec = record.launch, kernel.context.spec
    return LaunchSizes(
        max(1, work.register_count),
        len(work.operations),
        bool((work.operations[:, TimedOperation.kind] == w.COPY).any()),
        launch.warps_per_block,
        _block_slots(kernel, record),
        max(0, l1_bytes(spec, shared_bytes(kernel.program, launch), launch)),
        record.warps.shape[1],
        min(spec.sms, launch.blocks),
        phases=record.phases,
        bulk=record.copies,
        clusters=launch.cluster_blocks > 1,
    )


def _sampled(record: Record, work: MachineWork, shape: LaunchSizes, sample: int | None) -> int:
    """Returns how many blocks are replayed: those of the waves that are asked for, else as many as
    make MOST_REPLAYED operations, but a few waves at least."""
    wave = shape.sms * shape.block_slots
    if sample is not None:
        return min(record.blocks, sample * wave)
    sizes = work.blocks[:, BlockOperations.stop] - work.blocks[:, BlockOperations.start]
    steps = np.concatenate([[0], np.cumsum(sizes[record.entries[:, 0]])])
    of_stream = steps[record.streams[:, 1]] - steps[record.streams[:, 0]]
    done = np.cumsum(of_stream[record.warps[:, 0]])[:: record.launch.warps_per_block]
    if not len(done) or done[-1] <= MOST_REPLAYED:
        return record.blocks
    waves = max(LEAST_WAVES, int(np.searchsorted(done, MOST_REPLAYED)) // wave)
    return min(record.blocks, waves * wave)
