"""Rules of address operands: brackets, the type of a base register, the state space of a variable.

Source: PTX ISA, "Operands: Addresses", "State Spaces".
"""

from __future__ import annotations

from warploom.isa.instruction import Address, Instruction, Operand, Register, Space, Symbol
from warploom.isa.kinds import ACCESSES_BY_LANE, OpKind
from warploom.isa.spec import Operation
from warploom.ptx.scope import Scope
from warploom.ptx.spaces import in_space

COPIES = frozenset(
    {OpKind.COPY, OpKind.BULK_COPY, OpKind.TMA_BULK_COPY, OpKind.BULK_REDUCTION}
    | {OpKind.TENSOR_COPY, OpKind.TENSOR_PREFETCH, OpKind.TENSOR_MAP, OpKind.COPY_ARRIVE}
)
"""Instructions that name variables of global and of shared memory."""

WIDE_SPACES = (Space.GLOBAL, Space.CONST, Space.GENERIC)
"""State spaces whose addresses have as many bits as the module says; others fit into 32."""


def space_of(operation: Operation) -> Space:
    """Return the state space that an instruction names; GENERIC where it names none."""
    text = operation.modifiers["space"]
    return Space(text.partition("::")[0]) if text else Space.GENERIC


def check_unnamed_parameter(scope: Scope, operation: Operation, operand: Address) -> None:
    """Refuses addresses in the parameter space that no memory can have: constants, and in
    registers those of stores, for a kernel's own parameters are read-only (PTX ISA, "Kernel
    Function Parameters")."""
    if operand.base is None:
        message = (
            f"`{operation.text}` requires the name of a parameter, or a register that contains its "
            "address"
        )
        raise scope.error(message, operand.span)
    if operation.kind is OpKind.STORE:
        message = (
            "`st.param` requires the name of a parameter of a call: other parameters are read-only"
        )
        raise scope.error(message, operand.span)


def check_address(scope: Scope, instruction: Instruction, operand: Operand) -> None:
    """Check that an address is in brackets, that its base suits the state space, and that inputs
    are only read."""
    operation = instruction.operation
    if not isinstance(operand, Address):
        raise scope.error(f"`{operation.text}` requires an address here: `[...]`", operand.span)
    base = operand.base
    if space_of(operation) is Space.PARAM and not isinstance(base, Symbol):
        check_unnamed_parameter(scope, operation, operand)
    if isinstance(base, Register):
        wide = scope.address_bits == 64 and operation.kind in ACCESSES_BY_LANE
        wide = wide and space_of(operation) in WIDE_SPACES
        if not base.type.is_integer or base.type.bits not in ((64,) if wide else (32, 64)):
            message = f"`{base.name}` ({base.type}) cannot hold an address; use a 64-bit register"
            raise scope.error(message, base.span)
    elif isinstance(base, Symbol):
        check_space(scope, operation, base)
        check_received(scope, operation, base)
        if operation.kind not in (OpKind.LOAD, OpKind.CACHE_HINT) and base.name in scope.inputs:
            raise scope.error(f"parameter `{base.name}` can only be read", base.span)


def check_received(scope: Scope, operation: Operation, symbol: Symbol) -> None:
    """Check that a `.param` variable of a body that is read is the result of a call (PTX ISA,
    "Parameter State Space": such variables pass values to and from calls)."""
    is_load = operation.kind is OpKind.LOAD and space_of(operation) is Space.PARAM
    if is_load and symbol.name not in scope.readable:
        message = f"no call returns a result in `{symbol.name}`, which `{operation.text}` reads"
        raise scope.error(message, symbol.span)


def check_space(scope: Scope, operation: Operation, symbol: Symbol) -> None:
    """Check that a variable is accessed by instructions of its own state space."""
    variable = scope.variables.get(symbol.name)
    if variable is None:
        raise scope.error(f"`{symbol.name}` is not a variable", symbol.span)
    space = space_of(operation)
    # A generic address of global memory is the plain one; elsewhere it is not.
    spaces = (Space.GLOBAL,) if space is Space.GENERIC else (space,)
    if space is Space.GENERIC and operation.spec.only_shared:
        spaces = ()
    if operation.kind in COPIES:
        spaces = (Space.GLOBAL, Space.SHARED)
    if variable.space not in spaces:
        message = f"`{symbol.name}` is in .{variable.space.value} memory"
        if space is Space.GENERIC and in_space(operation, variable.space) is operation:
            message += f", which `{operation.text}` cannot access"
        elif space is Space.GENERIC:
            message += f"; write `{operation.name}.{variable.space.value}`, or convert with cvta"
        else:
            message += f", but `{operation.text}` accesses .{space.value}"
        raise scope.error(message, symbol.span)
