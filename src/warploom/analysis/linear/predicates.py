"""Finds what predicates say of the thread that has them: comparisons of linear forms (`forms`).

A *fact* is a form that is at least 0: where `i < n` holds, `n - 1 - i` is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from warploom.analysis.linear.affine import argument_values
from warploom.analysis.linear.forms import ELSEWHERE, Form, evaluate, form
from warploom.core.types import PRED, ScalarType
from warploom.isa.terms import Term
from warploom.ptx.ir import Guard, Instruction, Operand, Register, spread

Facts = frozenset[Form]

NO_FACTS: Facts = frozenset()


@dataclass(frozen=True, slots=True)
class Implications:
    """Holds what a predicate says: the facts where it holds, and those where it does not."""

    where_true: Facts = NO_FACTS
    where_false: Facts = NO_FACTS


NO_IMPLICATIONS = Implications()

PredicateExpression = Implications | tuple[str, "tuple[PredicateExpression, ...]"] | str
"""What an instruction makes a predicate say: a test; `and`, `or` or `not` of others; or what the
register of that name says."""

_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def written_predicates(instruction: Instruction) -> list[Register]:
    """Return the predicates that an instruction sets."""
    count = len(instruction.operation.spec.destinations)
    return [
        one
        for one in spread(instruction.operands[:count])
        if isinstance(one, Register) and one.type == PRED
    ]


def predicate_expressions(
    instruction: Instruction, forms: Sequence[Form | None]
) -> Iterator[tuple[str, PredicateExpression]]:
    """Yield what each predicate says that an instruction sets, whose sources have these forms."""
    spec = instruction.operation.spec
    sources = tuple(spread(instruction.operands[len(spec.destinations) :]))
    terms = instruction.operation.terms_for(len(sources)) if spec.semantics else ()
    operands, arguments = argument_values(instruction, sources), argument_values(instruction, forms)
    for place, target in enumerate(written_predicates(instruction)):
        applies = place < len(terms) and instruction.guard is None
        yield (
            target.name,
            _predicate_expression(terms[place], operands, arguments)
            if applies
            else NO_IMPLICATIONS,
        )


def _predicate_expression(
    term: Term, operands: Sequence[Operand], forms: Sequence[Form | None]
) -> PredicateExpression:
    """Return what the value of a term says of its operands, which have these forms."""
    if term.op in ("and", "or", "not"):
        return term.op, tuple(_predicate_expression(each, operands, forms) for each in term.args)
    if term.op == "arg":
        operand = operands[int(str(term.attr))]
        return operand.name if isinstance(operand, Register) else NO_IMPLICATIONS
    if term.op in _COMPARISONS:
        one, two = (evaluate(each, forms) for each in term.args)
        return _comparison_implications(term.op, one, two, term.args[0].type)
    return NO_IMPLICATIONS


def implications_of(
    expression: PredicateExpression, tests: Mapping[str, Implications]
) -> Implications:
    """Return what is said where registers have passed these tests."""
    if isinstance(expression, Implications):
        return expression
    if isinstance(expression, str):
        return tests.get(expression, NO_IMPLICATIONS)
    op, parts = expression[0], [implications_of(part, tests) for part in expression[1]]
    if op == "not":
        return Implications(parts[0].where_false, parts[0].where_true)
    one, two = parts
    if op == "and":
        return Implications(one.where_true | two.where_true, one.where_false & two.where_false)
    return Implications(one.where_true & two.where_true, one.where_false | two.where_false)


def guard_facts(tests: Mapping[str, Implications], guard: Guard | None, *, holds: bool) -> Facts:
    """Return what is known of threads for which a guard holds, or does not."""
    if guard is None:
        return NO_FACTS
    test = tests.get(guard.register.name, NO_IMPLICATIONS)
    return test.where_true if holds != guard.negated else test.where_false


def _comparison_implications(
    op: str, one: Form | None, two: Form | None, type: ScalarType
) -> Implications:
    """Return what a comparison of integers of a type says."""
    if (
        one is None
        or two is None
        or not (_cannot_wrap(one, two, type) and _cannot_wrap(two, one, type))
    ):
        return NO_IMPLICATIONS
    below, above = two.plus(one, -1), one.plus(two, -1)
    less, more = below.plus(form(1), -1), above.plus(form(1), -1)
    match op:
        case "lt":
            return _implications([less], [above])
        case "le":
            return _implications([below], [more])
        case "gt":
            return _implications([more], [below])
        case "ge":
            return _implications([above], [less])
        case _:
            pass
    not_equal = [more] if _minimum(above) == 0 else [less] if _minimum(below) == 0 else []
    same, different = (
        _implications([below, above], not_equal),
        _implications(not_equal, [below, above]),
    )
    return same if op == "eq" else different


def _implications(where_true: Iterable[Form], where_false: Iterable[Form]) -> Implications:
    return Implications(_loop_invariant_facts(where_true), _loop_invariant_facts(where_false))


def _loop_invariant_facts(forms: Iterable[Form]) -> Facts:
    """Return the facts whose variables change only where blocks begin."""
    return frozenset(
        each
        for each in forms
        if each.strides and all(ELSEWHERE not in variable.at for variable, _ in each.strides)
    )


def _minimum(one: Form) -> int | None:
    """Return the least value of a form, None where it has none."""
    falls = any(variable.extent is None and stride < 0 for variable, stride in one.strides)
    return None if falls else one.low


def _cannot_wrap(one: Form, limit: Form, type: ScalarType) -> bool:
    """Return whether a form, as long as it is compared with a limit each time that one of its
    variables without bounds has grown by one, never leaves its type: then it has not wrapped
    around."""
    steps = [stride for variable, stride in one.strides if variable.extent is None]
    if not steps:
        return True
    if not limit.is_bounded:
        return False
    lowest = -(1 << type.bits - 1) if type.is_signed else 0
    highest = lowest + (1 << type.bits) - 1
    rise, fall = max(0, *steps), min(0, *steps)
    return limit.high + rise <= highest and limit.low + fall >= lowest
