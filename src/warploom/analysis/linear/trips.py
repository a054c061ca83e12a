"""Finds how often loops run whose iterations a launch decides, for all threads alike.

    r = 3
    loop: ...; r = r - 1; if (r != 0) goto loop      3 iterations

Handled is a loop with one back edge, whose branch compares forms that differ by a constant and a
multiple of the count of iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warploom.analysis.linear.forms import Form, IndexVariable, evaluate, form
from warploom.core.types import ScalarType
from warploom.isa.instruction import Operand, flatten_operands
from warploom.isa.terms import Term
from warploom.program.cfg import ProgramBlock
from warploom.program.program import Program
from warploom.program.uses import writes

_NEGATED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


@dataclass(frozen=True, slots=True)
class BranchComparison:
    """The comparison that decides the branch at the end of a block: its term, of the `sources` of
    instruction number `instruction`, and whether it is true where the branch goes to the first
    successor of the block."""

    term: Term
    instruction: int
    sources: tuple[Operand, ...]
    is_first: bool

    @classmethod
    def of(cls, program: Program, block: ProgramBlock) -> BranchComparison | None:
        """Returns the comparison; None if the block does not end with a branch that one of its own
        instructions decides by a comparison."""
        guard = program.instructions[block.stop - 1].guard
        if guard is None or len(block.successors) != 2:
            return None
        for index in range(block.stop - 2, block.start - 1, -1):
            instruction = program.instructions[index]
            spec = instruction.operation.spec
            if guard.register not in writes(instruction):
                continue
            targets = [*flatten_operands(instruction.operands[: len(spec.destinations)])]
            sources = tuple(flatten_operands(instruction.operands[len(spec.destinations) :]))
            if instruction.guard is not None or spec.semantics is None:
                return None
            terms, target = instruction.operation.terms_for(len(sources)), guard.register
            if targets.index(target) >= len(terms):
                return None
            term = terms[targets.index(target)]
            if term.op not in _NEGATED:
                return None
            return cls(term, index, sources, is_first=not guard.negated)
        return None


def trip_count(
    comparison: BranchComparison,
    arguments: Sequence[Form | None],
    count: IndexVariable,
    *,
    goes_on_first: bool,
) -> int | None:
    """Returns how often a loop runs whose last branch has this comparison, if that decides it; else
    None. `arguments` are the forms of the comparison's sources, `count` is the variable in them
    that counts the iterations before. `goes_on_first`: the first successor of the block is the
    loop's header."""
    left, right = (evaluate(argument, arguments) for argument in comparison.term.args)
    if left is None or right is None:
        return None
    op = comparison.term.op
    if goes_on_first != comparison.is_first:
        op = _NEGATED[op]
    difference = left.plus(right, -1)
    strides = dict(difference.strides)
    if strides.keys() != {count}:
        return None
    last = _first_failure(op, difference.constant, strides[count])
    type = comparison.term.args[0].type
    if last is None or not all(_fits(side, count, last, type) for side in (left, right)):
        return None
    return last + 1


def _first_failure(op: str, constant: int, stride: int) -> int | None:
    """Returns the least n from 0 on for which a comparison `constant + stride * n op 0` is false;
    None if there is none."""
    if op == "ne":
        zero = -constant // stride
        return zero if zero >= 0 and zero * stride == -constant else None
    if op == "eq":
        return int(constant == 0)
    # As a form that is at least 0 where the comparison is true.
    sign, offset = {"gt": (1, -1), "ge": (1, 0), "lt": (-1, -1), "le": (-1, 0)}[op]
    constant, stride = sign * constant + offset, sign * stride
    if constant < 0:
        return 0
    return None if stride >= 0 else constant // -stride + 1


def _fits(side: Form, count: IndexVariable, last: int, type: ScalarType) -> bool:
    """Returns whether a form is in the range of a type while `count` is at most `last`."""
    ends = [replaced(side, {count: value}) for value in (0, last)]
    lowest = -(1 << type.bits - 1) if type.is_signed else 0
    return all(lowest <= end.low and end.high < lowest + (1 << type.bits) for end in ends)


def replaced(value: Form, values: Mapping[IndexVariable, int]) -> Form:
    """Returns a form with constants in place of some variables."""
    for variable, stride in value.strides:
        if variable in values:
            value = value.without(variable).plus(form(stride * values[variable]))
    return value
