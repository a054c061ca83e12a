"""Finds how often loops run whose iterations are decided before they begin.

    r = 3
    loop: ...; r = r - 1; if (r != 0) goto loop      3 iterations, the last one has 2 before it

Handled is a branch on all paths through a loop, which compares forms that differ by a constant and
a multiple of the count of iterations; or is taken until they are equal, where the count changes
their difference by 1, and what else it consists of is constant while the loop runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warploom.analysis.linear.forms import Form, IndexVariable, form, replaced
from warploom.analysis.linear.term_forms import evaluate
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

    def difference(self, arguments: Sequence[Form | None]) -> Form | None:
        """Returns the left operand of the comparison less the right one, given the forms of the
        `sources`; None if one is unknown."""
        left, right = (evaluate(argument, arguments) for argument in self.term.args)
        return None if left is None or right is None else left.plus(right, -1)

    def fixed(self, arguments: Sequence[Form | None], *, first: bool) -> dict[IndexVariable, Form]:
        """Returns the variable that has one value on the edge to the first successor, or to the
        second, because the comparison is one of it with a constant for equality; given the forms of
        the `sources`."""
        difference = self.difference(arguments)
        op = self.term.op if first == self.is_first else _NEGATED[self.term.op]
        if op != "eq" or difference is None or len(difference.strides) != 1:
            return {}
        ((variable, stride),) = difference.strides
        return (
            {} if difference.constant % stride else {variable: form(-difference.constant // stride)}
        )


def last_count(
    comparison: BranchComparison,
    arguments: Sequence[Form | None],
    count: IndexVariable,
    *,
    goes_on_first: bool,
) -> Form | None:
    """Returns how many iterations a loop has before the one in which the branch that has this
    comparison leaves it, if it decides that; else None. `arguments` are the forms of the
    comparison's sources, `count` is the variable in them that counts the iterations before.
    `goes_on_first`: the first successor of the block is in the loop."""
    left, right = (evaluate(argument, arguments) for argument in comparison.term.args)
    if left is None or right is None:
        return None
    op = comparison.term.op
    if goes_on_first != comparison.is_first:
        op = _NEGATED[op]
    difference = left.plus(right, -1)
    strides = dict(difference.strides)
    if count not in strides:
        return None
    others, stride = difference.without(count), strides[count]
    if others.is_constant:
        number = _first_failure(op, others.constant, stride)
        last = None if number is None else form(number)
    else:
        last = others.times(-stride) if op == "ne" and abs(stride) == 1 else None
    # No loop is assumed to run so often that a counter wraps around (`term_forms.COUNTER_BITS`), so
    # that counting down to 0 begins above it.
    if last is None or not last.is_bounded or last.high < 0:
        return None
    type = comparison.term.args[0].type
    return last if all(_fits(side, count, last.high, type) for side in (left, right)) else None


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
    ends = [replaced(side, {count: form(value)}) for value in (0, last)]
    lowest = -(1 << type.bits - 1) if type.is_signed else 0
    return all(lowest <= end.low and end.high < lowest + (1 << type.bits) for end in ends)
