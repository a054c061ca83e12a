"""Finds the allocations that the result of an instruction may point into, by those of its sources.

    ld.global.u64 %rd1, [%rd2];            a number from memory, perhaps a pointer
    mad.lo.s64 %rd3, %rd1, 48, %rd4;       48 times it is none: %rd3 points where %rd4 points

A pointer that is added to, selected or converted remains one. One that is multiplied, shifted to
the left, or of which few low bits are left does not."""

from __future__ import annotations

from collections.abc import Sequence

from warploom.analysis.linear.joins import LinearValue, united_allocations
from warploom.analysis.linear.term_forms import evaluate
from warploom.isa.instruction import Instruction
from warploom.isa.terms import Term

NUMBER_BITS = 32
"""What is below 2 to the power of these is no address."""


def allocations_of_result(
    instruction: Instruction, position: int, values: Sequence[LinearValue]
) -> frozenset[int] | None:
    """Returns the allocations that an instruction's destination number `position` may point into,
    by their start; None if it may point into any. `values` are those of its sources."""
    united = united_allocations(values)
    operation = instruction.operation
    if united == frozenset() or operation.spec.semantics is None:
        return united
    types, terms = operation.source_types, operation.terms_for(len(values))
    arguments = [value for value, type in zip(values, types, strict=False) if type]
    if position >= len(terms):
        return united
    return united_allocations(_pointers(terms[position], arguments))


def _pointers(term: Term, arguments: Sequence[LinearValue]) -> list[LinearValue]:
    """Returns the arguments from which a term may have a pointer."""
    if term.op == "arg":
        return [arguments[int(str(term.attr))]]
    if _is_number(term, arguments):
        return []
    return [value for argument in term.args for value in _pointers(argument, arguments)]


def _is_number(term: Term, arguments: Sequence[LinearValue]) -> bool:
    """Returns whether the value of a term is no pointer, whatever its arguments are."""
    match term.op:
        case "shl":
            return _constant(term.args[1], arguments) not in (None, 0)
        case "mul":
            factors = [_constant(factor, arguments) for factor in term.args]
            return any(factor is not None and abs(factor) > 1 for factor in factors)
        case "and":
            masks = [_constant(mask, arguments) for mask in term.args]
            return any(mask is not None and 0 <= mask < 1 << NUMBER_BITS for mask in masks)
        case _:
            return False


def _constant(term: Term, arguments: Sequence[LinearValue]) -> int | None:
    """Returns the value of a term that has one; None for any other."""
    value = evaluate(term, [argument.form for argument in arguments])
    return value.constant if value is not None and value.is_constant else None
