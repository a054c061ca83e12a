"""Makes the program that a replay runs: the PTX of a launch, or its machine code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warploom.core.collector import collector_paused
from warploom.host.programs.assembly import NoAssembly
from warploom.timing.machinecode.record import machine_code_record
from warploom.timing.machinecode.work import machine_work
from warploom.timing.record.order import issue_order
from warploom.timing.record.records import Record
from warploom.timing.result import PTX_BASIS, Basis
from warploom.timing.work.costs import WorkCosts
from warploom.timing.work.operations import MachineWork, work_of

if TYPE_CHECKING:
    from warploom.host.run import Run

LEAST_FOUND = 0.8
"""If less of the executed PTX is found in the machine code, the PTX is replayed."""


@dataclass(frozen=True)
class Replayed:
    """A record and the code that it is of."""

    record: Record
    work: MachineWork
    basis: Basis


def code_of(
    run: Run, record: Record, costs: WorkCosts, code: str | None, *, timeline: bool
) -> Replayed:
    """Return what is replayed of a launch where this code ("machine" or "ptx") is asked for; None
    where nobody chose."""
    if code == "ptx":
        found = PTX_BASIS
    elif timeline:
        found = Basis("ptx", reason="a timeline tells of its instructions")
    else:
        with collector_paused():
            found = _machine_code(run, record, costs)
    if isinstance(found, Replayed):
        return found
    order = issue_order(run.kernel.program)
    return Replayed(record.in_order(order), work_of(run.kernel.program, costs, order), found)


def _machine_code(run: Run, record: Record, costs: WorkCosts) -> Replayed | Basis:
    """Return the machine code of a launch, or why its PTX is replayed."""
    kernel = run.kernel
    if isinstance(kernel.assembly, NoAssembly):
        return Basis("ptx", reason=kernel.assembly.reason)
    if (record.entries[:, 0] >= len(kernel.program.blocks)).any():
        return Basis("ptx", reason="parts of warps come to barriers one after the other")
    if record.poll_counts.any():
        return Basis("ptx", reason="its warps wait in memory for each other")
    if record.phases or record.copies:
        return Basis("ptx", reason="its bulk copies and mbarriers are followed in PTX alone")
    counts = run.machine
    changed = machine_code_record(record, counts)
    share = min(changed.agreement, counts.confidence)
    if share < LEAST_FOUND:
        reason = f"only {100 * share:.0f} % of the executed PTX was found in its machine code"
        return Basis("ptx", share, reason)
    work = machine_work(counts.matching, costs, changed.starts, changed.stops)
    return Replayed(changed.record, work, Basis("machine code", share))
