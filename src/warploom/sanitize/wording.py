"""Names of shared variables in findings."""

from __future__ import annotations

from warploom.core.mangled import variable_name
from warploom.isa.instruction import Space
from warploom.program.program import Program


def shared_variable(program: Program, address: int) -> str:
    """Returns the name of the variable at an offset of shared memory, and the byte in it; nothing
    where no static variable is."""
    for symbol, slot in program.slots.items():
        if slot.space is Space.SHARED and slot.offset <= address < slot.offset + slot.size:
            name = variable_name(symbol)
            return f"`{name}`, byte {address - slot.offset} of {slot.size}"
    return ""
