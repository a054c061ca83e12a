"""Lowers nodes of terms (the definitions of what instructions compute, `isa.terms`) that compute
integers and predicates to LLVM vector instructions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from llvmlite import ir

from warploom.core.types import ScalarType
from warploom.isa.terms import Term
from warploom.llvm.lanes import I1, Value
from warploom.llvm.vectors import Vectors

Node = Callable[[Vectors, Term, list[Value]], Value]
"""A function that lowers a node of a term, given the values of its arguments."""

_BIT_INTRINSICS = {"popc": "ctpop", "brev": "bitreverse"}


def builder_node(name: str) -> Node:
    """Returns a function that lowers a node to one LLVM instruction on its arguments, emitted by
    the builder's method `name`."""
    return lambda vectors, _term, args: getattr(vectors.b, name)(*args)


def lower_extreme(vectors: Vectors, term: Term, args: list[Value]) -> Value:
    """Emits the minimum or maximum (the node's operation) of two integers, by the type's
    signedness."""
    sign = "s" if term.type.is_signed else "u"
    return vectors.intrinsic(f"{sign}{term.op}", args)


def lower_bit_intrinsic(vectors: Vectors, term: Term, args: list[Value]) -> Value:
    """Emits a population count (`popc`) or a bit reversal (`brev`), by the node's operation."""
    return vectors.intrinsic(_BIT_INTRINSICS[term.op], args)


def lower_leading_zeros(vectors: Vectors, term: Term, args: list[Value]) -> Value:
    """Emits a count of leading zeros; of 0, the number of bits."""
    name = f"llvm.ctlz.{vectors.suffix(args[0])}"
    return vectors.lanes.intrinsic(name, args[0].type, [args[0], I1(0)])


def lower_division(vectors: Vectors, term: Term, args: list[Value]) -> Value:
    """Emits a quotient or a remainder (the node's operation) of integers, defined for all inputs.

    Division by 0 and the overflow of the lowest number by -1, on which a processor traps, divide by
    1 instead. By 0, the quotient is all ones and the remainder the dividend; the overflow gives the
    lowest number and remainder 0."""
    b, (value, by) = vectors.b, args
    zero = b.icmp_unsigned("==", by, vectors.constant(0, term.type))
    unsafe = zero
    if term.type.is_signed:
        lowest = vectors.constant(1 << (term.type.bits - 1), term.type)
        overflow = b.and_(
            b.icmp_unsigned("==", value, lowest),
            b.icmp_unsigned("==", by, vectors.constant(-1, term.type)),
        )
        unsafe = b.or_(zero, overflow)
    divisor = b.select(unsafe, vectors.constant(1, term.type), by)
    quotient = _quotient(vectors, term.type, value, divisor)
    if term.op == "div":
        return b.select(zero, vectors.constant(-1, term.type), quotient)
    rest = b.sub(value, b.mul(quotient, divisor))
    return b.select(zero, value, rest)


def _quotient(vectors: Vectors, type: ScalarType, value: Value, by: Value) -> Value:
    """Emits value / by, rounded towards zero; `by` is not 0, nor -1 for the lowest number.

    Up to 32 bits it is a division of doubles, which all vector units have, unlike one of integers;
    of 64 bits, an integer division. It is exact: the rounding error of the quotient, value/by *
    2^-53 < 2^-21 / by, is below its distance 1/by to the next integer."""
    b = vectors.b
    if type.bits > 32:
        return (b.sdiv if type.is_signed else b.udiv)(value, by)
    double = ir.VectorType(ir.DoubleType(), vectors.width)
    to_float = b.sitofp if type.is_signed else b.uitofp
    back = b.fptosi if type.is_signed else b.fptoui
    return back(b.fdiv(to_float(value, double), to_float(by, double)), value.type)


INTEGERS: Mapping[str, Node] = {
    **{name: builder_node(name) for name in ("add", "sub", "mul", "xor", "shl", "lshr", "ashr")},
    "and": builder_node("and_"),
    "or": builder_node("or_"),
    "not": builder_node("not_"),
    "neg": builder_node("neg"),
    "select": builder_node("select"),
    "min": lower_extreme,
    "max": lower_extreme,
    "popc": lower_bit_intrinsic,
    "brev": lower_bit_intrinsic,
    "clz": lower_leading_zeros,
    "div": lower_division,
    "rem": lower_division,
}
"""The functions that lower integer operations, and `select` of any type, by the node's
operation."""
