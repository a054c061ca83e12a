"""Rules of declarations: where variables stand, and how much they and parameters hold.

Source: PTX ISA, "State Spaces", "Initializers" and "Kernel Function Parameters".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from warploom.core.errors import PtxSyntaxError
from warploom.core.types import OPAQUE, PRED
from warploom.isa.instruction import Space
from warploom.ptx.module import Function, Initializer, Module, Variable
from warploom.ptx.release import target_of

MODULE_SPACES = (Space.GLOBAL, Space.CONST, Space.SHARED)
LAST_LOCAL = (2, 3)
"""The last version of PTX with `.local` variables of the module, one for each thread: since 3.0
code has an ABI, whose stack holds them (PTX ISA, "Local State Space")."""

BODY_SPACES = (Space.SHARED, Space.LOCAL, Space.PARAM)
INITIALIZED = (Space.GLOBAL, Space.CONST)


def module_spaces(module: Module) -> tuple[Space, ...]:
    """Returns the state spaces of variables that a module may declare outside of functions."""
    return (*MODULE_SPACES, Space.LOCAL) if module.version <= LAST_LOCAL else MODULE_SPACES


def check_variable(variable: Variable, spaces: Sequence[Space]) -> None:
    """Check that a variable may be declared here, and that only memory has initial values."""
    if variable.space not in spaces:
        where = "in a function" if spaces is BODY_SPACES else "at module scope"
        message = f"a .{variable.space.value} variable cannot be declared {where}"
        raise PtxSyntaxError(message, variable.span)
    if variable.type is PRED:
        message = f"`{variable.name}` is a predicate, which only a register can be"
        raise PtxSyntaxError(message, variable.span)
    if variable.type.name in OPAQUE and variable.space is not Space.GLOBAL:
        message = f"a .{variable.type.name} variable is .global, or a parameter of a kernel"
        raise PtxSyntaxError(message, variable.span)
    if variable.initial is not None and variable.space not in INITIALIZED:
        message = f"a .{variable.space.value} variable cannot have an initial value"
        raise PtxSyntaxError(message, variable.span)
    if variable.bank and (variable.linkage != "extern" or variable.shape != (None,)):
        message = f"constant bank {variable.bank} holds `.extern` arrays without a length only"
        raise PtxSyntaxError(message, variable.span)
    check_initial(variable)
    if None in variable.shape and variable.linkage != "extern":
        message = f"`{variable.name}[]` has no length; only an .extern array may leave it open"
        raise PtxSyntaxError(message, variable.span)


CONSTANT_BYTES = 64 << 10
"""Constant memory for variables (PTX ISA, "Constant State Space")."""


def check_constants(module: Module) -> None:
    """Check that the constants of a module fit into constant memory."""
    taken = 0
    for variable in module.variables:
        if variable.space is Space.CONST:
            taken = -(-taken // variable.alignment) * variable.alignment + variable.size
            if taken > CONSTANT_BYTES:
                message = f"the constants up to here take {taken} bytes of {CONSTANT_BYTES}"
                raise PtxSyntaxError(message, variable.span)


def check_initial(variable: Variable) -> None:
    """Raises PtxSyntaxError where a variable has more initial values than elements."""
    dims = variable.shape if variable.vector == 1 else (*variable.shape, variable.vector)
    dims = tuple(math.inf if length is None else length for length in dims)
    if isinstance(variable.initial, tuple) and (beyond := _beyond(variable.initial, dims)):
        message = f"`{variable.name}` has {beyond[0]} initial values for {beyond[1]} elements"
        raise PtxSyntaxError(message, variable.span)


def _beyond(values: tuple[Initializer, ...], dims: tuple[float, ...]) -> tuple[int, float] | None:
    """Returns the number of values between braces and of the elements that they are for, where
    those are too few. Inner braces hold a row each, flat values follow one another."""
    nested = [value for value in values if isinstance(value, tuple)]
    capacity = (dims[0] if dims else 1) if nested else math.prod(dims)
    if len(values) > capacity:
        return len(values), capacity
    return next((found for value in nested if (found := _beyond(value, dims[1:]))), None)


PARAMETER_BYTES, MANY_PARAMETER_BYTES = 4352, 32764
"""The parameters of a kernel, and since PTX 8.1 those of one for sm_70 or later (PTX ISA, "Kernel
Function Parameters": 4 KB and 32,764 bytes; ptxas 13.0 takes 0x1100 and 0x7ffc)."""


def check_parameters(module: Module, kernel: Function) -> None:
    """Raises PtxSyntaxError where the parameters of a kernel take more than a kernel can have."""
    taken = 0
    for parameter in kernel.parameters:
        taken = -(-taken // parameter.alignment) * parameter.alignment + parameter.size
        many = module.version >= (8, 1) and target_of(module)[0] >= (7, 0)
        limit = MANY_PARAMETER_BYTES if many else PARAMETER_BYTES
        if taken > limit:
            hint = "" if many else f" (PTX 8.1 for sm_70 or later: {MANY_PARAMETER_BYTES:,})"
            message = (
                f"the parameters of {kernel.name} take {taken:,} bytes up to here; a kernel has at"
                f" most {limit:,}{hint}. Pass a pointer to a buffer"
            )
            raise PtxSyntaxError(message, parameter.span)
