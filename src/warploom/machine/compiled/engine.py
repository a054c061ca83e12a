"""Implements the compiled engine: chooses the code variant of a launch, runs it, and returns its
counts.

`CompiledEngine` maps a `Launch` to a `KernelVariant` (the properties of a launch that compiled code
depends on), caches code and launch templates, and distributes the blocks over workers. Emitting
code is left to `compilation`, running it to `machine.compiled.running`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
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
from warploom.machine.compiled.distribution import DistributedLaunch, run_alone
from warploom.machine.compiled.launch_template import LaunchTemplate, TieredTemplate
from warploom.machine.compiled.logs import Log
from warploom.machine.compiled.running import Progress
from warploom.machine.compiled.speculation import Speculation
from warploom.machine.compiled.tiers import Tiers
from warploom.machine.compiled.work import Words, WorkerLaunch
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
        depend on; `workers` as above. Raises WarploomError if WARPLOOM_PRINT_AFTER names an unknown
        pass."""
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
        (`observes`). Only code without a log, observer and single steps may be specialized for a
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
        """Returns the LLVM IR of optimized or baseline code for launches like this one, before
        LLVM's passes."""
        from warploom.compilation.emission import emit_ir  # the compiler

        layout = CountLayout(program, self._rules)
        variant = self._variant(program, launch, records=False)
        return emit_ir(layout, variant.for_baseline() if baseline else variant).text

    def access_plans(self, program: Program, launch: Launch) -> list[PlannedAccess]:
        """Returns how optimized code for launches like this one performs each memory access (masked
        load, gather and so on), from its Warp IR; for listings."""
        from warploom.ir.plan_listing import planned_accesses  # the compiler

        return planned_accesses(self.warp_ir(program, launch))

    def warp_ir(self, program: Program, launch: Launch) -> WarpIR:
        """Returns the Warp IR of a program after all passes, for optimized code of launches like
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
        """Returns the variant of the code that a launch runs: the layout of threads in warps, and
        whether all warps have the same; how the schedule orders lanes, warps and blocks; the passes
        that are left out; and whether there are clusters, also if the program needs cluster
        addresses or cancels launches. It states as well whether the code writes a log (`records`),
        passes events to a detector (`sanitizes`) or records what workers access (`tracks`). The
        block size is in it only if the static schedule depends on it (`_size`), and not with a log
        or accesses for a detector."""
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
            concurrent=schedule.any_order,
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
        """Runs a launch to its end (`DistributedLaunch.run`); calls `progress` now and then
        (`running.Progress`). Returns a function that builds the tally when it is called. Raises
        KernelFault, DeadlockError, InstructionLimit, LaunchCancelled, or the exception of a host
        callback."""
        template, caches = self._template(program, launch), self._caches(program, launch, memory)

        distributed = DistributedLaunch(
            program,
            launch,
            memory,
            template,
            caches,
            self._workers,
            self._speculation,
            self._template,
        )
        return distributed.run(progress)

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
        return work, Status(run_alone(work, progress))

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
        return work, Status(run_alone(work, progress))
