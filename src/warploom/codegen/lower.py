"""Terms to LLVM: what one instruction computes, as vector code.

`Lowering` follows the meaning of each node in `warploom.isa.terms` to the letter; where LLVM
leaves something undefined (division by zero, conversions out of range) it is fenced off here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from llvmlite import ir

from warploom.codegen.lanes import I1, Lanes, Value, element_type, mangled, repeated
from warploom.codegen.rounding import rounded
from warploom.core.types import Kind, ScalarType, unsigned
from warploom.isa.terms import CANONICAL_NAN, Term

_ORDERED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_BINARY = {"add": "add", "sub": "sub", "mul": "mul", "and": "and_", "or": "or_", "xor": "xor"}
_SHIFTS = {"shl": "shl", "lshr": "lshr", "ashr": "ashr"}
_FLOAT = {"fadd": "fadd", "fsub": "fsub", "fmul": "fmul", "fdiv": "fdiv"}
_COUNTING = {"popc": "ctpop", "brev": "bitreverse"}
_MINIMUM = {"fmin": "minimumnum", "fmax": "maximumnum"}
_INTEGRAL = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


class Lowering:
    """Lowers terms over vectors of `width` lanes at the builder's place."""

    def __init__(self, lanes: Lanes, width: int) -> None:
        self.lanes, self.b, self.width = lanes, lanes.b, width

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

    def type(self, type: ScalarType) -> ir.VectorType:
        return ir.VectorType(element_type(type), self.width)

    def constant(self, bits: int, type: ScalarType) -> Value:
        """Return a constant by its bits, in every lane."""
        element = ir.IntType(type.bits)
        value = bits & ((1 << type.bits) - 1)
        whole = repeated(value, element, self.width)
        return self.b.bitcast(whole, self.type(type)) if type.is_float else whole

    def node(self, term: Term, args: list[Value]) -> Value:
        """Lower one node, where its arguments have these values."""
        op = term.op
        if op == "const":
            return self.constant(int(str(term.attr)), term.type)
        if op in _BINARY:
            return getattr(self.b, _BINARY[op])(*args)
        if op in _SHIFTS:
            return getattr(self.b, _SHIFTS[op])(*args)
        if op in _ORDERED:
            return self._compare(op, term.args[0].type, args)
        if op in _FLOAT or op in ("fma", "fsqrt"):
            return self._arithmetic(term, args)
        return _NODES[op](self, term, args)

    def _compare(self, op: str, type: ScalarType, args: list[Value]) -> Value:
        sign = _ORDERED[op]
        if type.is_float:
            return self.b.fcmp_ordered(sign, *args)
        if type.is_signed:
            return self.b.icmp_signed(sign, *args)
        return self.b.icmp_unsigned(sign, *args)

    def _arithmetic(self, term: Term, args: list[Value]) -> Value:
        if term.attr != "rn":
            return rounded(self.lanes, term.op, str(term.attr), args, args[0].type)
        if term.op in _FLOAT:
            return getattr(self.b, _FLOAT[term.op])(*args)
        return self.intrinsic("fma" if term.op == "fma" else "sqrt", args)

    def intrinsic(self, name: str, args: list[Value]) -> Value:
        """Return an LLVM intrinsic on vectors of one type, by its name without type."""
        return self.lanes.intrinsic(f"llvm.{name}.{self.suffix(args[0])}", args[0].type, args)

    def suffix(self, value: Value) -> str:
        return f"v{self.width}{mangled(value.type.element)}"

    def negate(self, term: Term, args: list[Value]) -> Value:
        return self.b.neg(args[0])

    def invert(self, term: Term, args: list[Value]) -> Value:
        return self.b.not_(args[0])

    def select(self, term: Term, args: list[Value]) -> Value:
        return self.b.select(*args)

    def minimum(self, term: Term, args: list[Value]) -> Value:
        sign = "s" if term.type.is_signed else "u"
        return self.intrinsic(f"{sign}{term.op}", args)

    def float_minimum(self, term: Term, args: list[Value]) -> Value:
        return self.intrinsic(_MINIMUM[term.op], args)

    def count(self, term: Term, args: list[Value]) -> Value:
        return self.intrinsic(_COUNTING[term.op], args)

    def leading_zeros(self, term: Term, args: list[Value]) -> Value:
        name = f"llvm.ctlz.{self.suffix(args[0])}"
        return self.lanes.intrinsic(name, args[0].type, [args[0], I1(0)])

    def extend(self, term: Term, args: list[Value]) -> Value:
        wide = self.b.sext if term.args[0].type.is_signed else self.b.zext
        return wide(args[0], self.type(term.type))

    def truncate(self, term: Term, args: list[Value]) -> Value:
        return self.b.trunc(args[0], self.type(term.type))

    def reinterpret(self, term: Term, args: list[Value]) -> Value:
        return self.b.bitcast(args[0], self.type(term.type))

    def is_nan(self, term: Term, args: list[Value]) -> Value:
        return self.b.fcmp_unordered("uno", args[0], args[0])

    def canonical(self, term: Term, args: list[Value]) -> Value:
        """Chosen among integers: LLVM holds one floating-point NaN as good as another."""
        type = unsigned(term.type.bits)
        nan = self.constant(CANONICAL_NAN[type.bits], type)
        bits = self.b.bitcast(args[0], self.type(type))
        chosen = self.b.select(self.is_nan(term, args), nan, bits)
        return self.b.bitcast(chosen, self.type(term.type))

    def absolute(self, term: Term, args: list[Value]) -> Value:
        return self.intrinsic("fabs", args)

    def float_negate(self, term: Term, args: list[Value]) -> Value:
        return self.b.fneg(args[0])

    def integral(self, term: Term, args: list[Value]) -> Value:
        return self.intrinsic(_INTEGRAL[str(term.attr)], args)

    def float_to_int(self, term: Term, args: list[Value]) -> Value:
        result = self.type(term.type)
        name = "fptosi" if term.type.is_signed else "fptoui"
        made = f"v{self.width}{mangled(result.element)}"
        return self.lanes.intrinsic(f"llvm.{name}.sat.{made}.{self.suffix(args[0])}", result, args)

    def int_to_float(self, term: Term, args: list[Value]) -> Value:
        signed, result = term.args[0].type.is_signed, self.type(term.type)
        if term.attr != "rn":
            op = "sitofp" if signed else "uitofp"
            return rounded(self.lanes, op, str(term.attr), args, result)
        return (self.b.sitofp if signed else self.b.uitofp)(args[0], result)

    def float_to_float(self, term: Term, args: list[Value]) -> Value:
        result, source = self.type(term.type), term.args[0].type
        if source.bits == term.type.bits:
            return args[0]
        if source.bits < term.type.bits:
            return self.b.fpext(args[0], result)
        if term.attr != "rn":
            return rounded(self.lanes, "fptrunc", str(term.attr), args, result)
        return self.b.fptrunc(args[0], result)

    def divide(self, term: Term, args: list[Value]) -> Value:
        """Quotient or remainder, with the inputs on which a processor traps replaced first."""
        a, b = args
        zero = self.b.icmp_unsigned("==", b, self.constant(0, term.type))
        unsafe = zero
        if term.type.is_signed:
            lowest = self.constant(1 << (term.type.bits - 1), term.type)
            overflow = self.b.and_(
                self.b.icmp_unsigned("==", a, lowest),
                self.b.icmp_unsigned("==", b, self.constant(-1, term.type)),
            )
            unsafe = self.b.or_(zero, overflow)
        divisor = self.b.select(unsafe, self.constant(1, term.type), b)
        quotient = self._quotient(term.type, a, divisor)
        if term.op == "div":
            return self.b.select(zero, self.constant(-1, term.type), quotient)
        rest = self.b.sub(a, self.b.mul(quotient, divisor))
        return self.b.select(zero, a, rest)

    def _quotient(self, type: ScalarType, a: Value, b: Value) -> Value:
        """a / b towards zero, where it is defined.

        Up to 32 bits by double precision, which no vector unit lacks: the rounding error of the
        quotient, a/b * 2^-53 < 2^-21 / b, is below its distance 1/b to the next integer.
        """
        if type.bits > 32:
            return (self.b.sdiv if type.is_signed else self.b.udiv)(a, b)
        double = ir.VectorType(ir.DoubleType(), self.width)
        to_float = self.b.sitofp if type.is_signed else self.b.uitofp
        back = self.b.fptosi if type.is_signed else self.b.fptoui
        return back(self.b.fdiv(to_float(a, double), to_float(b, double)), a.type)


_NODES: Mapping[str, Callable[[Lowering, Term, list[Value]], Value]] = {
    "neg": Lowering.negate,
    "not": Lowering.invert,
    "select": Lowering.select,
    "min": Lowering.minimum,
    "max": Lowering.minimum,
    "fmin": Lowering.float_minimum,
    "fmax": Lowering.float_minimum,
    "popc": Lowering.count,
    "brev": Lowering.count,
    "clz": Lowering.leading_zeros,
    "extend": Lowering.extend,
    "truncate": Lowering.truncate,
    "reinterpret": Lowering.reinterpret,
    "is_nan": Lowering.is_nan,
    "canonical": Lowering.canonical,
    "fabs": Lowering.absolute,
    "fneg": Lowering.float_negate,
    "round_integral": Lowering.integral,
    "float_to_int": Lowering.float_to_int,
    "int_to_float": Lowering.int_to_float,
    "float_to_float": Lowering.float_to_float,
    "div": Lowering.divide,
    "rem": Lowering.divide,
}

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
