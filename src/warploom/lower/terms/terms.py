"""Terms to LLVM: what one instruction computes, as vector code.

`Lowering` follows the meaning of each node in `warploom.isa.terms` to the letter; where LLVM
leaves something undefined (division by zero, conversions out of range) it is fenced off by what
lowers the node: `lower.terms.integers`, `lower.terms.floats`, `lower.terms.conversions`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warploom.core.types import Kind
from warploom.isa.terms import Term
from warploom.llvm.lanes import Lanes, Value
from warploom.llvm.vectors import Vectors
from warploom.lower.terms.conversions import CONVERSIONS
from warploom.lower.terms.floats import FLOATS
from warploom.lower.terms.integers import INTEGERS, Node

NODES: Mapping[str, Node] = {**INTEGERS, **FLOATS, **CONVERSIONS}
"""What lowers a node, by its operation; `arg` and `const` are no operations."""


class Lowering:
    """Lowers terms over vectors of `width` lanes at the builder's place."""

    def __init__(self, lanes: Lanes, width: int) -> None:
        self.vectors = Vectors(lanes, width)

    def __call__(self, term: Term, arguments: Sequence[Value]) -> Value:
        """Return the value of `term`, where operand i is `arguments[i]`, in its computing type."""
        return self._lower(term, arguments, {})

    def _lower(self, term: Term, arguments: Sequence[Value], done: dict[Term, Value]) -> Value:
        if term not in done:
            if term.op == "arg":
                done[term] = arguments[int(str(term.attr))]
            else:
                args = [self._lower(a, arguments, done) for a in term.args]
                done[term] = self.node(term, args)
        return done[term]

    def node(self, term: Term, args: list[Value]) -> Value:
        """Lower one node, where its arguments have these values."""
        if term.op == "const":
            return self.vectors.constant(int(str(term.attr)), term.type)
        return NODES[term.op](self.vectors, term, args)


BITLESS = frozenset(
    {"fadd", "fsub", "fmul", "fdiv", "fma", "fsqrt", "fmin", "fmax", "is_nan", "canonical"}
    | {"eq", "ne", "lt", "le", "gt", "ge", "round_integral", "float_to_int", "float_to_float"}
)
"""Nodes whose result does not depend on which NaN an operand is, but for which NaN they give."""


def ignores_nan_bits(term: Term) -> frozenset[int]:
    """Return the operands whose NaN bits cannot show in the term's value.

    An operand is one if every path from it to the root meets only `BITLESS` nodes or selects, and
    the root closes the question (`canonical`, or no float at all).
    """
    if term.type.kind is Kind.FLOAT and term.op != "canonical":
        return frozenset()
    seen: set[int] = set()
    shown: set[int] = set()
    visited: set[tuple[int, bool]] = set()

    def walk(node: Term, blind: bool) -> None:
        if (id(node), blind) in visited:
            return
        visited.add((id(node), blind))
        if node.op == "arg":
            seen.add(int(str(node.attr)))
            if not blind:
                shown.add(int(str(node.attr)))
            return
        below = blind and (node.op in BITLESS or node.op == "select")
        for argument in node.args:
            walk(argument, below or node.op in ("eq", "ne", "lt", "le", "gt", "ge", "is_nan"))

    walk(term, blind=True)
    return frozenset(seen - shown)
