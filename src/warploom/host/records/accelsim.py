"""Writes the trace of a launch in Accel-Sim's format."""

from __future__ import annotations

from pathlib import Path

from warploom.core.errors import WarploomError
from warploom.core.output_files import write_error
from warploom.host.programs.assembly import NoAssembly
from warploom.host.run import Run
from warploom.machine.launch import shared_bytes
from warploom.timing.accelsim.files import (
    LIST,
    KernelHead,
    kernel_files,
    write_kernel,
    write_list,
)
from warploom.timing.accelsim.writing import LaunchTrace
from warploom.timing.machinecode.record import machine_code_record
from warploom.timing.record.record import Record


def write_trace(folder: str | Path, run: Run, record: Record) -> Path:
    """Writes the trace of a launch, whose record has the active lanes, into a folder, after the
    kernels that it has; returns the file. Raises WarploomError where the launch has no machine code
    that can be followed, or is too long to be recorded whole."""
    kernel, launch, target = run.kernel, run.launch, Path(folder)
    if isinstance(kernel.assembly, NoAssembly):
        raise WarploomError(f"cannot trace machine code: {kernel.assembly.reason}")
    if record.blocks < launch.blocks:
        raise WarploomError(
            f"the trace of {kernel.program.title} exceeds the size limit: only {record.blocks} of "
            f"{launch.blocks} blocks fit. Launch fewer blocks, or give them less work."
        )
    ways = record.entries[:, 0] >= len(kernel.program.blocks)
    if ways.any() or record.poll_counts.any() or record.phases or record.copies:
        raise WarploomError(
            f"the machine code of {kernel.program.title} cannot be traced: the kernel's "
            "warps poll memory, only some lanes of a warp wait at a barrier, or the kernel "
            "executes bulk copies"
        )
    try:
        target.mkdir(parents=True, exist_ok=True)
        known = [path.name for path in kernel_files(target)] if (target / LIST).exists() else []
        number = len(known) + 1
        name = f"kernel-{number}.traceg"
        major, minor = kernel.context.spec.compute_capability
        head = KernelHead(
            kernel.program.name,
            launch.grid,
            launch.block,
            shared_bytes(kernel.program, launch),
            kernel.resources.registers,
            10 * major + minor,
            number,
        )
        matching = kernel.assembly.matching
        after = machine_code_record(record, run.machine)
        trace = LaunchTrace(head, matching.listing, record, after, kernel.context.memory.base)
        write_kernel(target / name, head, trace.blocks())
        write_list(target, [*known, name])
    except OSError as error:
        raise WarploomError(write_error(folder, error)) from None
    return target / name
