"""Lowers nodes of terms (the definitions of what instructions compute, `isa.terms`) that convert
values between types, to LLVM vector instructions."""

from __future__ import annotations

from collections.abc import Mapping

from warploom.isa.terms import Term
from warploom.llvm.lanes import Value, mangled
from warploom.llvm.rounding import rounded
from warploom.llvm.vectors import Vectors
from warploom.lower.terms.integers import Node


def lower_extension(vectors: Vectors, term: Term, args: list[Value]) -> Value:
    """Emits an extension of an integer to the node's type: sign extension if the argument's type is
    signed, else zero extension."""
    wide = vectors.b.sext if term.args[0].type.is_signed else vectors.b.zext
    return wide(args[0], vectors.type(term.type))


def lower_truncation(vectors: Vectors, term: Term, args: list[Value]) -> Value:
    """Emits a truncation of an integer to the node's type."""
    return vectors.b.trunc(args[0], vectors.type(term.type))


def lower_reinterpretation(vectors: Vectors, term: Term, args: list[Value]) -> Value:
    """Emits a bitcast to the node's type, which has the same width."""
    return vectors.b.bitcast(args[0], vectors.type(term.type))


def lower_float_to_int(vectors: Vectors, term: Term, args: list[Value]) -> Value:
    """Emits a conversion of an integral float to an integer, saturated to the type's range; of a
    NaN, 0 (LLVM's `fptosi.sat`, `fptoui.sat`)."""
    result = vectors.type(term.type)
    name = "fptosi" if term.type.is_signed else "fptoui"
    type_suffix = f"v{vectors.width}{mangled(result.element)}"
    full = f"llvm.{name}.sat.{type_suffix}.{vectors.suffix(args[0])}"
    return vectors.lanes.intrinsic(full, result, args)


def lower_int_to_float(vectors: Vectors, term: Term, args: list[Value]) -> Value:
    """Emits a conversion of an integer to a float: an LLVM instruction for rounding to nearest
    even, else the conversion in the node's rounding mode (`llvm.rounding`).
    """
    signed, result = term.args[0].type.is_signed, vectors.type(term.type)
    if term.attr != "rn":
        op = "sitofp" if signed else "uitofp"
        return rounded(vectors.lanes, op, str(term.attr), args, result)
    return (vectors.b.sitofp if signed else vectors.b.uitofp)(args[0], result)


def lower_float_to_float(vectors: Vectors, term: Term, args: list[Value]) -> Value:
    """Emits a conversion between float formats: widening, which is exact, or narrowing in the
    node's rounding mode. Returns the argument itself if both formats have equal width."""
    result, source = vectors.type(term.type), term.args[0].type
    if source.bits == term.type.bits:
        return args[0]
    if source.bits < term.type.bits:
        return vectors.b.fpext(args[0], result)
    if term.attr != "rn":
        return rounded(vectors.lanes, "fptrunc", str(term.attr), args, result)
    return vectors.b.fptrunc(args[0], result)


CONVERSIONS: Mapping[str, Node] = {
    "extend": lower_extension,
    "truncate": lower_truncation,
    "reinterpret": lower_reinterpretation,
    "float_to_int": lower_float_to_int,
    "int_to_float": lower_int_to_float,
    "float_to_float": lower_float_to_float,
}
"""The functions that lower conversions, by the node's operation."""
