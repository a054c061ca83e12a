"""Recognizes calls of functions that the machines provide: printf, assert, malloc and free.

Compilers declare these functions `.extern`, without a body. A call of one stays a `call` in the
program, with arguments and results in registers; `machine.services` implements them. Source: CUDA
C++ Programming Guide, "Formatted Output", "Assertion", "Dynamic Global Memory Allocation and
Operations".
"""

from __future__ import annotations

from warploom.isa.instruction import Instruction, Symbol, Vector
from warploom.isa.kinds import OpKind
from warploom.ptx.module import Function, Module

ASSERT = "__assertfail"

SERVICES = {"vprintf": 2, ASSERT: 5, "malloc": 1, "free": 1}
"""Maps each function that the machines provide to its number of arguments."""


def service_function(module: Module, call: Instruction) -> Function | None:
    """Returns the `.extern` declaration of the provided function (printf, assert, malloc, free)
    that a call in a module names; None for other calls, also of a function that has a body or
    another number of parameters."""
    target = call.operands[1]
    if not isinstance(target, Symbol) or target.name not in SERVICES:
        return None
    declaration = module.function(target.name)
    if declaration is None or declaration.body is not None:
        return None
    return declaration if len(declaration.parameters) == SERVICES[target.name] else None


def is_assert(instruction: Instruction) -> bool:
    """Returns whether an instruction calls the function that a failed assertion calls: one that
    ends the kernel as a fault does, and has no other effect."""
    return service_of(instruction) == ASSERT


def service_of(instruction: Instruction) -> str | None:
    """Returns the name of the function of the host (printf, assert, malloc, free) that an
    instruction of a program calls: a call by name that passes arguments; None for other
    instructions. Calls that are inlined or retained have no arguments any more."""
    if instruction.operation.kind is not OpKind.CALL:
        return None
    target, arguments = instruction.operands[1:3]
    passes = isinstance(arguments, Vector) and bool(arguments.elements)
    return target.name if isinstance(target, Symbol) and passes else None
