"""Implements the compiled engine: chooses the code variant of a launch, runs it, and returns its
counts.

`CompiledEngine` maps a `Launch` to a `KernelVariant` (the properties of a launch that compiled code
depends on), caches code and launch templates, and distributes the blocks over workers. Emitting
code is left to `compilation`, running it to `machine.compiled.running`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from warploom.abi.environment import CountLayout, Slot, Status
from warploom.analysis.static_schedule import size_for_static_schedule
from warploom.compilation.jit import CompiledKernel
from warploom.cost.device_rules import MemoryOptions, access_rules
from warploom.devices.catalog import find_device
from warploom.devices.spec import DeviceSpec
from warploom.ir.options import PRINT_VARIABLE, disabled
from warploom.ir.variant import Debugging, KernelVariant, Observing, Sanitizing, Size
from warploom.isa.kinds import Needs
from warploom.machine.caches import NO_CACHES, empty_caches
from warploom.machine.compiled.block_times import SHORTEST_SECONDS
from warploom.machine.compiled.counted import Counted
from warploom.machine.compiled.launch_template import LaunchTemplate, TieredTemplate
from warploom.machine.compiled.logs import Log
from warploom.machine.compiled.outcome import check_limit, error_of
from warploom.machine.compiled.parts import EndedPart
from warploom.machine.compiled.running import Progress, run_whole
from warploom.machine.compiled.sharing import TOO_SHORT, SharedLaunch
from warploom.machine.compiled.speculation import Speculation, failure_of
from warploom.machine.compiled.tiers import Tiers
from warploom.machine.compiled.work import Words, WorkerLaunch
from warploom.machine.compiled.workers import (
    expected_proof_seconds,
    serial_reason_of,
    tracking_of,
    updates_memory,
)
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.observation import ObservedLaunch
from warploom.machine.tally import Tally
from warploom.machine.warp_layouts import warp_layouts
from warploom.program.program import Program
from warploom.program.tracking import Tracking
from warploom.shapes.warp_layout import warp_layout_of

if TYPE_CHECKING:
    from warploom.ir.plan_listing import PlannedAccess
    from warploom.ir.warp_ir import WarpIR

MOST_TEMPLATES = 64
"""The number of launch templates that are cached."""


class CompiledEngine:
    """Runs programs as machine code and caches what it compiles. `workers` is the most threads
    that share the blocks of a launch, where that saves time and makes no difference to its results;
    None for one on each core."""

    def __init__(
        self,
        spec: DeviceSpec | None = None,
        options: MemoryOptions | None = None,
        workers: int | None = 1,
    ) -> None:
        """`spec`: the device (the default one if None); `options`: choices that the cost rules
        depend on. Raises WarploomError if WARPLOOM_PRINT_AFTER names an unknown pass."""
        self._spec = spec or find_device()
        self._rules = access_rules(self._spec, options)
        self._rules_text = repr(self._rules)
        self._workers = workers
        self._speculation = Speculation(workers)
        self._disabled = disabled()
        if PRINT_VARIABLE in os.environ:
            from warploom.passes.pipeline import printed_passes  # the compiler

            printed_passes()  # a name that is none is an error even if nothing is compiled
        self._simulates_caches = self._rules.caches
        self._templates: dict[tuple[object, ...], TieredTemplate] = {}

    def kernel(
        self, program: Program, launch: Launch, *, records: bool = False, baseline: bool = False
    ) -> CompiledKernel:
        """Returns the machine code of a program for launches like this one, compiled on first use:
        with code that writes a log (`records`); `baseline`: baseline code, which compiles faster,
        else the code that launches begin with now (`Tiers.kernel`)."""
        tiers = self.tiers(program, launch, records=records)
        return tiers.baseline() if baseline else tiers.kernel()

    def tiers(
        self,
        program: Program,
        launch: Launch,
        *,
        records: bool = False,
        debugging: Debugging | None = None,
        observes: Observing | None = None,
    ) -> Tiers:
        """Returns the code tiers of a program for launches like this one: of code that writes a log
        (`records`), has what a debugger needs (`debugging`) or reports events to an observer
        (`observes`). Only code without a log, observer and single steps may be specialised for a
        block size."""
        variant = self._variant(program, launch, records=records)
        # Code for one block size runs warps in a static schedule, in which events would be out of
        # order.
        if observes is not None:
            variant = replace(variant, size=None, observes=observes)
        if debugging is not None:
            size = None if debugging.steps else variant.size
            variant = replace(variant, size=size, debugging=debugging)
        return self._tiers(program, variant)

    def _tiers(self, program: Program, variant: KernelVariant) -> Tiers:
        """Returns the code tiers of a program for one variant and this engine's cost rules; the
        program caches them, so that engines share code."""
        key = self._rules_text, variant
        if key not in program.cache:
            program.cache[key] = Tiers(program, self._rules, variant)
        return cast(Tiers, program.cache[key])

    def llvm_ir(self, program: Program, launch: Launch, *, baseline: bool) -> str:
        """Returns the LLVM IR of optimised or baseline code for launches like this one, before
        LLVM's passes."""
        from warploom.compilation.emission import emit_ir  # the compiler

        layout = CountLayout(program, self._rules)
        variant = self._variant(program, launch, records=False)
        return emit_ir(layout, variant.for_baseline() if baseline else variant).text

    def access_plans(self, program: Program, launch: Launch) -> list[PlannedAccess]:
        """Returns how optimised code for launches like this one performs each memory access (masked
        load, gather and so on), from its Warp IR; for listings."""
        from warploom.ir.plan_listing import planned_accesses  # the compiler

        return planned_accesses(self.warp_ir(program, launch))

    def warp_ir(self, program: Program, launch: Launch) -> WarpIR:
        """Returns the Warp IR of a program after all passes, for optimised code of launches like
        this one."""
        from warploom.passes.pipeline import run_passes  # the compiler

        return run_passes(self.initial_warp_ir(program, launch))

    def initial_warp_ir(self, program: Program, launch: Launch) -> WarpIR:
        """Returns the Warp IR of a program before the first pass."""
        from warploom.passes.pipeline import begin  # the compiler

        variant = self._variant(program, launch, records=False)
        return begin(CountLayout(program, self._rules, variant.warp_layout), variant)

    def _variant(
        self,
        program: Program,
        launch: Launch,
        *,
        records: bool,
        sanitizes: Sanitizing | None = None,
        tracks: Tracking | None = None,
    ) -> KernelVariant:
        """Returns the variant of the code that a launch runs: the layout of threads in warps and
        whether all warps have the same, how the schedule orders lanes, warps and blocks, the passes
        that are left out, whether there are clusters (also if the program needs cluster addresses
        or cancels launches), and whether the code writes a log (`records`), passes events to a
        detector (`sanitizes`) or records what workers access (`tracks`). The block size is in it
        only if the static schedule depends on it (`_size`), and not with a log or accesses for a
        detector."""
        schedule = launch.schedule
        in_order = sanitizes is not None and bool(sanitizes.accesses)
        return KernelVariant(
            warp_layout=warp_layout_of(launch.block),
            alike=max(warp_layouts(launch.block)) == 0,
            size=None if records or in_order else self._size(program, launch.block),
            independent=schedule.independent,
            interleaves_paths=schedule.interleaves_paths,
            shuffles=schedule.shuffles,
            records=records,
            sanitizes=sanitizes,
            disabled=self._disabled,
            clusters=launch.cluster_blocks > 1
            or Needs.CLUSTER_ADDRESSES in program.needs
            or Needs.LAUNCH_CANCELLATION in program.needs,
            tracks=tracks,
        )

    def _size(self, program: Program, block: Size) -> Size | None:
        """Returns the block size that a program is compiled for if its static schedule depends on
        it; else None. The program caches the answer."""
        key = "static schedule size", block
        if key not in program.cache:
            program.cache[key] = size_for_static_schedule(program, block)
        return cast("Size | None", program.cache[key])

    def _template(
        self,
        program: Program,
        launch: Launch,
        sanitizes: Sanitizing | None = None,
        tracks: Tracking | None = None,
    ) -> TieredTemplate:
        """Returns the template of launches like this one (program, grid, block and so on, what a
        detector checks, and which accesses are recorded), created on first use; then the oldest
        beyond MOST_TEMPLATES is evicted and its buffers freed."""
        # A template keeps its program alive, so no other program gets that id.
        key = id(program), launch.configuration, sanitizes, tracks
        template = self._templates.get(key)
        if template is None:
            variant = self._variant(
                program, launch, records=False, sanitizes=sanitizes, tracks=tracks
            )
            template = TieredTemplate(self._tiers(program, variant), launch)
            # Dictionaries keep insertion order, so the first key is the oldest.
            while len(self._templates) >= MOST_TEMPLATES:
                oldest = self._templates.pop(next(iter(self._templates)), None)
                if oldest is not None:
                    oldest.drop_buffers()
            self._templates[key] = template
        return template

    def _caches(self, program: Program, launch: Launch, memory: DeviceMemory) -> Words:
        """Returns the simulated caches before a launch, NO_CACHES if the rules do not count
        them."""
        if not self._simulates_caches:
            return NO_CACHES
        return empty_caches(self._spec, self._rules, program, launch, memory)

    def launch(
        self,
        program: Program,
        launch: Launch,
        memory: DeviceMemory,
        progress: Progress | None = None,
    ) -> Tally:
        """Runs a launch to its end and returns its tally. Raises KernelFault, DeadlockError,
        InstructionLimit, LaunchCancelled, or the exception of a host callback."""
        return self.run(program, launch, memory, progress)()

    def run(
        self,
        program: Program,
        launch: Launch,
        memory: DeviceMemory,
        progress: Progress | None = None,
    ) -> Callable[[], Tally]:
        """Runs a launch to its end, its blocks distributed over workers unless there is a reason to
        run them in one (`serial_reason_of`); calls `progress` now and then (`running.Progress`).
        Returns a function that builds the tally when it is called. Raises KernelFault,
        DeadlockError, InstructionLimit, LaunchCancelled, or the exception of a host callback, for
        the first part that did not end; with `max_instructions`, the tally is built here, since
        only it shows that the last slice exceeded the limit."""
        template = self._template(program, launch)
        caches = self._caches(program, launch, memory)

        def prepare(blocks: range, _worker: int = 0) -> WorkerLaunch:
            """Returns a part of the launch with these blocks, ready to run."""
            code = template.current()
            return WorkerLaunch.prepare(code, launch, memory, caches, blocks, template)

        def shared_launch() -> SharedLaunch:
            """Returns what shares the blocks among workers."""
            return SharedLaunch(
                prepare,
                launch,
                template.block_times,
                self._workers,
                lambda: serial_reason_of(program, launch, memory, caches=self._simulates_caches),
                lambda: expected_proof_seconds(program, launch, memory),
                updates_memory(program),
            )

        shared = None
        may_share = launch.blocks > 1 and self._workers != 1
        if may_share and template.block_times.is_long:
            shared = shared_launch()
            if shared.begins_shared():
                return _counts(shared.run(progress), shared)
            if not shared.is_undecided:
                seconds = template.block_times.seconds * launch.blocks
                tally = self._speculate(program, launch, memory, seconds, progress)
                if tally is not None:
                    return tally
        work = prepare(range(launch.blocks))
        is_undecided = shared is None or shared.is_undecided
        if may_share and is_undecided and not work.launch_template.calls_host:
            shared, status = _run_until_shared(work, shared, shared_launch, progress)
            if shared is not None:
                return _counts(shared.complete(work, status, progress), shared)
        else:
            status = _run_alone(work, progress)
        if status != Status.ENDED:
            raise error_of(work, Status(status))
        if may_share and work.seconds >= SHORTEST_SECONDS:
            template.block_times.record(work.seconds, launch.blocks)
        reason = shared.serial_reason if shared is not None else TOO_SHORT if may_share else ""
        reason = (may_share and failure_of(program)) or reason
        counted = Counted.of(work, reason)
        work.launch_template.give_back(work.buffers)
        return _checked(counted, work)

    def _speculate(
        self,
        program: Program,
        launch: Launch,
        memory: DeviceMemory,
        seconds: float,
        progress: Progress | None,
    ) -> Callable[[], Tally] | None:
        """Runs a launch, for which one worker would need so many seconds, on several whose accesses
        are recorded, if blocks may conflict and that saves time; returns a function that builds its
        tally, None if one worker has to run it."""
        tracking = tracking_of(program, launch, memory, caches=self._simulates_caches)
        if tracking is None:
            return None
        code = self._template(program, launch, tracks=tracking)
        if not self._speculation.pays(program, code, seconds):
            return None
        return self._speculation.run(launch, memory, code, seconds, progress)

    def record(
        self,
        program: Program,
        launch: Launch,
        memory: DeviceMemory,
        log: Log | None,
        progress: Progress | None = None,
        blocks: range | None = None,
        observer: ObservedLaunch | None = None,
        *,
        baseline: bool = False,
    ) -> tuple[WorkerLaunch, Status]:
        """Runs a launch, or some of its blocks, in one worker and in code (baseline code if
        `baseline`) that writes a log and calls an observer, if these are given; returns the
        worker's launch in its final state, and the status in which it ended. A fault, a deadlock, a
        cancellation (PAUSED) or a failed host callback is not raised here: `error_of` returns the
        exception for the status."""
        wanted = None if observer is None else observer.observation.wanted
        tiers = self.tiers(program, launch, records=log is not None, observes=wanted)
        template = None if baseline else TieredTemplate(tiers, launch)
        if template is None:
            launch_template = LaunchTemplate.of(tiers.baseline(), launch)
        else:
            launch_template = template.current()
        caches = self._caches(program, launch, memory)
        part = range(launch.blocks) if blocks is None else blocks
        work = WorkerLaunch.prepare(launch_template, launch, memory, caches, part, template)
        if log is not None:
            work.environment[Slot.LOG_AT] = int(log.data.ctypes.data)
        if observer is not None:
            work.environment[Slot.OBSERVER_AT] = int(observer.table.words.ctypes.data)
        return work, Status(_run_alone(work, progress))

    def sanitize(
        self,
        program: Program,
        launch: Launch,
        memory: DeviceMemory,
        detector: int,
        wanted: Sanitizing,
        progress: Progress | None = None,
    ) -> tuple[WorkerLaunch, Status]:
        """Runs a whole launch in one worker, in code that passes the `wanted` events to a detector,
        whose state is at address `detector`; returns the worker's launch in its final state, and
        the status in which it ended. A fault, a deadlock, a cancellation (PAUSED) or a failed host
        callback is not raised here: `error_of` returns the exception for the status."""
        template, part = self._template(program, launch, wanted), range(launch.blocks)
        caches = self._caches(program, launch, memory)
        work = WorkerLaunch.prepare(template.current(), launch, memory, caches, part, template)
        work.environment[Slot.DETECTOR_AT] = detector
        return work, Status(_run_alone(work, progress))


def _run_alone(work: WorkerLaunch, progress: Progress | None) -> int:
    """Runs a launch of one part and returns the Status in which it ended."""
    if progress is None and not work.launch_template.calls_host:
        return work.run()
    return run_whole(work, progress)


def _run_until_shared(
    work: WorkerLaunch,
    shared: SharedLaunch | None,
    shared_launch: Callable[[], SharedLaunch],
    progress: Progress | None,
) -> tuple[SharedLaunch | None, int]:
    """Runs a launch of one part in this thread; from a pause on, when it has run for
    SHORTEST_SECONDS, others may join (`SharedLaunch.at_pause`). Returns what shares the blocks,
    `shared` or made by `shared_launch` when it is needed, None if the launch ended before, and the
    Status in which the part ended."""

    def at_pause() -> None:
        """Calls `progress`, if given, and lets others join when it is time."""
        nonlocal shared
        if progress is not None:
            progress(work.blocks_done, work.launch.blocks)
        if work.seconds >= SHORTEST_SECONDS:
            if shared is None:
                shared = shared_launch()
            if shared.is_undecided:
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
