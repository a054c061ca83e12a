"""One trial of a tuning: a launch in one configuration, counted and timed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from warploom.core.collector import collector_paused
from warploom.core.errors import Dim3, WarploomError
from warploom.devices.timing import find_timing
from warploom.host.buffer import Array
from warploom.host.core_files.replaying import saved_launch
from warploom.host.device import Device
from warploom.host.programs.assembly import NoAssembly
from warploom.host.programs.builds import Builds, shared_builds, sharing
from warploom.host.requests import only_kernel
from warploom.host.run import Run
from warploom.tuning.space import Configuration, Division, compiler_options, geometry
from warploom.tuning.trial import Costs, Trial

SAVED = "saved"
"""The language of launches that are saved in core files."""


@dataclass(frozen=True)
class TuneJob:
    """All that a trial needs beside its configuration, in a form that can be sent to another
    process. `fixed` has what the configuration leaves open of block, grid, shared and device. Where
    `language` is SAVED, `name` is the core file of the launch, and `text` a digest of it."""

    text: str
    language: str
    name: str
    kernel: str | None
    values: tuple[Any, ...]
    fixed: Configuration
    problem_size: tuple[int, ...]
    division: Division
    options: tuple[str, ...]
    scheduler: str | None
    sample: int | None
    max_instructions: int | None
    cooperative: bool


def tried(
    job: TuneJob, configuration: Configuration, limit: float = math.inf, tuning: str = ""
) -> Trial:
    """Returns one trial; it is not replayed where it cannot take less than `limit` seconds. Trials
    of one `tuning` share what they have in common. Workers in other processes are given this to
    do."""
    with collector_paused():
        return _tried(job, configuration, limit, tuning)


def _tried(job: TuneJob, configuration: Configuration, limit: float, tuning: str) -> Trial:
    try:
        run = _launched(job, configuration, shared_builds(tuning) if tuning else Builds())
        least = _least_seconds(run) if limit < math.inf else 0.0
        if least > limit:
            return Trial(configuration, refused=_beaten(least, limit))
        return Trial(configuration, _costs(run, job))
    except WarploomError as error:
        return Trial(configuration, refused=str(error))


def _least_seconds(run: Run) -> float:
    """Returns the modelled seconds that the schedulers of a device need to issue the machine
    instructions of a launch, if none of them ever waits; 0 where there is no machine code."""
    if isinstance(run.kernel.assembly, NoAssembly):
        return 0.0
    spec = run.kernel.context.spec
    timing = find_timing(spec)
    share = run.executed_blocks / run.launch.blocks
    at_once = spec.sms * timing.schedulers * timing.dispatch_width
    cycles = run.machine.instructions / share * timing.issue_cycles / at_once
    return cycles / (timing.clock_mhz * 1e6)


def _beaten(least: float, limit: float) -> str:
    return (
        f"It cannot be the fastest: just issuing its instructions takes {least * 1000000.0:,.3f} "
        f"us, but the best configuration takes {limit * 1000000.0:,.3f} us."
    )


def _launched(job: TuneJob, configuration: Configuration, builds: Builds) -> Run:
    chosen = job.fixed | configuration
    size = () if "grid" in configuration else job.problem_size
    grid, block = geometry(chosen, size, job.division)
    if job.language == SAVED:
        return _replayed(job, str(chosen["device"]), (grid, block, int(chosen["shared"])))
    # What the kernel prints is the same text over and over.
    with sharing(builds):
        gpu = Device(
            str(chosen["device"]),
            record=True,
            sampled=job.sample is not None,
            output=lambda text: None,
        )
    options = (*job.options, *compiler_options(configuration))
    module = gpu.compile(job.text, job.language, options, name=job.name)
    values = [_given(gpu, *numbered) for numbered in enumerate(job.values)]
    launcher = module[job.kernel or only_kernel(module)][grid, block, 0, chosen["shared"]]
    return launcher(*values, max_instructions=job.max_instructions, cooperative=job.cooperative)


def _replayed(job: TuneJob, device: str, shape: tuple[Dim3, Dim3, int]) -> Run:
    """Runs a saved launch on a device in another shape."""
    grid, block, shared = shape
    sampled = job.sample is not None
    ready = saved_launch(Path(job.name)).ready(
        device=device, record=True, sampled=sampled, quiet=True
    )
    launcher = replace(ready.launcher, grid=grid, block=block, shared_bytes=shared)
    return launcher(max_instructions=job.max_instructions, cooperative=job.cooperative)


def _given(gpu: Device, position: int, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return gpu.to_device(cast(Array, value), f"argument {position}")
    return value


def _costs(run: Run, job: TuneJob) -> Costs:
    timing = run.time(scheduler=job.scheduler, sample=job.sample)
    counters, held = run.counters, run.occupancy
    replayed = timing.sampled_blocks / timing.blocks
    states = timing.warp_states
    whole = max(1, sum(states.values()))
    share = run.executed_blocks / run.launch.blocks
    conflicts = counters.shared_load_bank_conflicts + counters.shared_store_bank_conflicts
    return Costs(
        cycles=timing.elapsed_cycles,
        cycles_error=timing.cycles_error,
        seconds=timing.seconds,
        replayed=replayed,
        occupancy=held.fraction,
        achieved_occupancy=timing.achieved_occupancy,
        limiters=held.limiters,
        registers=run.kernel.resources.registers,
        registers_from=run.kernel.resources.source,
        dram_bytes=round(timing.dram_bytes / replayed),
        global_sectors=round(
            (counters.global_load_sectors + counters.global_store_sectors) / share
        ),
        shared_bank_conflicts=round(conflicts / share),
        warp_instructions=round(counters.warp_instructions / share),
        stalls={name: count / whole for name, count in states.items() if count},
        bound=timing.bound,
    )
