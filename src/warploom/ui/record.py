"""Carries out a launch that the page asks for, in this process, and records it."""

from __future__ import annotations

import re
from pathlib import Path

from warploom.core.errors import (
    CompileError,
    DeadlockError,
    InstructionLimit,
    KernelFault,
    PtxError,
    WarploomError,
)
from warploom.host.device import Device
from warploom.host.launcher import Launcher
from warploom.host.requests import Prepared, Request, prepared_from
from warploom.machine.launch import WARP_SIZE
from warploom.observe.limits import TraceLimits
from warploom.observe.trace import Trace
from warploom.timing.result import Timing
from warploom.timing.traced import MOST_STATES, blocks_of
from warploom.ui.schema import AUTOMATIC, LaunchRequest, Refusal, SourceError

MOST_WARPS = 64
"""Launches of more warps are recorded by compiled code, if nothing else is asked for."""

_NVRTC = re.compile(r"^[^\n]*?\((\d+)\): (?:error|catastrophic error)[^:]*: (.*)$", re.MULTILINE)
"""How NVRTC says that something is wrong, and where."""


def record(request: LaunchRequest) -> Trace:
    """The trace of a launch, with its modelled time where that is asked for. Raises what the
    compiler or the launch does."""
    return record_with(request, _timed(request) if request.timed else None)


def record_with(request: LaunchRequest, timing: Timing | None) -> Trace:
    """The trace of a launch, with what was modelled of it; recorded are then the blocks of the SM
    that is shown, if not others are asked for."""
    ready = _prepared(request)
    blocks = request.trace_blocks or (blocks_of(timing, request.sm) if timing else ())
    limits = TraceLimits(
        warps=request.trace_warps,
        steps=request.trace_steps,
        blocks=frozenset(blocks) or None,
    )
    trace = ready.launcher.trace(
        *ready.values,
        limits=limits,
        engine=_engine(request.engine, ready.launcher),
        max_instructions=request.max_instructions,
        cooperative=request.cooperative,
    )
    return timing.add_to(trace, request.sm) if timing else trace


def _timed(request: LaunchRequest) -> Timing | None:
    """The modelled time of a launch; none of one that ends badly, which its trace tells of."""
    ready = _prepared(request, record=True)
    try:
        run = ready.launcher(
            *ready.values,
            max_instructions=request.max_instructions,
            cooperative=request.cooperative,
        )
    except (KernelFault, DeadlockError, InstructionLimit):
        return None
    return run.time(scheduler=request.scheduler, timeline=MOST_STATES)


def _engine(wanted: str, launcher: Launcher) -> str:
    """The engine that records: the reference machine where there is not too much to do."""
    if wanted != AUTOMATIC:
        return wanted
    (gx, gy, gz), (bx, by, bz) = launcher.grid, launcher.block
    warps = gx * gy * gz * -(-(bx * by * bz) // WARP_SIZE)
    return "reference" if warps <= MOST_WARPS else "compiled"


def _prepared(request: LaunchRequest, *, record: bool = False) -> Prepared:
    gpu = Device(
        request.device,
        schedule=request.schedule,
        seed=request.seed,
        l1_global=request.l1,
        bank_bytes=request.bank_bytes,
        output=lambda text: None,
        record=record,
    )
    language = "ptx" if Path(request.name).suffix.lower() == ".ptx" else "cuda"
    module = gpu.compile(request.source, language, request.options, name=request.name)
    launch = Request(
        file=Path(request.name),
        kernel=request.kernel or None,
        grid=request.grid,
        block=request.block,
        shared=request.shared,
        args=request.args,
        options=request.options,
    )
    return prepared_from(gpu, module, launch)


def refusal_of(error: WarploomError) -> Refusal:
    """What to tell the page of an error."""
    if isinstance(error, CompileError):
        found = (SourceError(int(m[1]), m[2]) for m in _NVRTC.finditer(error.log))
        return Refusal("compile", str(error), tuple(found))
    if isinstance(error, PtxError):
        return Refusal("compile", str(error), (SourceError(error.span.line, error.reason),))
    return Refusal("launch", str(error))
