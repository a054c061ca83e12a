"""Records which sides of the conditions in instruction terms (`select`, in `isa.terms`) lanes take
on the reference machine: the coverage of the semantics by branch, beside that by form.

A side is written `OPCODE NUMBER true` or `OPCODE NUMBER false`; conditions are numbered in the
order in which the operation's terms have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import numpy as np

from warploom.isa.spec import Operation, Unit, decode
from warploom.isa.terms import Term
from warploom.machine.reference import evaluate
from warploom.machine.reference.evaluate import Node
from warploom.machine.reference.lanes import Values


class TakenSides:
    """Replaces the evaluation of `select` in this process by one that records the sides that are
    taken in some lane, in conditions of the operations that were added."""

    def __init__(self) -> None:
        """Begins with no operation, and no side that was taken since the last `collect`."""
        self._names: dict[int, str] = {}
        self._known: set[str] = set()
        self._taken: set[str] = set()
        nodes = cast("dict[str, Node]", evaluate.NODES)
        self._select = nodes["select"]
        nodes["select"] = self._evaluate

    def add(self, opcodes: Iterable[str]) -> None:
        """Adds the conditions of operations to those that are recorded."""
        for opcode in opcodes:
            if opcode not in self._known:
                self._known.add(opcode)
                for terms in _terms(decode(opcode)):
                    self._names |= {
                        id(term): f"{opcode} {n}" for n, term in enumerate(_conditions(terms))
                    }

    def collect(self) -> tuple[str, ...]:
        """Returns the sides that were taken since it was called last."""
        taken, self._taken = self._taken, set()
        return tuple(sorted(taken))

    def _evaluate(self, term: Term, args: Sequence[Values]) -> Values:
        """Returns the value of a `select`, and records the sides that its lanes take."""
        name = self._names.get(id(term))
        if name is not None:
            condition = np.asarray(args[0], bool)
            if condition.any():
                self._taken.add(f"{name} true")
            if not condition.all():
                self._taken.add(f"{name} false")
        return self._select(term, args)


def sides_of(opcode: str) -> int:
    """Returns how many sides the conditions of an operation have."""
    return 2 * max(len(list(_conditions(terms))) for terms in _terms(decode(opcode)))


def _terms(operation: Operation) -> list[tuple[Term, ...]]:
    """Returns the terms of an operation's results; of an atomic, for each space that its address
    may be in."""
    if operation.spec.unit is not Unit.ATOMIC or operation.spec.semantics is None:
        return [operation.terms]
    count = operation.value_count
    return [(operation.combine(count, space),) for space in ("", "global", "shared")]


def _conditions(terms: tuple[Term, ...]) -> Iterator[Term]:
    """Yields each `select` in some terms once."""
    seen, waiting = set[int](), list(reversed(terms))
    while waiting:
        term = waiting.pop()
        if id(term) not in seen:
            seen.add(id(term))
            waiting += reversed(term.args)
            if term.op == "select":
                yield term
