"""Lowers a term, the definition of an instruction's result (`isa.terms`), to LLVM vector code.

    add(arg 0, mul(arg 1, const 3))   ->   %1 = mul <32 x i32> %b, splat (i32 3)
                                           %2 = add <32 x i32> %a, %1

Each node has the meaning that `isa.terms` defines. Inputs for which LLVM's operation is undefined
(division by zero, conversions out of range) are handled by the functions that lower nodes:
`lower.terms.integers`, `lower.terms.floats`, `lower.terms.conversions`.
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
"""The functions that lower nodes, by operation; `arg` and `const` are handled by `Lowering`."""


class Lowering:
    """Lowers terms to LLVM vector operations over `width` lanes."""

    def __init__(self, lanes: Lanes, width: int) -> None:
        """Prepares the emission, by the builder of `lanes`, of vectors of `width` lanes; emits
        nothing."""
        self.vectors = Vectors(lanes, width)

    def __call__(self, term: Term, arguments: Sequence[Value]) -> Value:
        """Emits a term, whose argument i is `arguments[i]`; returns its value in the type in which
        it is computed. A node that occurs twice is emitted once."""
        return self._lower(term, arguments, {})

    def _lower(self, term: Term, arguments: Sequence[Value], done: dict[Term, Value]) -> Value:
        """Emits a term after its arguments and returns its value; `done` has the values of the
        nodes emitted so far, so that a node that occurs repeatedly is emitted once."""
        if term not in done:
            if term.op == "arg":
                done[term] = arguments[int(str(term.attr))]
            else:
                args = [self._lower(a, arguments, done) for a in term.args]
                done[term] = self.node(term, args)
        return done[term]

    def node(self, term: Term, args: list[Value]) -> Value:
        """Emits one node, given the values of its arguments: a constant splat for `const`, else by
        the function in `NODES`. An `arg` node is not accepted."""
        if term.op == "const":
            return self.vectors.constant(int(str(term.attr)), term.type)
        return NODES[term.op](self.vectors, term, args)


BITLESS = frozenset(
    {"fadd", "fsub", "fmul", "fdiv", "fma", "fsqrt", "fmin", "fmax", "is_nan", "canonical"}
    | {"fabs", "fneg"}
    | {"eq", "ne", "lt", "le", "gt", "ge", "round_integral", "float_to_int", "float_to_float"}
)
"""The nodes whose result does not depend on the bits of an operand that is a NaN, except for the
bits of a NaN that they return."""


def ignores_nan_bits(term: Term) -> frozenset[int]:
    """Returns the numbers of the arguments whose NaN bits do not influence the term's value, so
    that they need not be canonicalized (`abi.nans`).

    These are the arguments from which every path to the root has only `BITLESS` nodes or selects,
    in a term whose root is `canonical` or no float; below a comparison or `is_nan`, all are. Of a
    float term without `canonical`, none."""
    if term.type.kind is Kind.FLOAT and term.op != "canonical":
        return frozenset()
    seen: set[int] = set()
    shown: set[int] = set()
    visited: set[tuple[int, bool]] = set()

    def walk(node: Term, blind: bool) -> None:
        """Adds the arguments (`arg` nodes) at or below a node to `seen`, and to `shown` those whose
        NaN bits may influence the root; `blind`: all nodes above the node ignore NaN bits."""
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

    # The root of a `mov` or `selp` of bits is no such node: it copies the bits.
    walk(term, blind=term.op in BITLESS)
    return frozenset(seen - shown)
