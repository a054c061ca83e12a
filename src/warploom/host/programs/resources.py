"""Finds the resources that a thread and a block of a kernel take up on an SM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from warploom.devices.spec import DeviceSpec
from warploom.host.programs.ptxas import assemble
from warploom.isa.instruction import Immediate
from warploom.isa.kinds import Needs, OpKind
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
        text = f"{self.registers} registers per thread ({self.source})"
        if self.spill_bytes is None:
            return text
        return f"{text}, {self.stack_bytes} bytes of stack, {self.spill_bytes} bytes of spills"

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
    limit = _compiled_limit(function, spec)
    waits = Needs.HARDWARE_BARRIER in program.needs
    return Resources(min(estimated_registers(program), limit), int(waits), "estimate")


def _compiled_limit(function: Function, spec: DeviceSpec) -> int:
    """Returns the most registers that the directives of a kernel leave a thread: ptxas would spill
    rather than use more (PTX ISA, "Performance-Tuning Directives")."""
    given = {name: [int(value) for value in values] for name, values in function.directives
             if name in ("maxnreg", "maxntid", "reqntid", "minnctapersm")}  # fmt: skip
    size = given.get("reqntid") or given.get("maxntid")
    blocks = max(1, *given.get("minnctapersm", [1]), 1)
    left = _registers_left(size, blocks, spec) if size else spec.max_registers_per_thread
    return min(given.get("maxnreg", [left])[0], left)


WARP_STEP = 4
"""Warps of which a block's registers are a multiple: ptxas leaves 168 for 288, 320 and 384
threads."""

REGISTER_STEP = 8
"""What `setmaxnreg` and the limits of a launch count in."""


def launched_registers(function: Function, spec: DeviceSpec) -> int:
    """Returns the registers of a thread that a kernel with `setmaxnreg` is launched with; 0 where
    it has no effect, since the directives give no number.

    ptxas takes `.maxnreg`, else, if there is `.minnctapersm`, what so many blocks leave, but no
    more than the largest `setmaxnreg.inc` asks for (PTX ISA, "setmaxnreg"; `ptxas -v` of 13.5)."""
    given = {name: [int(value) for value in values] for name, values in function.directives
             if name in ("maxnreg", "maxntid", "reqntid", "minnctapersm")}  # fmt: skip
    size = given.get("reqntid") or given.get("maxntid")
    bound = given.get("maxnreg", [0])[0]
    if not bound and size and "minnctapersm" in given:
        bound = _registers_left(size, max(1, *given["minnctapersm"], 1), spec)
    wanted = [
        instruction.operands[0].value
        for instruction in function.instructions
        if instruction.operation.kind is OpKind.REGISTER_COUNT
        and instruction.operation.modifiers["action"] == "inc"
        if isinstance(instruction.operands[0], Immediate)
    ]
    return min(bound, max(wanted, default=bound))


def _registers_left(size: Sequence[int], blocks: int, spec: DeviceSpec) -> int:
    """Returns the registers of a thread of blocks of a size of which an SM holds `blocks`."""
    granule = spec.warp_size * WARP_STEP
    threads = -(-prod(size) // granule) * granule
    most = spec.registers_per_block // (threads * blocks)
    return min(most, spec.max_registers_per_thread) // REGISTER_STEP * REGISTER_STEP
