"""Lowers nodes of terms that compute floating-point numbers, and comparisons."""

from __future__ import annotations

from collections.abc import Mapping

from warploom.core.types import unsigned
from warploom.isa.terms import CANONICAL_NAN, Term
from warploom.llvm.lanes import Value
from warploom.llvm.rounding import rounded
from warploom.llvm.vectors import Vectors
from warploom.lower.terms.integers import Node, builder_node

_ORDERED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_INTRINSICS = {"fma": "fma", "fsqrt": "sqrt"}
_MINIMUM = {"fmin": "minimumnum", "fmax": "maximumnum"}
_INTEGRAL = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


def lower_comparison(vectors: Vectors, term: Term, args: list[Value]) -> Value:
    """Returns whether two values of any type compare so; NaNs never do."""
    sign, type = _ORDERED[term.op], term.args[0].type
    if type.is_float:
        return vectors.b.fcmp_ordered(sign, *args)
    if type.is_signed:
        return vectors.b.icmp_signed(sign, *args)
    return vectors.b.icmp_unsigned(sign, *args)


def lower_arithmetic(vectors: Vectors, term: Term, args: list[Value]) -> Value:
    """Returns a sum, a product and so on, in the rounding mode of the node."""
    if term.attr != "rn":
        return rounded(vectors.lanes, term.op, str(term.attr), args, args[0].type)
    if term.op in _INTRINSICS:
        return vectors.intrinsic(_INTRINSICS[term.op], args)
    return getattr(vectors.b, term.op)(*args)


def lower_float_minimum(vectors: Vectors, term: Term, args: list[Value]) -> Value:
    """Returns the lesser or the greater of two numbers; of a number and a NaN, the number."""
    return vectors.intrinsic(_MINIMUM[term.op], args)


def lower_is_nan(vectors: Vectors, _term: Term, args: list[Value]) -> Value:
    """Returns whether a value is no number."""
    return vectors.b.fcmp_unordered("uno", args[0], args[0])


def lower_canonical(vectors: Vectors, term: Term, args: list[Value]) -> Value:
    """Returns a value, or the one NaN that stands for all. It is chosen among integers: LLVM holds
    one floating-point NaN as good as another."""
    b, type = vectors.b, unsigned(term.type.bits)
    nan = vectors.constant(CANONICAL_NAN[type.bits], type)
    bits = b.bitcast(args[0], vectors.type(type))
    chosen = b.select(lower_is_nan(vectors, term, args), nan, bits)
    return b.bitcast(chosen, vectors.type(term.type))


def lower_absolute(vectors: Vectors, _term: Term, args: list[Value]) -> Value:
    """Returns a number without its sign."""
    return vectors.intrinsic("fabs", args)


def lower_integral(vectors: Vectors, term: Term, args: list[Value]) -> Value:
    """Returns a number rounded to an integer, as a number."""
    return vectors.intrinsic(_INTEGRAL[str(term.attr)], args)


FLOATS: Mapping[str, Node] = {
    **dict.fromkeys(_ORDERED, lower_comparison),
    **dict.fromkeys(("fadd", "fsub", "fmul", "fdiv", *_INTRINSICS), lower_arithmetic),
    **dict.fromkeys(_MINIMUM, lower_float_minimum),
    "is_nan": lower_is_nan,
    "canonical": lower_canonical,
    "fabs": lower_absolute,
    "fneg": builder_node("fneg"),
    "round_integral": lower_integral,
}
"""What lowers nodes of floating-point numbers, and comparisons of any type, by the node's
operation."""
