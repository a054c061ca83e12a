"""Carries out a launch that the page asks for, in this process, and records it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from warploom.core.errors import (
    CompileError,
    DeadlockError,
    InstructionLimit,
    KernelFault,
    LaunchError,
    PtxError,
    WarploomError,
)
from warploom.core.source import Text
from warploom.core.source_files import limited_source_files
from warploom.devices.catalog import find_device
from warploom.host.device import Device
from warploom.host.launch_options import LaunchOptions
from warploom.host.module import Module
from warploom.host.programs.confinement import Confinement
from warploom.host.programs.sources import LANGUAGES
from warploom.host.requests import Prepared, Request, dims, launch_options, prepared_from
from warploom.machine.launch import WARP_SIZE
from warploom.observe.limits import TraceLimits
from warploom.observe.trace import Trace
from warploom.sanitize.findings import Finding
from warploom.sanitize.summary import merge_findings
from warploom.timing.result import Timing
from warploom.timing.traced import MOST_STATES, blocks_of
from warploom.ui.findings import with_findings
from warploom.ui.schema import AUTOMATIC, LaunchRequest, Refusal, SourceError

MOST_WARPS = 64
"""Launches of more warps are recorded by compiled code, if nothing else is asked for."""

_NVRTC = re.compile(r"^[^\n]*?\((\d+)\): (?:error|catastrophic error)[^:]*: (.*)$", re.MULTILINE)
"""How NVRTC says that something is wrong, and where."""


class Prepare(Protocol):
    """Makes a launch ready to be recorded; the options are those of `prepare_launch`."""

    def __call__(
        self,
        request: LaunchRequest,
        memory_bytes: int | None = None,
        *,
        record: bool = False,
        engine: str | None = None,
    ) -> Prepared: ...


def record(
    request: LaunchRequest, memory_bytes: int | None = None, *, prepare: Prepare | None = None
) -> Trace:
    """Returns the trace of a launch, with its modelled time where that is asked for, on a device
    with at most `memory_bytes` of memory; `prepare` makes it ready where the request cannot. Raises
    what the compiler or the launch does."""
    ready = partial(prepare or prepare_launch, request, memory_bytes)
    timing = _timed(request, ready) if request.timed else None
    trace = record_with(request, timing, memory_bytes, prepare=prepare)
    return with_findings(trace, _findings(request, ready)) if request.sanitize else trace


def record_with(
    request: LaunchRequest,
    timing: Timing | None,
    memory_bytes: int | None = None,
    *,
    prepare: Prepare | None = None,
) -> Trace:
    """Returns the trace of a launch, with what was modelled of it; recorded are then the blocks of
    the SM that is shown, if not others are asked for."""
    ready = (prepare or prepare_launch)(request, memory_bytes, engine=engine_of(request))
    blocks = request.trace_blocks or (blocks_of(timing, request.sm) if timing else ())
    limits = TraceLimits(
        warps=request.trace_warps,
        steps=request.trace_steps,
        blocks=frozenset(blocks) or None,
    )
    trace = ready.launcher.trace(
        *ready.values,
        limits=limits,
        engine=engine_of(request),
        **options_of(request),
    )
    return timing.add_to(trace, request.sm) if timing else trace


def _findings(request: LaunchRequest, prepare: Callable[[], Prepared]) -> list[Finding]:
    """Returns what sanitizers find in a launch, each pair of lines once."""
    ready = prepare()
    options: LaunchOptions = {**options_of(request), "sanitize": request.sanitize}
    return merge_findings(ready.launcher(*ready.values, **options).findings)


def _timed(request: LaunchRequest, prepare: Callable[..., Prepared]) -> Timing | None:
    """Returns the modelled time of a launch; None where an error ends it, which its trace has."""
    ready = prepare(record=True)
    try:
        run = ready.launcher(*ready.values, **options_of(request))
    except (KernelFault, DeadlockError, InstructionLimit):
        return None
    return run.time(scheduler=request.scheduler, timeline=MOST_STATES)


def options_of(request: LaunchRequest) -> LaunchOptions:
    """Returns the options of a launch itself."""
    return launch_options(request.max_instructions, request.cooperative, request.cluster_dims)


def engine_of(request: LaunchRequest) -> str:
    """Returns the engine that records a launch: the reference machine where it has few warps."""
    if request.engine != AUTOMATIC:
        return request.engine
    blocks = math.prod(dims("--grid", request.grid))
    threads = math.prod(dims("--block", request.block))
    return "reference" if blocks * -(-threads // WARP_SIZE) <= MOST_WARPS else "compiled"


def prepare_launch(
    request: LaunchRequest,
    memory_bytes: int | None = None,
    *,
    record: bool = False,
    engine: str | None = None,
    caches: bool = False,
) -> Prepared:
    """Compiles a request's source and uploads its arguments, on a device with at most
    `memory_bytes` of memory; the other options are those of `Device`. Raises what the compiler
    does, and LaunchError for what does not fit."""
    own = find_device(request.device).memory_bytes
    gpu = Device(
        request.device,
        schedule=request.schedule,
        seed=request.seed,
        l1_global=request.l1,
        bank_bytes=request.bank_bytes,
        output=lambda text: None,
        record=record,
        engine=engine,
        caches=caches,
        memory_bytes=own if memory_bytes is None else min(own, memory_bytes),
    )
    module = _compiled(gpu, request)
    launch = Request(
        file=Path(request.name),
        kernel=request.kernel or None,
        grid=request.grid,
        block=request.block,
        shared=request.shared,
        args=request.args,
        options=request.options,
    )
    ready = prepared_from(gpu, module, launch)
    shape = dims("--grid", request.grid), dims("--block", request.block)
    for name in request.before:
        module[name][*shape, 0, request.shared](*ready.values)
    return ready


def _compiled(gpu: Device, request: LaunchRequest) -> Module:
    """Returns the program of a request. PTX of another compiler keeps the source of that one."""
    if request.ptx:
        module = gpu.compile(request.ptx, "ptx", name=f"{request.name}.ptx")
        module.source = Text(request.name, request.source)
        return module
    language = LANGUAGES.get(Path(request.name).suffix.lower(), "cuda")
    given = request.source, language, request.options
    if _confinement is None or language == "ptx":
        return gpu.compile(*given, name=request.name)
    _confinement.check(request.source, language, request.name, request.options)
    with _confinement.withheld(request.name):
        return gpu.compile(*given, name=request.name)


_confinement: Confinement | None = None


@contextmanager
def confined(confinement: Confinement) -> Generator[None]:
    """Confines all sources that this process compiles for the page or a lesson meanwhile, and the
    source files that it shows."""
    global _confinement
    before, _confinement = _confinement, confinement
    try:
        with limited_source_files(*confinement.folders):
            yield
    finally:
        _confinement = before


def refusal_of(error: WarploomError) -> Refusal:
    """Returns what the page shows of an error."""
    if isinstance(error, CompileError):
        found = (SourceError(int(m[1]), m[2]) for m in _NVRTC.finditer(error.log))
        return Refusal("compile", str(error), tuple(found))
    if isinstance(error, PtxError):
        return Refusal("compile", str(error), (SourceError(error.span.line, error.reason),))
    if isinstance(error, LaunchError) and error.resource in ("device memory", "host memory"):
        return Refusal(
            "memory", f"{error} To change the memory limit for runs in the view, use --memory."
        )
    return Refusal("launch", str(error))
