"""Rules of declarations: where variables stand, and how much they and parameters hold.

Source: PTX ISA, "State Spaces", "Initializers" and "Kernel Function Parameters".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from warploom.core.errors import PtxSyntaxError
from warploom.core.types import OPAQUE, PRED, Kind, ScalarType
from warploom.isa.instruction import Immediate, Space, Symbol
from warploom.ptx.declarations import MOST_VECTOR_BITS
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
        message = f"`{variable.name}` is a predicate; a predicate must be in a register"
        raise PtxSyntaxError(message, variable.span)
    if variable.type.name in OPAQUE and variable.space is not Space.GLOBAL:
        message = f"a .{variable.type.name} variable must be .global, or a parameter of a kernel"
        raise PtxSyntaxError(message, variable.span)
    if variable.initial is not None and variable.space not in INITIALIZED:
        message = f"a .{variable.space.value} variable cannot have an initial value"
        raise PtxSyntaxError(message, variable.span)
    if variable.bank and (variable.linkage != "extern" or variable.shape != (None,)):
        message = f"constant bank {variable.bank} can hold only `.extern` arrays without a length"
        raise PtxSyntaxError(message, variable.span)
    if variable.linkage == "common" and variable.space is not Space.GLOBAL:
        raise PtxSyntaxError("a .common variable must be .global", variable.span)
    check_width(variable)
    check_initial(variable)
    if 0 in variable.shape:
        message = f"`{variable.name}` has no elements: array lengths must be at least 1"
        raise PtxSyntaxError(message, variable.span)
    if None in variable.shape and variable.linkage != "extern":
        message = f"`{variable.name}[]` has no length; only an .extern array may omit it"
        raise PtxSyntaxError(message, variable.span)


def check_width(variable: Variable) -> None:
    """Raises PtxSyntaxError for a vector that is wider than any may be (PTX ISA, "Vectors")."""
    if variable.vector > 1 and variable.element_bytes * 8 > MOST_VECTOR_BITS:
        message = (
            f"`{variable.name}` has {variable.element_bytes * 8} bits; a vector has at most 128"
        )
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
                message = (
                    f"the constants up to this one take {taken} bytes, but the limit is "
                    f"{CONSTANT_BYTES}"
                )
                raise PtxSyntaxError(message, variable.span)


def check_initial(variable: Variable) -> None:
    """Raises PtxSyntaxError where a variable has more initial values than elements."""
    dims = variable.shape if variable.vector == 1 else (*variable.shape, variable.vector)
    dims = tuple(math.inf if length is None else length for length in dims)
    if variable.vector > 1 and isinstance(variable.initial, tuple):
        for vector in _innermost(variable.initial):
            if len(vector) < variable.vector:
                message = (
                    f"a vector of `{variable.name}` must have {variable.vector} initial values"
                )
                raise PtxSyntaxError(message, variable.span)
    if isinstance(variable.initial, tuple) and (beyond := _beyond(variable.initial, dims)):
        message = f"`{variable.name}` has {beyond[0]} initial values for {beyond[1]} elements"
        raise PtxSyntaxError(message, variable.span)
    if variable.initial is not None and not _suits(variable.initial, len(dims), variable.type):
        message = (
            f"the initial value of `{variable.name}` does not match {variable.type}: it must have "
            "braces for each dimension and each vector, and contain numbers of this type"
        )
        raise PtxSyntaxError(message, variable.span)


def _suits(value: Initializer, depth: int, type: ScalarType) -> bool:
    """Returns whether a value has braces to a depth, and in them numbers or addresses that can be
    of a type (ptxas takes none of .f16)."""
    if type.name in OPAQUE:
        return True
    if isinstance(value, tuple):
        return depth > 0 and all(_suits(part, depth - 1, type) for part in value)
    if depth or (type.is_float and type.bits < 32):
        return False
    match value:
        case Immediate():
            return bool(value.float_bits) == type.is_float or type.kind is Kind.BITS
        case Symbol():
            return type.is_integer and type.bits >= 32
        case _:
            return type.is_integer


def _innermost(values: tuple[Initializer, ...]) -> Iterator[tuple[Initializer, ...]]:
    """Yields the values in each pair of braces without inner ones."""
    inner = [value for value in values if isinstance(value, tuple)]
    for value in inner:
        yield from _innermost(value)
    if not inner:
        yield values


def _beyond(values: tuple[Initializer, ...], dims: tuple[float, ...]) -> tuple[int, float] | None:
    """Returns the number of values between braces and of the elements that they are for, where
    those are too few. Inner braces hold a row each, flat values follow one another."""
    nested = [value for value in values if isinstance(value, tuple)]
    capacity = (dims[0] if dims else 1) if nested else math.prod(dims)
    if len(values) > capacity:
        return len(values), capacity
    return next((found for value in nested if (found := _beyond(value, dims[1:]))), None)


def check_parameter(function: Function, parameter: Variable, *, result: bool) -> None:
    """Raises PtxSyntaxError for a parameter or a result that cannot be one, as ptxas has it."""
    wrong = ""
    if parameter.space is Space.REG:
        if parameter.shape:
            wrong = "is an array, which cannot be in a register"
    elif parameter.type is PRED:
        wrong = "is a predicate; a predicate must be in a register"
    elif parameter.vector > 1 and not parameter.shape:
        wrong = "is a vector; pass it as an array or in registers"
    elif parameter.type.name in OPAQUE and not function.is_entry:
        wrong = f"is a .{parameter.type.name}, which only kernels support as a parameter"
    elif not function.is_entry and (parameter.pointer_space or parameter.pointer_align):
        wrong = "has .ptr, which only kernel parameters support"
    if parameter.initial is not None:
        wrong = "has an initial value, but a parameter cannot be initialized"
    if (result or function.is_entry) and not {0, None}.isdisjoint(parameter.shape):
        wrong = "has no length; only the last parameter of a .func may omit it"
    if wrong:
        raise PtxSyntaxError(f"parameter `{parameter.name}` {wrong}", parameter.span)


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
                f"the parameters of {kernel.name} up to this one take {taken:,} bytes, but the "
                f"limit is {limit:,}{hint}. Pass a pointer to a buffer"
            )
            raise PtxSyntaxError(message, parameter.span)
