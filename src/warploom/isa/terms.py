"""The little typed language in which every instruction says what it computes.

A term is an expression over one lane's operands. It is built once for each form of an instruction
and then read by everyone who needs the meaning: the reference machine evaluates it, the compiled
engine turns it into vector code, the documentation prints it, the tests draw programs from it.

Every node has exactly one meaning for every input; nothing here is undefined:

- `add sub mul and or xor not neg` work modulo 2^width.
- `shl lshr ashr` take an amount below the width; `shift_left` and `shift_right` clamp it as PTX
  does before they build the node.
- `div` and `rem` follow the signedness of the type, rounding towards zero. Division by zero gives
  all ones, its remainder the dividend; the most negative value over -1 gives itself, remainder 0.
- `lt le gt ge eq ne` compare by the operands' type. On floats they are ordered: false on a NaN.
- `fadd fsub fmul fdiv fma fsqrt`, `int_to_float`, `float_to_float` round correctly in the mode
  that `attr` names: "rn" (nearest, ties to even), "rz" (zero), "rm" (down) or "rp" (up). Which NaN
  they give is open; `canonical` closes it. Every use of their bits must stand behind a `canonical`.
  But a wider `float_to_float` keeps the sign and the payload of a NaN, and makes it quiet.
- `fmin fmax` are minimumNumber and maximumNumber of IEEE 754-2019: -0 is below +0, a NaN loses.
- `round_integral` rounds a float to an integral float; `attr` is "rni", "rzi", "rmi" or "rpi".
- `float_to_int` truncates, clamps to the range of its type, and gives 0 for a NaN.
- `select` takes its second argument where the first (a predicate) is true, else its third.
- `extend` widens by the signedness of its argument, `truncate` drops high bits, `reinterpret`
  keeps the bits and changes what they mean.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from warploom.core.types import F32, F64, PRED, ScalarType, signed, unsigned, widened

ROUNDINGS = ("rn", "rz", "rm", "rp")
INTEGRAL_ROUNDINGS = ("rni", "rzi", "rmi", "rpi")


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """One node: what it does, the type of its value, what it does it to, and a static detail.

    Nodes compare by identity: a node that is used twice is computed once.
    """

    op: str
    type: ScalarType
    args: tuple[Term, ...] = ()
    attr: Hashable = None

    def __add__(self, other: Term | int) -> Term:
        return _same("add", self, other)

    def __sub__(self, other: Term | int) -> Term:
        return _same("sub", self, other)

    def __mul__(self, other: Term | int) -> Term:
        return _same("mul", self, other)

    def __and__(self, other: Term | int) -> Term:
        return _same("and", self, other)

    def __or__(self, other: Term | int) -> Term:
        return _same("or", self, other)

    def __xor__(self, other: Term | int) -> Term:
        return _same("xor", self, other)

    def __invert__(self) -> Term:
        return Term("not", self.type, (self,))

    def __neg__(self) -> Term:
        return Term("neg", self.type, (self,))

    def __lt__(self, other: Term | int) -> Term:
        return compare("lt", self, other)

    def __le__(self, other: Term | int) -> Term:
        return compare("le", self, other)

    def __gt__(self, other: Term | int) -> Term:
        return compare("gt", self, other)

    def __ge__(self, other: Term | int) -> Term:
        return compare("ge", self, other)

    def __str__(self) -> str:
        return show(self)


def argument(index: int, type: ScalarType) -> Term:
    """Returns the value of source operand `index`, read as `type`."""
    return Term("arg", type, (), index)


def constant(value: int, type: ScalarType) -> Term:
    """Returns an integer or predicate constant; `value` is taken modulo 2^width."""
    return Term("const", type, (), value & ((1 << type.bits) - 1))


@lru_cache
def float_constant(value: float, type: ScalarType) -> Term:
    """Returns a float constant (`type` is F32 or F64); `value` must be exact in it."""
    code = {32: ("<f", "<I"), 64: ("<d", "<Q")}[type.bits]
    bits: int = struct.unpack(code[1], struct.pack(code[0], value))[0]
    return Term("const", type, (), bits)


def _lift(value: Term | int, type: ScalarType) -> Term:
    """Returns a term as it is, an integer as a constant of a type."""
    return value if isinstance(value, Term) else constant(value, type)


def _same(op: str, a: Term, b: Term | int, attr: Hashable = None) -> Term:
    """Returns a term whose operands and result have the type of `a`; an operand of another width is
    an error in an instruction table."""
    lifted = _lift(b, a.type)
    if lifted.type.bits != a.type.bits:
        raise TypeError(f"{op} of {a.type} and {lifted.type}")
    return Term(op, a.type, (a, lifted), attr)


def compare(op: str, a: Term, b: Term | int) -> Term:
    """Returns whether a relation holds: `eq ne lt le gt ge` by the type of `a`; none of them holds
    for a NaN."""
    return Term(op, PRED, (a, _lift(b, a.type)))


def parts(a: Term, type: ScalarType) -> tuple[Term, ...]:
    """Returns the values of `type` that lie side by side in `a`, the lowest first."""
    whole, bits = reinterpret(a, unsigned(a.type.bits)), unsigned(type.bits)
    places = range(0, a.type.bits, type.bits)
    shifted = (Term("lshr", whole.type, (whole, constant(place, whole.type))) for place in places)
    return tuple(reinterpret(truncate(part, bits), type) for part in shifted)


def pack(values: Sequence[Term], type: ScalarType) -> Term:
    """Returns the values side by side as `type`, the lowest first."""
    whole = unsigned(type.bits)
    found = constant(0, whole)
    for index, value in enumerate(values):
        bits = extend(reinterpret(value, unsigned(value.type.bits)), whole)
        place = constant(index * value.type.bits, whole)
        found = found | Term("shl", whole, (bits, place))
    return reinterpret(found, type)


def eq(a: Term, b: Term | int) -> Term:
    return compare("eq", a, b)


def ne(a: Term, b: Term | int) -> Term:
    return compare("ne", a, b)


def select(condition: Term, when_true: Term | int, when_false: Term | int) -> Term:
    """Returns `when_true` where `condition` holds, else `when_false`."""
    if isinstance(when_true, Term):
        true_term, false_term = when_true, _lift(when_false, when_true.type)
    elif isinstance(when_false, Term):
        true_term, false_term = _lift(when_true, when_false.type), when_false
    else:
        raise TypeError("select requires when_true or when_false to be a term")
    return Term("select", true_term.type, (condition, true_term, false_term))


def minimum(a: Term, b: Term | int) -> Term:
    return _same("min", a, b)


def maximum(a: Term, b: Term | int) -> Term:
    return _same("max", a, b)


def divide(a: Term, b: Term) -> Term:
    return _same("div", a, b)


def remainder(a: Term, b: Term) -> Term:
    return _same("rem", a, b)


def count_ones(a: Term, type: ScalarType) -> Term:
    """Returns how many bits of `a` are set, as `type`."""
    return resize(Term("popc", unsigned(a.type.bits), (a,)), type)


def count_leading_zeros(a: Term, type: ScalarType) -> Term:
    """Returns the number of zero bits above the highest set bit of `a` (its width for 0), as
    `type`."""
    return resize(Term("clz", unsigned(a.type.bits), (a,)), type)


def reverse_bits(a: Term) -> Term:
    return Term("brev", a.type, (a,))


def extend(a: Term, type: ScalarType) -> Term:
    """Returns `a` in the wider `type`, by the signedness of `a`."""
    if type.bits == a.type.bits:
        return reinterpret(a, type)
    return Term("extend", type, (a,))


def truncate(a: Term, type: ScalarType) -> Term:
    """Returns the low bits of `a`."""
    if type.bits == a.type.bits:
        return reinterpret(a, type)
    return Term("truncate", type, (a,))


def resize(a: Term, type: ScalarType) -> Term:
    """Returns `a` extended or truncated to the width of `type`."""
    return extend(a, type) if type.bits > a.type.bits else truncate(a, type)


def reinterpret(a: Term, type: ScalarType) -> Term:
    """Returns the same bits, read as `type`."""
    if type.bits != a.type.bits:
        raise TypeError(f"reinterpret {a.type} as {type}")
    return a if type == a.type else Term("reinterpret", type, (a,))


def widen(a: Term) -> Term:
    """Returns `a` in twice its width."""
    return extend(a, widened(a.type))


def high(a: Term) -> Term:
    """Returns the upper half of `a`, keeping its signedness."""
    half = a.type.bits // 2
    type = (signed if a.type.is_signed else unsigned)(half)
    return truncate(Term("lshr", a.type, (a, constant(half, a.type))), type)


def shift_left(a: Term, amount: Term) -> Term:
    """Returns PTX `shl`: 0 for amounts of the width or more. `amount` is 32-bit."""
    return _clamped("shl", a, amount, constant(0, a.type))


def shift_right(a: Term, amount: Term) -> Term:
    """Returns PTX `shr`: fills with the sign for signed types; amounts of the width or more leave
    nothing but the filling."""
    if not a.type.is_signed:
        return _clamped("lshr", a, amount, constant(0, a.type))
    last = a.type.bits - 1
    inside = minimum(reinterpret(amount, unsigned(32)), last)
    return Term("ashr", a.type, (a, resize(inside, unsigned(a.type.bits))))


def _clamped(op: str, a: Term, amount: Term, beyond: Term) -> Term:
    """Returns a shift, or `beyond` for amounts of the width or more, which LLVM leaves undefined:
    the shift itself is given an amount that is less, also where its result is not selected."""
    count = reinterpret(amount, unsigned(32))
    inside = minimum(count, a.type.bits - 1)
    shifted = Term(op, a.type, (a, resize(inside, unsigned(a.type.bits))))
    return select(count < a.type.bits, shifted, beyond)


def float_op(op: str, rounding: str, *args: Term) -> Term:
    """Returns `fadd fsub fmul fdiv fma fsqrt`, correctly rounded in `rounding`; which NaN it is, if
    it is one, is left open (`canonical`)."""
    return Term(op, args[0].type, args, rounding)


def float_min(a: Term, b: Term) -> Term:
    """Returns the lesser of two floats; the other one if one is a NaN."""
    return Term("fmin", a.type, (a, b))


def float_max(a: Term, b: Term) -> Term:
    """Returns the greater of two floats; the other one if one is a NaN."""
    return Term("fmax", a.type, (a, b))


def float_abs(a: Term) -> Term:
    """Returns `a` without its sign bit."""
    return Term("fabs", a.type, (a,))


def float_neg(a: Term) -> Term:
    """Returns `a` with its sign bit inverted."""
    return Term("fneg", a.type, (a,))


def is_nan(a: Term) -> Term:
    """Returns whether `a` is a NaN."""
    return Term("is_nan", PRED, (a,))


def canonical(a: Term) -> Term:
    """Returns `a` with any NaN replaced by the canonical NaN of its type, `CANONICAL_NAN`."""
    return Term("canonical", a.type, (a,))


CANONICAL_NAN = {16: 0x7FFF, 32: 0x7FFFFFFF, 64: 0xFFF8_0000_0000_0000}
"""Bits of the NaN that arithmetic gives, by width.

Source: CUDA "Floating Point and IEEE 754", for .f32; PTX ISA, "Half Precision Floating Point
Instructions: fma", for .f16 and .bf16 (the headers of CUDA agree); for .f64 the manual leaves the
payload open and this is the choice.
"""


def flush_subnormal(a: Term) -> Term:
    """Returns `a` as `.ftz` takes it: a subnormal becomes the zero of its sign (PTX ISA,
    floating-point instructions)."""
    smallest = {32: 2.0**-126, 64: 2.0**-1022}[a.type.bits]
    sign = reinterpret(a, unsigned(a.type.bits)) & (1 << (a.type.bits - 1))
    tiny = float_abs(a) < float_constant(smallest, a.type)
    return select(tiny, reinterpret(sign, a.type), a)


def saturate(a: Term) -> Term:
    """Returns `a` as `.sat` takes it: clamped to [0.0, 1.0], a NaN as +0.0 (PTX ISA, add and
    others)."""
    zero, one = float_constant(0.0, a.type), float_constant(1.0, a.type)
    return select(a > zero, float_min(a, one), zero)


def round_integral(a: Term, mode: str) -> Term:
    return Term("round_integral", a.type, (a,), mode)


def float_to_int(a: Term, type: ScalarType) -> Term:
    return Term("float_to_int", type, (a,))


def int_to_float(a: Term, type: ScalarType, rounding: str) -> Term:
    return Term("int_to_float", type, (a,), rounding)


def float_to_float(a: Term, type: ScalarType, rounding: str) -> Term:
    return Term("float_to_float", type, (a,), rounding)


def show(term: Term) -> str:
    """Returns the term in prefix form, for documentation and error messages."""
    if term.op == "arg":
        return "abcdefgh"[int(str(term.attr))]
    if term.op == "const":
        return _show_constant(term)
    detail = f".{term.attr}" if term.attr is not None else ""
    return f"{term.op}{detail}({', '.join(show(a) for a in term.args)})"


def _show_constant(term: Term) -> str:
    bits = int(str(term.attr))
    if term.type == F32:
        return repr(struct.unpack("<f", struct.pack("<I", bits))[0])
    if term.type == F64:
        return repr(struct.unpack("<d", struct.pack("<Q", bits))[0])
    return str(bits)
