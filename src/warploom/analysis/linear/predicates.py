"""Finds what predicates say of the thread that has them: comparisons of linear forms (`forms`).

A *fact* is a form that is at least 0: where `i < n` holds, `n - 1 - i` is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from warploom.analysis.linear.affine import typed
from warploom.analysis.linear.forms import ELSEWHERE, Form, evaluate, form
from warploom.core.types import PRED, ScalarType
from warploom.isa.terms import Term
from warploom.ptx.ir import Guard, Instruction, Operand, Register, spread

Facts = frozenset[Form]

NO_FACTS: Facts = frozenset()


@dataclass(frozen=True, slots=True)
class Test:
    """Holds what a predicate says: the facts where it holds, and those where it does not."""

    where_true: Facts = NO_FACTS
    where_false: Facts = NO_FACTS


NOTHING_SAID = Test()

Saying = Test | tuple[str, "tuple[Saying, ...]"] | str
"""What an instruction makes a predicate say: a test; `and`, `or` or `not` of others; or what the
register of that name says."""

_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def predicates(made: Instruction) -> list[Register]:
    """Return the predicates that an instruction sets."""
    count = len(made.operation.spec.destinations)
    return [
        one
        for one in spread(made.operands[:count])
        if isinstance(one, Register) and one.type == PRED
    ]


def sayings(made: Instruction, forms: Sequence[Form | None]) -> Iterator[tuple[str, Saying]]:
    """Yield what each predicate says that an instruction sets, whose sources have these forms."""
    spec = made.operation.spec
    sources = tuple(spread(made.operands[len(spec.destinations) :]))
    terms = made.operation.terms_for(len(sources)) if spec.semantics else ()
    operands, arguments = typed(made, sources), typed(made, forms)
    for place, target in enumerate(predicates(made)):
        known = place < len(terms) and made.guard is None
        yield target.name, _saying(terms[place], operands, arguments) if known else NOTHING_SAID


def _saying(term: Term, operands: Sequence[Operand], forms: Sequence[Form | None]) -> Saying:
    """Return what the value of a term says of its operands, which have these forms."""
    if term.op in ("and", "or", "not"):
        return term.op, tuple(_saying(each, operands, forms) for each in term.args)
    if term.op == "arg":
        operand = operands[int(str(term.attr))]
        return operand.name if isinstance(operand, Register) else NOTHING_SAID
    if term.op in _COMPARISONS:
        one, two = (evaluate(each, forms) for each in term.args)
        return _compared(term.op, one, two, term.args[0].type)
    return NOTHING_SAID


def said(saying: Saying, tests: Mapping[str, Test]) -> Test:
    """Return what is said where registers have passed these tests."""
    if isinstance(saying, Test):
        return saying
    if isinstance(saying, str):
        return tests.get(saying, NOTHING_SAID)
    op, parts = saying[0], [said(part, tests) for part in saying[1]]
    if op == "not":
        return Test(parts[0].where_false, parts[0].where_true)
    one, two = parts
    if op == "and":
        return Test(one.where_true | two.where_true, one.where_false & two.where_false)
    return Test(one.where_true & two.where_true, one.where_false | two.where_false)


def said_by_guard(tests: Mapping[str, Test], guard: Guard | None, *, holds: bool) -> Facts:
    """Return what is known of threads for which a guard holds, or does not."""
    if guard is None:
        return NO_FACTS
    test = tests.get(guard.register.name, NOTHING_SAID)
    return test.where_true if holds != guard.negated else test.where_false


def _compared(op: str, one: Form | None, two: Form | None, type: ScalarType) -> Test:
    """Return what a comparison of integers of a type says."""
    if one is None or two is None or not (_is_kept(one, two, type) and _is_kept(two, one, type)):
        return NOTHING_SAID
    below, above = two.plus(one, -1), one.plus(two, -1)
    less, more = below.plus(form(1), -1), above.plus(form(1), -1)
    match op:
        case "lt":
            return _test([less], [above])
        case "le":
            return _test([below], [more])
        case "gt":
            return _test([more], [below])
        case "ge":
            return _test([above], [less])
        case _:
            pass
    not_equal = [more] if _least(above) == 0 else [less] if _least(below) == 0 else []
    same, different = _test([below, above], not_equal), _test(not_equal, [below, above])
    return same if op == "eq" else different


def _test(where_true: Iterable[Form], where_false: Iterable[Form]) -> Test:
    return Test(_lasting(where_true), _lasting(where_false))


def _lasting(forms: Iterable[Form]) -> Facts:
    """Return the facts whose variables change only where blocks begin."""
    return frozenset(
        each
        for each in forms
        if each.strides and all(ELSEWHERE not in variable.at for variable, _ in each.strides)
    )


def _least(one: Form) -> int | None:
    """Return the least value of a form, None where it has none."""
    falls = any(variable.extent is None and stride < 0 for variable, stride in one.strides)
    return None if falls else one.low


def _is_kept(one: Form, limit: Form, type: ScalarType) -> bool:
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
