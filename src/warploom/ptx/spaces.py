"""The state space of accesses that name a variable and no space:

    .shared .b32 s[4];
    ld.u32 %r1, [s];      ->   ld.shared.u32 %r1, [s];

The manual makes an access without a state space one to a generic address, which the name of a
variable in shared or local memory is not (PTX ISA, "Generic Addressing"). ptxas 13.5 accepts it all
the same, as an access to that variable (LDS, STL), where the instruction exists in its state
space; to variables in constant memory and to parameters it accepts none."""

from __future__ import annotations

from functools import lru_cache

from warploom.isa.instruction import Address, Operand, Space, Symbol
from warploom.isa.spec import Operation, UnknownOpcode, decode
from warploom.ptx.names import Names


def in_space_of_variable(
    operation: Operation, operands: tuple[Operand, ...], names: Names
) -> Operation:
    """Returns an operation without a state space as that of the space of the shared or local
    variable at whose name it accesses memory; another operation as it is."""
    if operation.modifiers["space"] is None:
        for operand in operands:
            if isinstance(operand, Address) and isinstance(operand.base, Symbol):
                variable = names.variables.get(operand.base.name)
                if variable is not None and variable.space in (Space.SHARED, Space.LOCAL):
                    return in_space(operation, variable.space)
    return operation


@lru_cache(maxsize=256)
def in_space(operation: Operation, space: Space) -> Operation:
    """Returns the same operation with a state space; itself if it does not exist in that space."""
    name, _, modifiers = operation.text.partition(".")
    try:
        found = decode(f"{name}.{space.value}.{modifiers}")
    except UnknownOpcode:
        return operation
    return found if found.kind is operation.kind else operation
