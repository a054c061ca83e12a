"""Carries out a launch that the page asks for, in this process, and records it."""

from __future__ import annotations

import re
from pathlib import Path

from warploom.core.errors import CompileError, PtxError, WarploomError
from warploom.host.device import Device
from warploom.host.requests import Prepared, Request, prepared_from
from warploom.observe.trace import Trace, TraceLimits
from warploom.ui.schema import LaunchRequest, Refusal, SourceError

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
        max_instructions=request.max_instructions,
        cooperative=request.cooperative,
    )


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
