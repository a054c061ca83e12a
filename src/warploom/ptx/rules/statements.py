"""Legality of instructions as a whole: what their modifiers, their guard and several of their
operands have to do with each other. Rules about single operands are in `ptx.rules.operands`.

Source: PTX ISA, at the instructions that each rule names; ptxas refuses the same.
"""

from __future__ import annotations

from warploom.core.types import TYPES
from warploom.isa.instruction import (
    Address,
    Immediate,
    Instruction,
    Operand,
    Pair,
    Register,
    Sink,
    Space,
    Special,
    Symbol,
    Vector,
)
from warploom.isa.kinds import OpKind
from warploom.ptx.scope import Scope
from warploom.simt.schedule_layout import BARRIERS

WARP = 32
HINT = "L2::cache_hint"
DISCARDING = (OpKind.ATOMIC, OpKind.MBARRIER)


def check_statement(scope: Scope, instruction: Instruction) -> None:
    """Check that an instruction's parts go together."""
    kind = instruction.operation.kind
    check_specials(scope, instruction)
    check_policy(scope, instruction)
    check_discarded(scope, instruction)
    if kind is OpKind.BLOCK_BARRIER:
        check_barrier(scope, instruction)
    elif kind in (OpKind.LOAD, OpKind.STORE):
        check_passing(scope, instruction)
        check_elements(scope, instruction)


def check_specials(scope: Scope, instruction: Instruction) -> None:
    """Check that an instruction can read a special register: `mov` can, and `cvt`, of integers, as
    for ptxas (PTX ISA, "Special Registers", says mov alone)."""
    operation = instruction.operation
    for operand in instruction.written:
        if not isinstance(operand, Special):
            continue
        types = (*operation.destination_types, *operation.source_types)
        floats = any(type is None or type.is_float for type in types)
        if operation.name not in ("mov", "cvt") or floats:
            message = (
                f"`{operation.text}` cannot read `{operand.name}`: first move it into a register, "
                "because only mov and integer cvt read special registers"
            )
            raise scope.error(message, operand.span)


def check_discarded(scope: Scope, instruction: Instruction) -> None:
    """Check that a result that is discarded (`_`) is that of an atomic, of a comparison, or beside
    a predicate, or some elements of a vector."""
    operation = instruction.operation
    for operand in instruction.written[: len(operation.spec.destinations)]:
        discarded = isinstance(operand, Sink)
        allowed = operation.kind in DISCARDING or operation.name == "setp"
        if isinstance(operand, Pair):
            discarded, allowed = isinstance(operand.first, Sink), operation.name != "shfl"
        elif isinstance(operand, Vector):
            discarded = all(isinstance(e, Sink) for e in operand.elements)
            allowed = operation.kind in DISCARDING
        if discarded and not allowed:
            message = f"`{operation.text}` needs a register for its result, not `_`"
            raise scope.error(message, operand.span)


def check_policy(scope: Scope, instruction: Instruction) -> None:
    """Check that a cache policy stands where `.L2::cache_hint` says so, and only there."""
    operation = instruction.operation
    shown = operation.spec.shown
    if not shown or shown[-1].name != "policy" or not shown[-1].optional:
        return
    given = len(instruction.written)
    hinted = HINT in operation.modifiers
    # Only where it stands behind all other operands is it known to be the policy.
    if hinted and given <= operation.spec.needed:
        message = f"`{operation.text}` requires a cache policy as its last operand"
        raise scope.error(message, instruction.span)
    if not hinted and given == len(shown):
        message = f"a cache policy requires `.{HINT}`, which `{operation.text}` lacks"
        raise scope.error(message, instruction.written[-1].span)


def check_barrier(scope: Scope, instruction: Instruction) -> None:
    """Check constants: a barrier of the block's 16, and a count of whole warps (PTX ISA, "bar")."""
    for spec, operand in zip(
        instruction.operation.spec.sources, _sources(instruction), strict=False
    ):
        if not isinstance(operand, Immediate):
            continue
        if spec.name == "a" and operand.value not in range(BARRIERS):
            message = (
                f"a block has barriers 0 to {BARRIERS - 1}; there is no barrier {operand.value}"
            )
            raise scope.error(message, operand.span)
        if spec.name == "b" and operand.value % WARP:
            message = f"threads arrive in whole warps: {operand.value} is not a multiple of {WARP}"
            raise scope.error(message, operand.span)


def _sources(instruction: Instruction) -> tuple[Operand, ...]:
    return instruction.written[len(instruction.operation.spec.destinations) :]


def check_passing(scope: Scope, instruction: Instruction) -> None:
    """Check that what passes arguments and results of a call has no guard (PTX ISA, "Device
    Function Parameters")."""
    if instruction.guard is None:
        return
    for operand in instruction.operands:
        base = operand.base if isinstance(operand, Address) else None
        if not isinstance(base, Symbol) or base.name in scope.inputs:
            continue
        variable = scope.variables.get(base.name)
        if variable is not None and variable.space is Space.PARAM:
            message = (
                f"`{instruction.operation.text}` must not have a guard, because `{base.name}` is a "
                "parameter of a call: guard the call"
            )
            raise scope.error(message, instruction.span)


def check_elements(scope: Scope, instruction: Instruction) -> None:
    """Check that the registers of a vector have one width, and are not integers beside floats (PTX
    ISA, "Vectors as Operands")."""
    for operand in instruction.written:
        if not isinstance(operand, Vector):
            continue
        types = {e.type.name for e in operand.elements if isinstance(e, Register)}
        widths = {TYPES[name].bits for name in types}
        kinds = {TYPES[name].is_float for name in types if not name.startswith("b")}
        if len(widths) > 1 or len(kinds) > 1:
            names = ", ".join(sorted(types))
            raise scope.error(
                f"the elements of a vector must have the same type, not {names}", operand.span
            )
