"""The functions without a body that the machines provide: printf, assert, malloc and free.

Compilers declare them `.extern`. A call of one stays a `call` in the program, its arguments and
results in registers; `machine.services` says what each does. Source: CUDA C++ Programming Guide,
"Formatted Output", "Assertion", "Dynamic Global Memory Allocation and Operations".
"""

from __future__ import annotations

from warploom.ptx.ir import Function, Instruction, Module, Symbol, Vector

SERVICES = {"vprintf": 2, "__assertfail": 5, "malloc": 1, "free": 1}
"""How many arguments each one takes."""


def service_function(module: Module, call: Instruction) -> Function | None:
    """Return the declaration of the service that a call of a module asks for; None for another
    call."""
    target = call.operands[1]
    if not isinstance(target, Symbol) or target.name not in SERVICES:
        return None
    declaration = module.function(target.name)
    if declaration is None or declaration.body is not None:
        return None
    return declaration if len(declaration.parameters) == SERVICES[target.name] else None


def service_of(instruction: Instruction) -> str | None:
    """Return the service that an instruction of a program asks for; None for any other instruction.

    Calls whose body has been put in place pass nothing any more.
    """
    if instruction.operation.name != "call":
        return None
    target, arguments = instruction.operands[1:3]
    passes = isinstance(arguments, Vector) and bool(arguments.elements)
    return target.name if isinstance(target, Symbol) and passes else None
