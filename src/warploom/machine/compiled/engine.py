"""The compiled engine: gives a kernel's machine code its memory, lets it run, reads the counts."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from warploom.abi.environment import CountLayout, Slot, Status
from warploom.analysis.shape_transfer import warp_layout_of
from warploom.analysis.static_schedule import Size, size_for_static_schedule
from warploom.compilation.jit import CompiledKernel
from warploom.cost.device_rules import MemoryOptions, access_rules
from warploom.devices.catalog import find_device
from warploom.devices.spec import DeviceSpec
from warploom.ir.options import PRINT_VARIABLE, disabled
from warploom.ir.variant import Debugging, KernelVariant, Observing, Sanitizing
from warploom.machine.compiled.caches import empty_caches
from warploom.machine.compiled.configurations import Configuration
from warploom.machine.compiled.counted import Counted
from warploom.machine.compiled.launch_template import LaunchTemplate
from warploom.machine.compiled.logs import Log
from warploom.machine.compiled.outcome import check_limit, error_of
from warploom.machine.compiled.running import Progress, run_all
from warploom.machine.compiled.tiers import Tiers
from warploom.machine.compiled.work import Work
from warploom.machine.compiled.workers import shares, why_alone
from warploom.machine.launch import Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.observation import ObservedLaunch
from warploom.machine.tally import Tally
from warploom.machine.warp_layouts import warp_layouts
from warploom.program.effects.clusters import cancels_launches, maps_addresses
from warploom.program.program import Program

if TYPE_CHECKING:
    from warploom.ir.plan_listing import PlannedAccess
    from warploom.ir.warp_ir import WarpIR

KEPT = 64
"""So many configurations of launches are remembered."""


class CompiledEngine:
    """Runs programs as machine code; keeps what it compiled. `workers` is how many threads share
    the blocks of a launch, where that cannot be told from its results."""

    def __init__(
        self,
        spec: DeviceSpec | None = None,
        options: MemoryOptions | None = None,
        workers: int = 1,
    ) -> None:
        self._spec = spec or find_device()
        self._rules = access_rules(self._spec, options)
        self._rules_text = repr(self._rules)
        self._workers = workers
        self._disabled = disabled()
        if PRINT_VARIABLE in os.environ:
            from warploom.passes.pipeline import printed_passes  # the compiler

            printed_passes()  # a name that is none is an error even if nothing is compiled
        self._configurations: dict[tuple[object, ...], Configuration] = {}

    def kernel(
        self,
        program: Program,
        launch: Launch,
        *,
        records: bool = False,
        sanitizes: Sanitizing | None = None,
        debugging: Debugging | None = None,
        observes: Observing | None = None,
        baseline: bool = False,
    ) -> CompiledKernel:
        """Return the machine code of a program for launches like this one, compiled when it is
        first asked for; `records`: with the code that writes a log, `sanitizes`: what a detector
        takes, `debugging`: the needs of a debugger, `observes`: the events of an observer;
        `baseline`: as baseline code, which is compiled faster."""
        variant = self._variant(program, launch, records=records, sanitizes=sanitizes)
        if observes is not None:
            variant = replace(variant, size=None, observes=observes)
        if debugging is not None:
            size = None if debugging.steps else variant.size
            variant = replace(variant, size=size, debugging=debugging)
        tiers = self._tiers(program, variant)
        return tiers.baseline() if baseline else tiers.optimised()

    def _tiers(self, program: Program, variant: KernelVariant) -> Tiers:
        """Returns the code of a program for launches of one variant, kept with the program."""
        key = self._rules_text, variant
        if key not in program.cache:
            program.cache[key] = Tiers(program, self._rules, variant)
        return cast(Tiers, program.cache[key])

    def llvm_ir(self, program: Program, launch: Launch, *, baseline: bool) -> str:
        """Returns the LLVM IR that a program becomes for launches like this one, before LLVM's
        passes: of optimised code, or of baseline code."""
        from warploom.compilation.emission import emit_ir  # the compiler

        layout = CountLayout(program, self._rules)
        variant = self._variant(program, launch, records=False)
        return emit_ir(layout, variant.for_baseline() if baseline else variant).text

    def access_plans(self, program: Program, launch: Launch) -> list[PlannedAccess]:
        """Returns how optimised code for launches like this one does a program's accesses."""
        from warploom.ir.plan_listing import planned_accesses  # the compiler

        return planned_accesses(self.warp_ir(program, launch))

    def warp_ir(self, program: Program, launch: Launch) -> WarpIR:
        """Returns what the passes find of a program, for optimised code of launches like this
        one."""
        from warploom.passes.pipeline import warp_ir  # the compiler

        variant = self._variant(program, launch, records=False)
        return warp_ir(CountLayout(program, self._rules, variant.warp_layout), variant)

    def _variant(
        self,
        program: Program,
        launch: Launch,
        *,
        records: bool,
        sanitizes: Sanitizing | None = None,
    ) -> KernelVariant:
        schedule = launch.schedule
        in_order = sanitizes is not None and bool(sanitizes.accesses)
        return KernelVariant(
            warp_layout=warp_layout_of(launch.block),
            alike=max(warp_layouts(launch.block)) == 0,
            size=None if records or in_order else self._size(program, launch.block),
            independent=schedule.independent,
            mixes=schedule.mixes,
            shuffles=schedule.shuffles,
            records=records,
            sanitizes=sanitizes,
            disabled=self._disabled,
            clusters=launch.cluster_blocks > 1
            or maps_addresses(program)
            or cancels_launches(program),
        )

    def _size(self, program: Program, block: Size) -> Size | None:
        """Return the size of blocks for which alone a program is compiled, if for one."""
        key = "size that tells", block
        if key not in program.cache:
            program.cache[key] = size_for_static_schedule(program, block)
        return cast("Size | None", program.cache[key])

    def _configuration(
        self, program: Program, launch: Launch, sanitizes: Sanitizing | None = None
    ) -> Configuration:
        """Return what launches like this one have in common."""
        key = id(program), launch.configuration, sanitizes
        found = self._configurations.get(key)
        if found is None:
            variant = self._variant(program, launch, records=False, sanitizes=sanitizes)
            found = Configuration(self._tiers(program, variant), launch)
            while len(self._configurations) >= KEPT:
                oldest = self._configurations.pop(next(iter(self._configurations)), None)
                if oldest is not None:
                    oldest.drop_buffers()
            self._configurations[key] = found
        return found

    def launch(
        self,
        program: Program,
        launch: Launch,
        memory: DeviceMemory,
        progress: Progress | None = None,
    ) -> Tally:
        """Run a launch to its end. Raises KernelFault, DeadlockError or InstructionLimit."""
        return self.run(program, launch, memory, progress)()

    def run(
        self,
        program: Program,
        launch: Launch,
        memory: DeviceMemory,
        progress: Progress | None = None,
    ) -> Callable[[], Tally]:
        """Run a launch to its end; return what makes its tally, which is made at the first call.
        Raises as `launch` does."""
        configuration = self._configuration(program, launch)
        launch_template = configuration.launch_template()
        caches = empty_caches(self._spec, self._rules, program, launch, memory)
        alone = ""
        if self._workers > 1:
            alone = why_alone(program, launch, memory, caches=self._rules.caches)
        parts = shares(launch.blocks, 1 if alone else self._workers)
        works = [
            Work.prepare(launch_template, launch, memory, caches, part, configuration)
            for part in parts
        ]
        for work, status in zip(works, run_all(works, progress), strict=True):
            if status != Status.ENDED:
                raise error_of(work, Status(status))
        counted = Counted.of(works, alone)
        for work in works:
            work.launch_template.give_back(work.buffers)
        if launch.max_instructions is None:
            return counted
        tally = counted()
        check_limit(tally, works[0])
        return lambda: tally

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
    ) -> tuple[Work, Status]:
        """Run a launch, or those blocks of it, by code that writes a log, if there is one, and
        calls an observer, if there is one; gives what that leaves behind, and how it ended."""
        wanted = None if observer is None else observer.observation.wanted
        kernel = self.kernel(
            program, launch, records=log is not None, observes=wanted, baseline=baseline
        )
        launch_template = LaunchTemplate.of(kernel, launch)
        caches = empty_caches(self._spec, self._rules, program, launch, memory)
        part = range(launch.blocks) if blocks is None else blocks
        work = Work.prepare(launch_template, launch, memory, caches, part)
        if log is not None:
            work.environment[Slot.LOG_AT] = int(log.data.ctypes.data)
        if observer is not None:
            work.environment[Slot.OBSERVER_AT] = int(observer.table.ctypes.data)
        [status] = run_all([work], progress)
        return work, Status(status)

    def sanitize(
        self,
        program: Program,
        launch: Launch,
        memory: DeviceMemory,
        detector: int,
        wanted: Sanitizing,
        progress: Progress | None = None,
    ) -> tuple[Work, Status]:
        """Run a launch by code that has a detector, whose state is at that address, take the wanted
        events; gives what that leaves behind, and how it ended."""
        launch_template = self._configuration(program, launch, wanted).launch_template()
        caches = empty_caches(self._spec, self._rules, program, launch, memory)
        work = Work.prepare(launch_template, launch, memory, caches, range(launch.blocks))
        work.environment[Slot.DETECTOR_AT] = detector
        [status] = run_all([work], progress)
        return work, Status(status)
