"""Makes the program that a replay runs: the PTX of a launch, or its machine code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warploom.core.collector import collector_paused
from warploom.host.loaded import LoadedKernel
from warploom.host.programs.assembly import NoAssembly
from warploom.machinecode.counted import MachineCounts
from warploom.timing.machinecode.record import machine_code_record
from warploom.timing.machinecode.work import machine_work
from warploom.timing.readings import Basis
from warploom.timing.record.order import issue_order
from warploom.timing.record.record import Record
from warploom.timing.result import PTX_BASIS
from warploom.timing.work.costs import WorkCosts
from warploom.timing.work.operations import MachineWork, work_of

LEAST_FOUND = 0.8
"""If less of the executed PTX is found in the machine code, the PTX is replayed."""


@dataclass(frozen=True)
class Replayed:
    """A record and the code that it is of."""

    record: Record
    work: MachineWork
    basis: Basis


def code_of(
    kernel: LoadedKernel,
    record: Record,
    machine: Callable[[], MachineCounts],
    costs: WorkCosts,
    code: str | None,
    *,
    timeline: bool,
) -> Replayed:
    """Returns what is replayed of a recorded launch if `code` ("machine" or "ptx") is requested;
    None requests neither. `machine` returns the launch's machine instructions."""
    if code == "ptx":
        found = PTX_BASIS
    elif timeline:
        found = Basis("ptx", reason="a timeline shows PTX instructions")
    else:
        with collector_paused():
            found = _machine_code(kernel, record, machine, costs)
    if isinstance(found, Replayed):
        return found
    order = issue_order(kernel.program)
    return Replayed(record.in_order(order), work_of(kernel.program, costs, order), found)


def _machine_code(
    kernel: LoadedKernel,
    record: Record,
    machine: Callable[[], MachineCounts],
    costs: WorkCosts,
) -> Replayed | Basis:
    """Returns the machine code of a launch, or why its PTX is replayed."""
    if isinstance(kernel.assembly, NoAssembly):
        return Basis("ptx", reason=kernel.assembly.reason)
    if (record.entries[:, 0] >= len(kernel.program.blocks)).any():
        return Basis("ptx", reason="the lanes of a warp do not arrive at a barrier together")
    if record.poll_counts.any():
        return Basis("ptx", reason="warps wait for each other by polling memory")
    if kernel.program.has_tensor_memory:
        return Basis("ptx", reason="tensor memory can be modelled only from PTX")
    counts = machine()
    changed = machine_code_record(record, counts)
    if changed.record.phase_accesses != record.phase_accesses:
        return Basis("ptx", reason="some mbarrier arrivals were not found in the machine code")
    share = min(changed.agreement, counts.confidence)
    if share < LEAST_FOUND:
        reason = f"only {100 * share:.0f} % of the executed PTX was found in the machine code"
        return Basis("ptx", share, reason)
    work = machine_work(counts.matching, costs, changed.starts, changed.stops)
    return Replayed(changed.record, work, Basis("machine code", share))
