"""Runs a launch with the detector, and turns its reports, and errors that end the launch, into
findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from warploom.core.errors import (
    DeadlockError,
    DeviceTrap,
    InstructionLimit,
    KernelFault,
    MemoryFault,
    WarploomError,
)
from warploom.machine.compiled.running import Progress
from warploom.machine.launch import WARP_SIZE, Launch
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.tally import Tally
from warploom.program.program import Program
from warploom.sanitize.active_masks import mask_findings
from warploom.sanitize.findings import ERROR, Finding, Thread
from warploom.sanitize.kernel_heap import KernelHeap
from warploom.sanitize.report import FindingSite, conflicts_of, findings_of, sites_of_findings
from warploom.sanitize.state import Detector, Words
from warploom.sanitize.stream_order import IssuedWork
from warploom.sanitize.streams import EndedLaunch, Streams

if TYPE_CHECKING:
    from warploom.machine.compiled.engine import CompiledEngine
    from warploom.machine.reference.machine import ReferenceEngine

SYNC_FAULTS = ("not a member", "bad barrier", "invalid mbarrier", "bad count")
"""Kinds of fault that the tool "sync" reports."""


@dataclass
class SanitizedLaunch:
    """Runs one launch on an engine with some tools; `findings` has what they found, `conflicts` the
    pairs of instructions that are not ordered, by their numbers, and `sites` the accesses of
    findings. A launch that was `issued` among `streams` is checked against the work of other
    streams, too. A fault or a deadlock is a finding; it ends a launch that cannot continue."""

    engine: CompiledEngine | ReferenceEngine
    tools: tuple[str, ...]
    unwritten: Mapping[int, Words]
    streams: Streams | None = None
    issued: IssuedWork | None = None
    findings: list[Finding] = field(default_factory=list[Finding])
    conflicts: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    sites: list[FindingSite] = field(default_factory=list[FindingSite])

    def execute(
        self, program: Program, launch: Launch, memory: DeviceMemory, progress: Progress | None
    ) -> Callable[[], Tally]:
        """Runs the launch; returns a function that makes its tally. Raises WarploomError for a
        device whose warps do not have 32 lanes, and if the detector's memory is exhausted."""
        if launch.warp_size != WARP_SIZE:
            raise WarploomError(
                f"sanitizers require warps of {WARP_SIZE} lanes, not {launch.warp_size}: omit "
                "sanitize or warp_size"
            )
        concurrent, early = self.issued is not None, self._may_begin_early()
        detector = Detector.of(
            program, launch, memory, self.tools, self.unwritten, touched=concurrent, early=early
        )
        with KernelHeap(detector).watching(memory):
            if _is_compiled(self.engine):
                counted, error = _run_on_compiled(self.engine, detector, memory, progress)
            else:
                counted, error = _run_on_reference(self.engine, detector, memory)
        if error is None:
            detector.end()
            if "sync" in self.tools:
                self.findings += mask_findings(program, launch, counted)
        self.findings += findings_of(detector)
        self.conflicts |= conflicts_of(detector)
        self.sites += sites_of_findings(detector)
        if error is not None:
            self.findings.append(_error_finding(error))
        if self.streams is not None and self.issued is not None:
            what, line = f"kernel {program.title}", partial(_line_of, program)
            ended = EndedLaunch(what, detector.touched(), line, detector.triggered())
            early_parts = detector.touched(early=True) if early else []
            self.findings += self.streams.end(self.issued, ended, early_parts)
        detector.write_back_written()
        return counted

    def _may_begin_early(self) -> bool:
        """Returns whether the launch may begin before the previous one in its stream has ended."""
        if self.streams is None or self.issued is None:
            return False
        return self.streams.begin_of(self.issued) is not None


def _is_compiled(engine: CompiledEngine | ReferenceEngine) -> TypeGuard[CompiledEngine]:
    """Returns whether an engine is the compiled one, without an import of either."""
    return hasattr(engine, "sanitize")


def _line_of(program: Program, instruction: int) -> str:
    """Returns the source line of an instruction; "" if its number is negative."""
    return program.line(instruction) if instruction >= 0 else ""


def _run_on_reference(
    engine: CompiledEngine | ReferenceEngine, detector: Detector, memory: DeviceMemory
) -> tuple[Callable[[], Tally], WarploomError | None]:
    """Runs a launch on the reference machine; returns its tally and the error that ended it."""
    from warploom.machine.reference.machine import ReferenceEngine
    from warploom.sanitize.events import EventSource, detect_in_python

    assert isinstance(engine, ReferenceEngine)
    launch = detector.launch
    source = EventSource(detector.data, detect_in_python)
    try:
        tally = engine.launch(detector.program, launch, memory, None, source)
    except (KernelFault, DeadlockError, InstructionLimit) as error:
        warps = launch.blocks * launch.warps_per_block
        empty = Tally.empty(detector.program, warps)
        return lambda: empty, error
    return lambda: tally, None


def _run_on_compiled(
    engine: CompiledEngine, detector: Detector, memory: DeviceMemory, progress: Progress | None
) -> tuple[Callable[[], Tally], WarploomError | None]:
    """Runs a launch on the compiled engine; returns its tally and the error that ended it."""
    from warploom.machine.compiled.counted import Counted
    from warploom.machine.compiled.outcome import error_of
    from warploom.simt import schedule_layout

    state = int(np.asarray(detector.data).ctypes.data)
    program, launch = detector.program, detector.launch
    work, status = engine.sanitize(
        program, launch, memory, state, detector.required_events, progress
    )
    error = None
    if status != schedule_layout.ENDED:
        error = error_of(work, status)
        if not isinstance(error, (KernelFault, DeadlockError, InstructionLimit)):
            raise error
    counted = Counted.of(work)
    if error is None:
        work.launch_template.give_back(work.buffers)
    return counted, error


def _error_finding(error: WarploomError) -> Finding:
    """Returns the finding of an error that ended a launch."""
    if isinstance(error, KernelFault):
        thread = Thread(error.block, error.thread)
        kind = error.kind if isinstance(error, (MemoryFault, DeviceTrap)) else "assert"
        tool = "sync" if kind in SYNC_FAULTS else "mem"
        return Finding(tool, kind, ERROR, "", error.line, "", (thread,), "", str(error))
    if isinstance(error, DeadlockError):
        line = error.groups[0].line if error.groups else ""
        return Finding("sync", "deadlock", ERROR, "", line, "", (), "", str(error))
    return Finding("sync", "instruction limit", ERROR, "", "", "", (), "", str(error))
