"""Checks that a parsed module keeps the rules of PTX: variables, functions, guards and calls.

Rules about single operands are in `ptx.rules.operands`. Source: PTX ISA, "Directives", "State
Spaces" and "Control Flow Instructions".
"""

from __future__ import annotations

from collections.abc import Sequence

from warploom.core.errors import PtxSyntaxError
from warploom.core.types import PRED
from warploom.isa.instruction import (
    Address,
    Immediate,
    Instruction,
    Operand,
    Register,
    Sink,
    Space,
    Symbol,
    Vector,
)
from warploom.isa.kinds import OpKind
from warploom.ptx.module import Function, Module, Prototype, Targets, Variable
from warploom.ptx.release import Releases
from warploom.ptx.rules.declarations import (
    BODY_SPACES,
    check_constants,
    check_parameter,
    check_parameters,
    check_variable,
    module_spaces,
)
from warploom.ptx.rules.operands import agrees, check_immediate, check_operands
from warploom.ptx.rules.statements import check_statement
from warploom.ptx.scope import Scope


def verify(module: Module) -> None:
    """Raise PtxSyntaxError at the first thing in a module that breaks a rule."""
    for variable in module.variables:
        check_variable(variable, module_spaces(module))
    check_constants(module)
    check_names(module)
    releases = Releases(module)
    seen = set[object]()
    for function in module.functions:
        check_signature(function)
        if function.is_entry:
            check_parameters(module, function)
        scope = Scope.of(module, function)
        for statement in function.body or ():
            if isinstance(statement, Instruction):
                shape = shape_of(statement)
                if shape is None or shape not in seen:
                    releases.check(statement)
                    check_instruction(scope, statement)
                    seen.add(shape)
            elif isinstance(statement, Variable):
                check_variable(statement, BODY_SPACES)
            elif isinstance(statement, Targets):
                check_targets(scope, statement)


def check_names(module: Module) -> None:
    """Check that a name is defined once; declarations may come beside the definition."""
    defined: set[str] = set()
    for one in (*module.variables, *module.functions):
        body = one.body is not None if isinstance(one, Function) else one.linkage != "extern"
        if body and one.name in defined:
            raise PtxSyntaxError(f"`{one.name}` is defined twice", one.span)
        if body:
            defined.add(one.name)


def check_signature(function: Function) -> None:
    """Check that an entry returns nothing and takes .param; a function passes .param or
    registers."""
    if function.is_entry and function.returns:
        raise PtxSyntaxError("an .entry cannot return a value", function.span)
    allowed = (Space.PARAM,) if function.is_entry else (Space.PARAM, Space.REG)
    for parameter in (*function.parameters, *function.returns):
        if parameter.space not in allowed:
            message = f"a parameter cannot be in .{parameter.space.value}"
            raise PtxSyntaxError(message, parameter.span)
        check_parameter(function, parameter, result=parameter in function.returns)


def check_targets(scope: Scope, targets: Targets) -> None:
    """Check that a list of targets names labels of this function, or functions."""
    known = scope.functions if targets.calls else scope.labels
    for name in targets.names:
        if name not in known:
            what = "function" if targets.calls else "label of this function"
            raise scope.error(f"`{name}` is not a {what}", targets.span)


# ---- instructions -------------------------------------------------------------------------------


def check_instruction(scope: Scope, instruction: Instruction) -> None:
    """Check that an instruction's guard and operands are what its form wants."""
    guard = instruction.guard
    if guard is not None and guard.register.type is not PRED:
        message = (
            f"a guard must be a predicate, but `{guard.register.name}` is {guard.register.type}"
        )
        raise scope.error(message, guard.register.span)
    if instruction.operation.kind is OpKind.CALL:
        check_call(scope, instruction)
    else:
        check_operands(scope, instruction)
        check_statement(scope, instruction)


def shape_of(instruction: Instruction) -> object:
    """Return all on which it depends whether an instruction keeps the rules, where that is its
    operation and the types of its registers; None where it is more."""
    shape: list[object] = [instruction.operation]
    if instruction.guard is not None:
        shape.append(instruction.guard.register.type.name)
    for operand in instruction.operands:
        if type(operand) is Register:
            shape.append(operand.type.name)
        elif type(operand) is Address and type(operand.base) is Register:
            shape.append(("[]", operand.base.type.name))
        else:
            return None
    return (instruction.guard is not None, *shape)


def check_call(scope: Scope, call: Instruction) -> None:
    """Check that a call names a function, or through a register a prototype, and its arguments."""
    returns, callee, arguments, *targets = call.operands
    assert isinstance(returns, Vector)
    assert isinstance(arguments, Vector)
    signature: Function | Prototype
    if isinstance(callee, Symbol):
        if callee.name not in scope.functions:
            raise scope.error(f"`{callee.name}` is not a function", callee.span)
        signature = scope.functions[callee.name]
        if signature.is_entry:
            raise scope.error("an .entry cannot be called, only launched", callee.span)
    else:
        target = targets[0] if targets else None
        named = scope.targets.get(target.name) if isinstance(target, Symbol) else None
        calls = isinstance(named, Prototype) or (isinstance(named, Targets) and named.calls)
        if not isinstance(callee, Register) or named is None or not calls:
            message = "a call through a register requires a .callprototype or .calltargets"
            raise scope.error(message, callee.span)
        signature = scope.functions[named.names[0]] if isinstance(named, Targets) else named
    check_passed(scope, call, signature.returns, returns, "results")
    check_passed(scope, call, signature.parameters, arguments, "arguments")


def check_passed(
    scope: Scope, call: Instruction, formals: Sequence[Variable], given: Vector, what: str
) -> None:
    """Check that there are as many values as the function declares, each of the declared size."""
    if len(formals) != len(given.elements):
        message = f"the function has {len(formals)} {what}, but the call has {len(given.elements)}"
        raise scope.error(message, given.span if given.elements else call.span)
    for formal, actual in zip(formals, given.elements, strict=True):
        if what == "results" and isinstance(actual, Sink):
            continue
        if not _fits(scope, call, formal, actual):
            message = f"this does not match the declared {formal.type} {formal.name}"
            raise scope.error(message, actual.span)


def _fits(scope: Scope, call: Instruction, formal: Variable, actual: Operand) -> bool:
    match actual:
        case Symbol(name):
            variable = scope.variables.get(name)
            if variable is None or variable.space is not Space.PARAM:
                return False
            return formal.space is Space.PARAM and variable.size == formal.size
        case Register():
            return not formal.shape and agrees(actual.type, formal.type, call.operation)
        case Immediate():
            check_immediate(scope, actual, formal.type)
            return True
        case _:
            return False
