"""Finds the atomics that leave the same value in memory in whatever order they are performed, and
those that can be performed later, in the order that the program has.

red.global.add.u32 [%rd1], %r1;     sums of integers wrap around: any order
red.global.add.f32 [%rd1], %f1;     sums are rounded: the order shows
atom.global.exch.b32 ...            the last one stays: the order shows
"""

from __future__ import annotations

from warploom.isa.spec import Operation
from warploom.isa.terms import Term

OPERATORS = frozenset(("add", "and", "or", "xor", "min", "max"))
"""Operators of integers that are associative and commutative (additions wrap around)."""


def commuting_operator(combine: Term) -> str | None:
    """Returns the operator of an atomic with the term `combine` (`Operation.combine`), where it
    combines the value in memory with one operand, both integers, and the order of several shows in
    none but their old values; else None."""
    of_memory_and_operand = [(arg.op, str(arg.attr)) for arg in combine.args] == [
        ("arg", "0"),
        ("arg", "1"),
    ]
    integer = combine.type.is_integer and not combine.type.is_float
    return combine.op if combine.op in OPERATORS and of_memory_and_operand and integer else None


def is_deferrable(operation: Operation) -> bool:
    """Returns whether an atomic whose old value nobody reads can be performed after its instruction
    by its address and its operand alone: it has one operand of at most 64 bits an element, and no
    precondition on the word in memory."""
    has_precondition = operation.spec.memory_precondition is not None
    is_small = operation.modifiers.scalar().bits <= 64
    return operation.value_count == 1 and not has_precondition and is_small
