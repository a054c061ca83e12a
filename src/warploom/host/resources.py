"""Finds the resources that a thread and a block of a kernel take up on an SM."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.analysis.pressure import estimated_registers
from warploom.analysis.program import Program
from warploom.devices.spec import DeviceSpec
from warploom.host.ptxas import assemble
from warploom.ptx.ir import Function

BARRIERS = frozenset({"bar", "barrier"})


@dataclass(frozen=True, slots=True)
class Resources:
    """Registers a thread and barriers a block; `source` is "ptxas" or "estimate".

    Spills and the stack frame, in bytes a thread, are None where only ptxas could tell them.
    """

    registers: int
    barriers: int
    source: str
    spill_stores: int | None = None
    spill_loads: int | None = None
    stack_bytes: int | None = None

    def __str__(self) -> str:
        told = f"{self.registers} registers a thread ({self.source})"
        if self.spill_bytes is None:
            return told
        return f"{told}, {self.stack_bytes} bytes of stack, {self.spill_bytes} of spills"

    @property
    def spill_bytes(self) -> int | None:
        """Bytes a thread that ptxas stores and loads for want of registers."""
        if self.spill_stores is None or self.spill_loads is None:
            return None
        return self.spill_stores + self.spill_loads


def resources_of(program: Program, function: Function, spec: DeviceSpec) -> Resources:
    """Returns what ptxas says of a kernel on a device, else our own estimate."""
    told = assemble(program.module.text, spec.compute_capability).get(program.name)
    if told is not None:
        return Resources(
            told.registers, told.barriers, "ptxas", told.spill_stores, told.spill_loads, told.stack
        )
    registers = min(estimated_registers(program), _limit(function), spec.max_registers_per_thread)
    waits = any(
        made.operation.name in BARRIERS and "warp" not in made.operation.modifiers
        for made in program.instructions
    )
    return Resources(registers, int(waits), "estimate")


def _limit(function: Function) -> int:
    """Return the registers that `.maxnreg` leaves (PTX ISA, "Performance-Tuning Directives")."""
    given = [int(values[0]) for name, values in function.directives if name == "maxnreg" and values]
    return min(given, default=1 << 16)
