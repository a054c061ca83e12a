"""Kernels whose traces were read in Accel-Sim's format, to be timed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypedDict, Unpack

from warploom.core.errors import LaunchError
from warploom.core.options import checked
from warploom.core.values import OneOf
from warploom.cost.device_rules import MemoryOptions, access_rules
from warploom.devices.catalog import find_device
from warploom.devices.occupancy import Demand, occupancy_of
from warploom.devices.timing import TimingSpec, find_timing
from warploom.host.option_types import Workers
from warploom.machine.caches import l1_bytes
from warploom.machine.launch import Launch, Schedule
from warploom.timing.accelsim.files import KernelHead, kernel_files, read_kernel
from warploom.timing.accelsim.replayed import record_of, traced_work
from warploom.timing.engine.state import LaunchSizes, setting_of
from warploom.timing.layout import SCHEDULERS
from warploom.timing.policies import (
    AddressMapping,
    CacheModel,
    Policies,
    Prefetcher,
    ReplacementPolicy,
    WarpScheduler,
    cache_model,
)
from warploom.timing.readings import Basis
from warploom.timing.record.patterns import PatternTable
from warploom.timing.replay import Replay
from warploom.timing.result import Timing
from warploom.timing.work.costs import WorkCosts


class TraceTimeOptions(TypedDict, total=False):
    """Options for timing a trace: those of `TimeOptions` that a trace has."""

    scheduler: Annotated[str, OneOf(SCHEDULERS)] | WarpScheduler | None
    prefetcher: Prefetcher | None
    l1: CacheModel | ReplacementPolicy | None
    l2: CacheModel | ReplacementPolicy | None
    dram: AddressMapping | None
    workers: Workers
    spec: TimingSpec | None


@dataclass(frozen=True)
class TracedKernel:
    """A kernel of a trace: its file, and what the head of that says."""

    path: Path
    head: KernelHead

    @checked("kernel.time(...)")
    def time(self, device: str | None = None, **options: Unpack[TraceTimeOptions]) -> Timing:
        """Returns the modelled time of the kernel on a device: the one of that name, else the first
        of the compute capability that was traced. Raises WarploomError for a trace that cannot be
        read, LaunchError where no block fits on an SM."""
        head = self.head
        spec = find_device(device) if device else find_device(cc=_capability(head.binary))
        figures = options.get("spec") or find_timing(spec)
        threads = head.block[0] * head.block[1] * head.block[2]
        held = occupancy_of(spec, Demand(threads, head.registers, head.shared, 1)).active_blocks
        if not held:
            raise LaunchError(f"no block of {head.name} fits on an SM of {spec.name}")
        schedule = Schedule(resident_blocks=held * spec.sms)
        launch = Launch(head.grid, head.block, b"", schedule=schedule)
        rules = access_rules(spec, MemoryOptions(caches=True))
        record, code = record_of(
            head, launch, PatternTable(lambda _: "", rules), read_kernel(self.path)[1]
        )
        work = traced_work(code, WorkCosts(spec, figures))
        shape = LaunchSizes(
            max(1, work.register_count),
            len(work.operations),
            False,
            launch.warps_per_block,
            held,
            max(0, l1_bytes(spec, head.shared, launch)),
            record.warps.shape[1],
            min(spec.sms, launch.blocks),
        )
        policies = Policies(
            options.get("scheduler") or figures.policy,
            options.get("prefetcher"),
            cache_model(options.get("l1")),
            cache_model(options.get("l2")),
            options.get("dram"),
        )
        setting = setting_of(spec, figures, shape, policies, 0)
        outcome = Replay(setting, work, record, record.blocks, options.get("workers")).run()
        basis = Basis("trace")
        return Timing(code, spec, figures, policies.name, record, work, outcome, basis)


def read_accelsim(path: str | Path) -> tuple[TracedKernel, ...]:
    """Returns the kernels of a trace in Accel-Sim's format: of a folder with a `kernelslist.g`, of
    such a list, or of one `kernel-N.traceg`, which may be compressed by xz. Raises WarploomError
    for what is no such trace."""
    return tuple(TracedKernel(file, read_kernel(file)[0]) for file in kernel_files(path))


def _capability(binary: int) -> str:
    return f"{binary // 10}.{binary % 10}"
