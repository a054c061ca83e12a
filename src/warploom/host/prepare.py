"""Prepares launches but for their arguments, once for each kernel and configuration."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from warploom.core.errors import Dim3, LaunchError
from warploom.devices.launches import check_launch, check_local, check_registers
from warploom.host.clusters import check_cluster, cluster_of
from warploom.host.context import schedule_of
from warploom.host.loaded import LoadedKernel
from warploom.host.programs.resources import launched_registers
from warploom.machine.launch import NO_ND_RANGE, ORDERS, Launch, NdRange, WarpId, shared_bytes
from warploom.ptx.module import Function

KEPT = 64
"""The number of configurations of a kernel that are cached."""


BLOCKS = ("maxntid", "reqntid")
"""Directives with the size of a block."""


class Configuration(NamedTuple):
    """The options of a launch; `schedule`, `seed` and `order` are the device's where they are
    None. Each launch makes one and looks it up, which is faster for a tuple."""

    grid: Dim3
    block: Dim3
    shared_bytes: int = 0
    max_instructions: int | None = None
    cooperative: bool = False
    schedule: str | None = None
    seed: int | None = None
    order: str | None = None
    interrupts: frozenset[int] = frozenset()
    turns: tuple[WarpId, ...] = ()
    cluster: Dim3 | None = None
    nd_range: NdRange = NO_ND_RANGE


def prepare(kernel: LoadedKernel, asked: Configuration) -> Launch:
    """Returns a launch without its arguments, and keeps it in `kernel.prepared`, from which the
    oldest beyond KEPT is dropped. Raises LaunchError for what the device cannot do."""
    launch = _prepare(kernel, asked)
    while len(kernel.prepared) >= KEPT:
        kernel.prepared.pop(next(iter(kernel.prepared)), None)
    kernel.prepared[asked] = launch
    return launch


def _prepare(kernel: LoadedKernel, asked: Configuration) -> Launch:
    context, program = kernel.context, kernel.program
    cluster, is_explicit = cluster_of(kernel.function, asked.cluster)
    launch = Launch(
        asked.grid,
        asked.block,
        b"",
        kernel.image.addresses(program.globals),
        asked.shared_bytes,
        asked.max_instructions,
        context.schedule,
        context.output,
        asked.cooperative,
        warp_size=context.spec.warp_size,
        cluster=cluster,
        explicit_cluster=is_explicit,
        registers=launched_registers(kernel.function, context.spec),
        nd_range=asked.nd_range,
    )
    check_launch(context.spec, asked.grid, asked.block, shared_bytes(program, launch))
    check_cluster(context.spec, kernel.function, asked.grid, cluster)
    check_local(context.spec, program.local_bytes + program.frame_bytes)
    _check_directives(kernel.function, asked.block)
    _check_registers(kernel, launch.threads_per_block)
    resident = _resident_blocks(kernel, launch)
    if asked.cooperative and launch.blocks > resident:
        raise LaunchError(
            f"in a cooperative launch of {kernel.program.title}, all {launch.blocks:,} blocks "
            f"must be resident at once, but {context.spec.name} can hold only {resident:,}. "
            "Launch fewer blocks, each with more work.",
            resource="resident blocks",
            requested=launch.blocks,
            limit=resident,
        )
    policy = asked.schedule or context.schedule.policy
    seed = context.schedule.seed if asked.seed is None else asked.seed
    order = asked.order or ORDERS[context.schedule.any_order]
    schedule = replace(
        schedule_of(context.spec, policy, seed, order),
        resident_blocks=max(1, resident),
        interrupts=asked.interrupts,
        turns=asked.turns,
    )
    return replace(launch, schedule=schedule)


def _resident_blocks(kernel: LoadedKernel, launch: Launch) -> int:
    """Returns how many blocks of a launch the device holds at once. An SM holds one of any launch
    that is not refused; ptxas, which takes a while, is only asked where there are more blocks."""
    sms = kernel.context.spec.sms
    return sms if launch.blocks <= sms else kernel.occupancy(launch).active_blocks * sms


def _check_registers(kernel: LoadedKernel, threads: int) -> None:
    """Refuses blocks with too many registers. The count, by ptxas or an estimate, is determined
    only if a kernel with as many registers as the device allows would not fit."""
    spec = kernel.context.spec
    if threads * spec.max_registers_per_thread > spec.registers_per_block:
        resources = kernel.resources
        check_registers(spec, threads, resources.registers, resources.source)


def _check_directives(function: Function, block: Dim3) -> None:
    """Checks a block against the kernel's directives (PTX ISA, "Performance-Tuning Directives")."""
    threads = block[0] * block[1] * block[2]
    for directive, values in function.directives:
        numbers = [int(value) for value in values] if directive in BLOCKS else []
        limit = 1
        for number in numbers:
            limit *= number
        if directive == "maxntid" and threads > limit:
            raise LaunchError(
                f"a block of {threads} threads is too large for {function.name}, which was"
                f" compiled for at most {limit} threads per block (__launch_bounds__ or .maxntid).",
                resource="threads",
                requested=threads,
                limit=limit,
            )
        if directive == "reqntid" and (*numbers, 1, 1)[:3] != block:
            raise LaunchError(
                f"{function.name} requires blocks of exactly {numbers} threads (.reqntid), not "
                f"{list(block)}.",
                resource="threads",
                requested=threads,
                limit=limit,
            )
