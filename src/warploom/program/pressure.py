"""Estimates register pressure, from which the registers per thread of a kernel follow: the most
registers that are live at one instruction.

ptxas may use more or fewer: it reorders code, rematerialises values and holds addresses in aligned
pairs.

                                     live before it, in 32-bit registers
    ld.global.f32 %f1, [%rd1];       %rd1 %rd2       4
    ld.global.f32 %f2, [%rd1+4];     %rd1 %rd2 %f1   5
    add.f32 %f3, %f1, %f2;           %rd2 %f1 %f2    4
    st.global.f32 [%rd2], %f3;       %rd2 %f3        3: 5 + RESERVED = 9 registers
"""

from __future__ import annotations

from warploom.core.types import Kind
from warploom.isa.instruction import Register
from warploom.program.program import Program
from warploom.program.uses import reads, writes

RESERVED = 4
"""Registers beside live ones: the stack pointer, and temporaries for addresses."""


def estimated_registers(program: Program) -> int:
    """Returns the number of 32-bit registers that a thread needs: the most that are live at one
    instruction, and RESERVED. Predicates have registers of their own."""
    return RESERVED + max(_most_live(program, block) for block in range(len(program.blocks)))


def _most_live(program: Program, index: int) -> int:
    """Returns the greatest number of 32-bit registers that are live before or after any instruction
    of a block."""
    block = program.blocks[index]
    live: dict[str, Register] = {}
    for successor in block.successors:
        if successor != program.exit:
            live |= {register.name: register for register in program.live_in[successor]}
    most = _words(live)
    for instruction in reversed(program.instructions[block.start : block.stop]):
        # Under a guard the old value lives on, in lanes in which the guard is false.
        if instruction.guard is None:
            for register in writes(instruction):
                live.pop(register.name, None)
        live |= {register.name: register for register in reads(instruction)}
        most = max(most, _words(live))
    return most


def _words(live: dict[str, Register]) -> int:
    """Returns the number of 32-bit registers that hold the values of virtual registers (`live`, by
    name): 1 for a value of up to 32 bits, 2 for 64, 4 for 128, none for a predicate."""
    return sum(
        max(1, register.type.bits // 32)
        for register in live.values()
        if register.type.kind is not Kind.PREDICATE
    )
