"""Lowers nodes of terms (the definitions of what instructions compute, `isa.terms`) that compute
floats, and comparisons of any type, to LLVM vector instructions."""

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
_EXTREMES = {"fmin": "minimumnum", "fmax": "maximumnum"}
_INTEGRAL = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


def lower_comparison(vectors: Vectors, term: Term, args: list[Value]) -> Value:
    """Emits a comparison of two values as lanes of i1, signed, unsigned or of floats by the type of
    the arguments; of floats each comparison, `ne` too, is false with a NaN (ordered)."""
    sign, type = _ORDERED[term.op], term.args[0].type
    if type.is_float:
        return vectors.b.fcmp_ordered(sign, *args)
    if type.is_signed:
        return vectors.b.icmp_signed(sign, *args)
    return vectors.b.icmp_unsigned(sign, *args)


def lower_arithmetic(vectors: Vectors, term: Term, args: list[Value]) -> Value:
    """Emits a float operation (`fadd`, `fma`, `fsqrt`, ...): an LLVM instruction for rounding to
    nearest even, else the operation in the node's rounding mode (`llvm.rounding`).
    """
    # LLVM assumes that its instructions round to nearest even, and folds and moves them by that.
    if term.attr != "rn":
        return rounded(vectors.lanes, term.op, str(term.attr), args, args[0].type)
    if term.op in _INTRINSICS:
        return vectors.intrinsic(_INTRINSICS[term.op], args)
    return getattr(vectors.b, term.op)(*args)


def lower_float_extreme(vectors: Vectors, term: Term, args: list[Value]) -> Value:
    """Emits the minimum or maximum (the node's operation) of two floats by `llvm.minimumnum` or
    `llvm.maximumnum`: of a number and a NaN the number, and -0 is below +0."""
    return vectors.intrinsic(_EXTREMES[term.op], args)


def lower_is_nan(vectors: Vectors, _term: Term, args: list[Value]) -> Value:
    """Emits a test for NaN, as lanes of i1."""
    return vectors.b.fcmp_unordered("uno", args[0], args[0])


def lower_canonical(vectors: Vectors, term: Term, args: list[Value]) -> Value:
    """Emits a replacement of any NaN by the canonical one. The `select` is of integers: LLVM may
    replace a float NaN by another."""
    b, type = vectors.b, unsigned(term.type.bits)
    nan = vectors.constant(CANONICAL_NAN[type.bits], type)
    bits = b.bitcast(args[0], vectors.type(type))
    chosen = b.select(lower_is_nan(vectors, term, args), nan, bits)
    return b.bitcast(chosen, vectors.type(term.type))


def lower_absolute(vectors: Vectors, _term: Term, args: list[Value]) -> Value:
    """Emits the absolute value of a float."""
    return vectors.intrinsic("fabs", args)


def lower_integral(vectors: Vectors, term: Term, args: list[Value]) -> Value:
    """Emits a rounding of a float to an integral float, in the direction of the node's attribute:
    `rni` to nearest even, `rzi` to zero, `rmi` down, `rpi` up."""
    return vectors.intrinsic(_INTEGRAL[str(term.attr)], args)


FLOATS: Mapping[str, Node] = {
    **dict.fromkeys(_ORDERED, lower_comparison),
    **dict.fromkeys(("fadd", "fsub", "fmul", "fdiv", *_INTRINSICS), lower_arithmetic),
    **dict.fromkeys(_EXTREMES, lower_float_extreme),
    "is_nan": lower_is_nan,
    "canonical": lower_canonical,
    "fabs": lower_absolute,
    "fneg": builder_node("fneg"),
    "round_integral": lower_integral,
}
"""The functions that lower float operations and comparisons, by the node's operation."""
