"""Carries out a launch that the page asks for, in this process, and records it."""

from __future__ import annotations

import re
from pathlib import Path

from warploom.core.errors import CompileError, PtxError, WarploomError
from warploom.host.device import Device
from warploom.host.launcher import Launcher
from warploom.host.requests import Prepared, Request, prepared_from
from warploom.machine.launch import WARP_SIZE
from warploom.observe.trace import Trace, TraceLimits
from warploom.ui.schema import AUTOMATIC, LaunchRequest, Refusal, SourceError

MOST_WARPS = 64
"""Launches of more warps are recorded by compiled code, if nothing else is asked for."""

_NVRTC = re.compile(r"^[^\n]*?\((\d+)\): (?:error|catastrophic error)[^:]*: (.*)$", re.MULTILINE)
"""How NVRTC says that something is wrong, and where."""


def record(request: LaunchRequest) -> Trace:
    """The trace of a launch. Raises what the compiler or the launch does."""
    ready = _prepared(request)
    limits = TraceLimits(
        warps=request.trace_warps,
        steps=request.trace_steps,
        blocks=frozenset(request.trace_blocks) or None,
    )
    return ready.launcher.trace(
        *ready.values,
        limits=limits,
        engine=_engine(request.engine, ready.launcher),
        max_instructions=request.max_instructions,
        cooperative=request.cooperative,
    )


def _engine(wanted: str, launcher: Launcher) -> str:
    """The engine that records: the reference machine where there is not too much to do."""
    if wanted != AUTOMATIC:
        return wanted
    (gx, gy, gz), (bx, by, bz) = launcher.grid, launcher.block
    warps = gx * gy * gz * -(-(bx * by * bz) // WARP_SIZE)
    return "reference" if warps <= MOST_WARPS else "compiled"


def _prepared(request: LaunchRequest) -> Prepared:
    gpu = Device(
        request.device,
        schedule=request.schedule,
        seed=request.seed,
        l1_global=request.l1,
        bank_bytes=request.bank_bytes,
        output=lambda text: None,
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
