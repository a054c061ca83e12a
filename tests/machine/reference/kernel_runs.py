"""Runs small kernels around some PTX on the reference machine, for the tests in this folder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warploom.core.errors import Allocation
from warploom.cost.fields import FIELDS
from warploom.isa.instruction import Space
from warploom.machine.launch import Launch, Schedule
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.memory.module_globals import ModuleGlobals
from warploom.machine.reference.machine import ReferenceEngine
from warploom.machine.tally import Tally
from warploom.program.build import build
from warploom.program.program import Program
from warploom.ptx.parser import parse

Words = npt.NDArray[np.uint32]

HEADER = """
.version 8.0
.target sm_60
.address_size 64
"""
DECLARATIONS = """
    .reg .b16 %h<8>;
    .reg .b32 %r<16>;
    .reg .b64 %d<16>;
    .reg .pred %p<8>;
    .reg .b64 %out, %mine;
    .reg .b32 %t, %v;
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %mine, %t, 4;
    add.u64 %mine, %mine, %out;
"""
"""What every body finds: its thread's number in %t, and the address of its own word in %mine."""

CAPACITY = 1 << 28


@dataclass
class Result:
    """The result of a run: the words of the output buffer, and the counts by the instruction's
    text."""

    program: Program
    tally: Tally
    words: Words
    buffer: Allocation

    def of(self, opcode: str, which: int = 0) -> int:
        """Returns the index of an instruction, by its opcode and its number among those with that
        opcode."""
        found = [i for i, made in enumerate(self.program.instructions) if named(made, opcode)]
        return found[which]

    def cost(self, opcode: str, space: Space, which: int = 0) -> dict[str, int]:
        """Returns the counts of an access record that are not zero."""
        instruction = self.of(opcode, which)
        for row, counts in zip(self.tally.access_records, self.tally.accesses, strict=True):
            if (row.instruction, row.space) == (instruction, space):
                return {n: int(c) for n, c in zip(FIELDS, counts, strict=True) if c}
        raise LookupError(opcode)


def named(instruction: object, opcode: str) -> bool:
    return getattr(instruction, "operation").text == opcode  # noqa: B009


def run(
    body: str,
    *,
    block: int | tuple[int, int, int] = 32,
    grid: int | tuple[int, int, int] = 1,
    module: str = "",
    words: int = 256,
    start: Words | None = None,
    dynamic_shared: int = 0,
    limit: int | None = None,
) -> Result:
    """Runs a kernel made of a body, with `words` words of zeros, or `start`, as its buffer."""
    text = f"{HEADER}{module}.visible .entry k(.param .u64 out)\n{{{DECLARATIONS}{body}\n}}\n"
    parsed = parse(text)
    program = build(parsed, "k")
    memory = DeviceMemory(CAPACITY)
    image = ModuleGlobals(parsed, memory)
    first = np.zeros(words, np.uint32) if start is None else start
    buffer = memory.allocate(first.nbytes, "out")
    memory.write(buffer.address, first.tobytes())
    launch = Launch(
        _shape(grid),
        _shape(block),
        buffer.address.to_bytes(8, "little"),
        image.addresses(program.globals),
        dynamic_shared,
        limit,
        Schedule(independent=False),
    )
    try:
        tally = ReferenceEngine().launch(program, launch, memory)
        data = np.frombuffer(memory.read(buffer.address, buffer.size), np.uint32)
    finally:
        memory.close()
    return Result(program, tally, data, buffer)


def _shape(size: int | tuple[int, int, int]) -> tuple[int, int, int]:
    return (size, 1, 1) if isinstance(size, int) else size
