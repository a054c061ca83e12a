"""Derives facts from predicates: linear inequalities that hold if a comparison is true, or false.

A *fact* is a form (`forms`) that is at least 0:

    setp.lt.s32 %p1, %r1, %r2;     %p1 implies %r2 - 1 - %r1; !%p1 implies %r1 - %r2
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from warploom.analysis.linear.forms import ELSEWHERE, BitUnion, Form, form, replaced
from warploom.analysis.linear.register_values import argument_values
from warploom.analysis.linear.term_forms import evaluate
from warploom.core.types import PRED, ScalarType
from warploom.isa.instruction import Guard, Instruction, Operand, Register, flatten_operands
from warploom.isa.terms import Term

Facts = frozenset[Form]

NO_FACTS: Facts = frozenset()


@dataclass(frozen=True, slots=True)
class Implications:
    """The facts that hold if a predicate is true, and those that hold if it is false."""

    where_true: Facts = NO_FACTS
    where_false: Facts = NO_FACTS


NO_IMPLICATIONS = Implications()

PredicateExpression = Implications | tuple[str, "tuple[PredicateExpression, ...]"] | str
"""The value that an instruction gives a predicate: the implications of a comparison; `and`, `or` or
`not` of expressions; or the name of a register with that value."""

_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def written_predicates(instruction: Instruction) -> list[Register]:
    """Returns the predicate registers that an instruction writes."""
    count = len(instruction.operation.spec.destinations)
    return [
        operand
        for operand in flatten_operands(instruction.operands[:count])
        if isinstance(operand, Register) and operand.type == PRED
    ]


def predicate_expressions(
    instruction: Instruction, forms: Sequence[Form | None]
) -> Iterator[tuple[str, PredicateExpression]]:
    """Yields the name of each predicate register that an instruction writes, with its new value;
    that has no implications if the instruction is guarded or computes no term. `forms` are those of
    the instruction's sources."""
    spec = instruction.operation.spec
    sources = tuple(flatten_operands(instruction.operands[len(spec.destinations) :]))
    terms = instruction.operation.terms_for(len(sources)) if spec.semantics else ()
    operands, arguments = argument_values(instruction, sources), argument_values(instruction, forms)
    for position, target in enumerate(written_predicates(instruction)):
        applies = position < len(terms) and instruction.guard is None
        yield (
            target.name,
            _predicate_expression(terms[position], operands, arguments)
            if applies
            else NO_IMPLICATIONS,
        )


def _predicate_expression(
    term: Term, operands: Sequence[Operand], forms: Sequence[Form | None]
) -> PredicateExpression:
    """Returns the expression of a term: `and`, `or` and `not` of expressions, the name of a
    register, or the implications of a comparison of linear forms; no implications for others.
    `operands` are the arguments of the instruction's terms, `forms` their forms."""
    if term.op in ("and", "or", "not"):
        return term.op, tuple(
            _predicate_expression(argument, operands, forms) for argument in term.args
        )
    if term.op == "arg":
        operand = operands[int(str(term.attr))]
        return operand.name if isinstance(operand, Register) else NO_IMPLICATIONS
    if term.op in _COMPARISONS:
        left, right = (evaluate(argument, forms) for argument in term.args)
        return _comparison_implications(term.op, left, right, term.args[0].type)
    return NO_IMPLICATIONS


def implications_of(
    expression: PredicateExpression, implications: Mapping[str, Implications]
) -> Implications:
    """Returns the implications of an expression, given those of registers by name; none for a
    register without any. Where an `and` is false, or an `or` true, only facts that both operands
    imply hold."""
    if isinstance(expression, Implications):
        return expression
    if isinstance(expression, str):
        return implications.get(expression, NO_IMPLICATIONS)
    op, parts = expression[0], [implications_of(part, implications) for part in expression[1]]
    if op == "not":
        return Implications(parts[0].where_false, parts[0].where_true)
    left, right = parts
    # False for `a && b` means that one of the two is false, so only facts that both imply hold.
    if op == "and":
        return Implications(
            left.where_true | right.where_true, left.where_false & right.where_false
        )
    return Implications(left.where_true & right.where_true, left.where_false | right.where_false)


def guard_facts(
    implications: Mapping[str, Implications], guard: Guard | None, *, holds: bool
) -> Facts:
    """Returns the facts of threads for which a guard, with its negation, holds (`holds` is True),
    or of those for which it does not; none without a guard."""
    if guard is None:
        return NO_FACTS
    implication = implications.get(guard.register.name, NO_IMPLICATIONS)
    return implication.where_true if holds != guard.negated else implication.where_false


def _comparison_implications(
    op: str, left: Form | None, right: Form | None, type: ScalarType
) -> Implications:
    """Returns the implications of a comparison of integers of a type, as differences of the forms
    that are at least 0 and do not change before the end of a block. There are no implications if a
    form is unknown or may wrap around while its loop runs. That two are not equal implies something
    only if the least value of one difference is 0."""
    if (
        left is None
        or right is None
        or not (_cannot_wrap(left, right, type) and _cannot_wrap(right, left, type))
    ):
        return NO_IMPLICATIONS
    # Of integers, `a < b` is `b - a - 1 >= 0`, and its negation is `a - b >= 0`.
    below, above = right.plus(left, -1), left.plus(right, -1)
    strictly_below, strictly_above = below.plus(form(1), -1), above.plus(form(1), -1)
    match op:
        case "lt":
            return _implications([strictly_below], [above])
        case "le":
            return _implications([below], [strictly_above])
        case "gt":
            return _implications([strictly_above], [below])
        case "ge":
            return _implications([above], [strictly_below])
        case _:
            pass
    # `a != b` is an inequality only if one difference is known not to be negative: then it is
    # positive.
    not_equal = (
        [strictly_above]
        if _minimum(above) == 0
        else [strictly_below]
        if _minimum(below) == 0
        else []
    )
    same, different = (
        _implications([below, above], not_equal),
        _implications(not_equal, [below, above]),
    )
    return same if op == "eq" else different


def _implications(where_true: Iterable[Form], where_false: Iterable[Form]) -> Implications:
    """Returns the implications of a predicate, from the forms that are at least 0 where it is true
    and where it is false; only those that hold up to the end of a block are retained."""
    return Implications(_facts_to_block_end(where_true), _facts_to_block_end(where_false))


def _facts_to_block_end(forms: Iterable[Form]) -> Facts:
    """Returns the facts whose variables change only at the start of blocks, so that they hold up to
    the end of a block; constant ones are left out."""
    return frozenset(
        fact
        for whole in forms
        for fact in _of_unions(whole)
        if fact.strides and all(ELSEWHERE not in variable.at for variable, _ in fact.strides)
    )


def _of_unions(fact: Form) -> Iterator[Form]:
    """Yields a fact, and those that follow because a union of bits is at least each of its parts:
    where `%tid.x | %tid.y` is 0, each of the two is at most 0."""
    yield fact
    for variable, stride in fact.strides:
        if isinstance(variable.part, BitUnion) and stride < 0:
            for side in (variable.part.left, variable.part.right):
                yield from _of_unions(replaced(fact, {variable: side}))


def _minimum(difference: Form) -> int | None:
    """Returns the least value of a form; None if it is unbounded below."""
    falls = any(variable.extent is None and stride < 0 for variable, stride in difference.strides)
    return None if falls else difference.low


def _cannot_wrap(compared: Form, limit: Form, type: ScalarType) -> bool:
    """Returns whether a form does not wrap around in its type, if the loop that moves it ends when
    its comparison with `limit` fails: one step (its largest stride of an unbounded variable) beyond
    the limit's bounds is still in the type. True without unbounded variables, else False for an
    unbounded limit."""
    steps = [stride for variable, stride in compared.strides if variable.extent is None]
    if not steps:
        return True
    if not limit.is_bounded:
        return False
    lowest = -(1 << type.bits - 1) if type.is_signed else 0
    highest = lowest + (1 << type.bits) - 1
    rise, fall = max(0, *steps), min(0, *steps)
    # An iteration ends the loop when the comparison fails, at most one step beyond the limit.
    return limit.high + rise <= highest and limit.low + fall >= lowest
