"""Finds the resources that a thread and a block of a kernel take up on an SM."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from warploom.devices.spec import DeviceSpec
from warploom.host.programs.ptxas import assemble
from warploom.isa.kinds import Needs
from warploom.program.pressure import estimated_registers
from warploom.program.program import Program
from warploom.ptx.module import Function


@dataclass(frozen=True, slots=True)
class Resources:
    """Registers a thread and barriers a block; `source` is "ptxas" or "estimate".

    Spills and the stack frame, in bytes a thread, are None where only ptxas could determine them.
    """

    registers: int
    barriers: int
    source: str
    spill_stores: int | None = None
    spill_loads: int | None = None
    stack_bytes: int | None = None

    def __str__(self) -> str:
        text = f"{self.registers} registers a thread ({self.source})"
        if self.spill_bytes is None:
            return text
        return f"{text}, {self.stack_bytes} bytes of stack, {self.spill_bytes} of spills"

    @property
    def spill_bytes(self) -> int | None:
        """Bytes a thread that ptxas stores and loads for want of registers."""
        if self.spill_stores is None or self.spill_loads is None:
            return None
        return self.spill_stores + self.spill_loads


def resources_of(program: Program, function: Function, spec: DeviceSpec) -> Resources:
    """Returns what ptxas reports of a kernel on a device, else our own estimate."""
    assembled = assemble(program.module.text, spec.compute_capability).get(program.name)
    if assembled is not None:
        return Resources(
            assembled.registers,
            assembled.barriers,
            "ptxas",
            assembled.spill_stores,
            assembled.spill_loads,
            assembled.stack,
        )
    # With launch bounds, ptxas would spill registers rather than use more than these.
    limit = launched_registers(function, spec) or spec.max_registers_per_thread
    waits = Needs.HARDWARE_BARRIER in program.needs
    return Resources(min(estimated_registers(program), limit), int(waits), "estimate")


REGISTER_STEP = 8
"""What `setmaxnreg` and the limits of a launch count in."""


def launched_registers(function: Function, spec: DeviceSpec) -> int:
    """Returns the registers of a thread that a kernel is launched with by its directives, for
    `setmaxnreg`; 0 where they say nothing (PTX ISA, "Performance-Tuning Directives")."""
    given = {name: [int(value) for value in values] for name, values in function.directives
             if name in ("maxnreg", "maxntid", "reqntid", "minnctapersm")}  # fmt: skip
    if given.get("maxnreg"):
        return given["maxnreg"][0]
    size = given.get("reqntid") or given.get("maxntid")
    if not size:
        return 0
    warps = -(-prod(size) // spec.warp_size)
    blocks = max(1, *given.get("minnctapersm", [1]))
    most = spec.registers_per_block // (warps * spec.warp_size * blocks)
    return min(most, spec.max_registers_per_thread) // REGISTER_STEP * REGISTER_STEP
