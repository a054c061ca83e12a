"""Evaluates terms for the reference machine: computes each node of `warploom.isa.terms`, by which
arithmetic instructions are defined, over the lanes of a warp.

Operations that IEEE 754 and NumPy define alike are NumPy's; other rounding modes and fused
operations are computed by `exact`. Example: `fadd(arg 0, arg 1)` with mode `rn` is `np.add`, with
mode `rz` it is `exact.add` lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from warploom.core.types import ScalarType
from warploom.isa.terms import CANONICAL_NAN, Term
from warploom.machine.reference import exact
from warploom.machine.reference.lanes import (
    Values,
    as_numbers,
    collect,
    from_floats,
    from_integers,
    lane_by_lane,
    resized,
    splat,
)

Node = Callable[[Term, Sequence[Values]], Values]
"""A function that computes a node of a term, given the values of its operands in all lanes."""


def evaluate(term: Term, arguments: Sequence[Values], width: int) -> Values:
    """Returns the value of a term in `width` lanes; operand i is `arguments[i]`."""
    # IEEE exceptions are results here, not errors.
    with np.errstate(all="ignore"):
        return _evaluate(term, arguments, width, {})


def _evaluate(
    term: Term, arguments: Sequence[Values], width: int, computed: dict[Term, Values]
) -> Values:
    """Returns the value of a term in `width` lanes: an argument, a constant, or what the function
    of its operation (NODES) computes of its operands; `computed` caches values of shared terms."""
    value = computed.get(term)
    if value is None:
        if term.op == "arg":
            value = arguments[int(str(term.attr))]
        elif term.op == "const":
            value = splat(int(str(term.attr)), term.type, width)
        else:
            value = NODES[term.op](
                term, [_evaluate(a, arguments, width, computed) for a in term.args]
            )
        computed[term] = value
    return value


# ---- integers -----------------------------------------------------------------------------------


def _modular(operation: Callable[..., Values]) -> Node:
    """Returns the function for NODES (of a term and its operands' lanes) that applies an integer
    operation of NumPy, modulo 2^width."""

    def node(term: Term, args: Sequence[Values]) -> Values:
        """Returns the results of `operation`, modulo 2^width of the term's type."""
        value = operation(*args)
        # 128-bit lanes are Python integers, which do not wrap by themselves.
        return value & ((1 << 128) - 1) if term.type.bits == 128 else value

    return node


def _comparison(operation: Callable[[Values, Values], Values]) -> Node:
    """Returns the function for NODES that compares, as signed, unsigned or float numbers by the
    type of the first operand."""

    def node(term: Term, args: Sequence[Values]) -> Values:
        """Returns a predicate by lane: `operation` of the two operands as numbers of the first
        one's type."""
        left, right = (as_numbers(a, term.args[0].type) for a in args)
        return operation(left, right)

    return node


def _differ(a: Values, b: Values) -> Values:
    """Returns whether lanes differ, as less or greater: false for a NaN."""
    return (a < b) | (a > b)


def _extreme(operation: Callable[[Values, Values], Values]) -> Node:
    """Returns the function for NODES that computes an integer minimum or maximum, signed by the
    term's type."""

    def node(term: Term, args: Sequence[Values]) -> Values:
        """Returns the bits of `operation` of the two operands, as numbers of the term's type."""
        left, right = (as_numbers(a, term.type) for a in args)
        return from_integers(operation(left, right), term.type)

    return node


def _quotient(a: int, b: int) -> int:
    """Returns a / b rounded towards zero; -1, whose bits are all ones, if b is 0."""
    if b == 0:
        return -1
    magnitude = abs(a) // abs(b)
    return magnitude if (a < 0) == (b < 0) else -magnitude


def _divide(term: Term, args: Sequence[Values]) -> Values:
    """Returns the quotients of integers, signed by the term's type, rounded towards zero; all ones
    where the divisor is 0."""
    return lane_by_lane(_quotient, [as_numbers(a, term.type) for a in args], term.type)


def _remainder(term: Term, args: Sequence[Values]) -> Values:
    """Returns the remainder of the division that rounds towards zero, so with the sign of the
    dividend; the dividend where the divisor is 0."""

    def remainder(a: int, b: int) -> int:
        """Returns the remainder of one lane's numbers, with the sign of `a`; `a` itself if `b` is
        0."""
        return a - _quotient(a, b) * b

    return lane_by_lane(remainder, [as_numbers(a, term.type) for a in args], term.type)


def _shift_right_signed(term: Term, args: Sequence[Values]) -> Values:
    """Returns the value shifted right by an amount below its width, with copies of the sign bit."""
    value, amount = args
    numbers = as_numbers(value, term.type)
    return from_integers(numbers >> amount.astype(numbers.dtype), term.type)


def _count_ones(term: Term, args: Sequence[Values]) -> Values:
    """Returns the number of one bits of each lane."""
    return lane_by_lane(int.bit_count, args, term.type)


def _leading_zeros(term: Term, args: Sequence[Values]) -> Values:
    """Returns, for each lane, the number of zero bits above the highest bit that is set; for the
    value 0 the width of the type."""
    width = term.args[0].type.bits
    return collect((width - int(value).bit_length() for value in args[0]), term.type)


def _reverse(term: Term, args: Sequence[Values]) -> Values:
    """Returns the bits in reverse order."""

    def reverse(value: int) -> int:
        """Returns one lane's bits in reverse order, over the width of the term's type."""
        return int(f"{value:0{term.type.bits}b}"[::-1], 2)

    return lane_by_lane(reverse, args, term.type)


# ---- choosing and changing types ----------------------------------------------------------------


def _select(_: Term, args: Sequence[Values]) -> Values:
    """Returns the second operand in the lanes where the first, a predicate, is true, else the
    third."""
    return np.where(*args)


def _extend(term: Term, args: Sequence[Values]) -> Values:
    """Returns integers extended to the term's type: with the sign if the operand's type is signed,
    else with zeros."""
    return resized(args[0], term.type.bits, sign=term.args[0].type.is_signed)


def _truncate(term: Term, args: Sequence[Values]) -> Values:
    """Returns the low bits of integers, as many as the term's type has."""
    return resized(args[0], term.type.bits)


def _same_bits(_: Term, args: Sequence[Values]) -> Values:
    """Returns the operand's lanes unchanged: their bits are those of the term's type too."""
    return args[0]


# ---- floats -------------------------------------------------------------------------------------


def _correctly_rounded(
    name: str, nearest: Callable[..., Values], precise: Callable[..., int]
) -> tuple[str, Node]:
    """Returns the name of a correctly rounded operation and its function for NODES: NumPy's
    `nearest` in mode `rn`, else `precise` (of `exact`) lane by lane."""

    def node(term: Term, args: Sequence[Values]) -> Values:
        """Returns the operation of floats, rounded by the term's mode: by `nearest` for `rn`, else
        by `precise`, lane by lane."""
        mode, type = str(term.attr), term.type
        if mode == "rn":
            return from_floats(nearest(*(as_numbers(a, type) for a in args)), type)
        format = exact.FORMATS[type.bits]
        return lane_by_lane(lambda *lane_values: precise(*lane_values, format, mode), args, type)

    return name, node


def _fused(term: Term, args: Sequence[Values]) -> Values:
    """Returns a * b + c with one rounding, by the term's mode.

    In binary32 with mode `rn`, where no sum is infinite or NaN, the product is exact in binary64,
    and the sum, rounded to odd in binary64, rounds to binary32 as the exact sum does (Boldo and
    Melquiond, "Emulation of FMA and correctly rounded sums", 2008). Everything else is computed
    exactly, lane by lane."""
    mode, type = str(term.attr), term.type
    if mode == "rn" and type.bits == 32:
        a, b, c = (as_numbers(x, type).astype(np.float64) for x in args)
        product = a * b
        total = product + c
        # Infinities and NaNs would make the error terms NaN; one in any lane takes the exact path.
        if np.isfinite(total).all():
            return from_floats(_round_to_odd(total, _rounding_error(product, c, total)), type)
    format = exact.FORMATS[type.bits]

    def exactly(a: int, b: int, c: int) -> int:
        """Returns the bits of a * b + c of one lane, rounded once by the term's mode."""
        return exact.multiply_add(a, b, c, format, mode)

    return lane_by_lane(exactly, args, type)


def _rounding_error(a: Values, b: Values, total: Values) -> Values:
    """Returns the exact sum of two numbers minus `total`, the rounded one (Knuth's TwoSum)."""
    rounded_b = total - a
    return (a - (total - rounded_b)) + (b - rounded_b)


def _round_to_odd(total: Values, error: Values) -> Values:
    """Returns the float next to the exact sum whose last bit is 1; `total` itself if the sum is
    exact. `total` is the rounded sum, `error` the exact one minus `total`."""
    bits = total.view(np.int64)
    # Adding 1 to the bits moves away from zero, so the direction depends on the sign of the sum.
    step = np.where((error > 0) == (total > 0), 1, -1)
    return np.where((error != 0) & (bits & 1 == 0), bits + step, bits).view(np.float64)


def _integer_to_float(term: Term, args: Sequence[Values]) -> Values:
    """Returns integers, signed or unsigned by the operand's type, as floats, rounded by the term's
    mode."""
    mode, format = str(term.attr), exact.FORMATS[term.type.bits]

    def convert(a: int) -> int:
        """Returns the bits of the float next to an integer, by the term's mode."""
        return exact.from_integer(a, format, mode)

    return lane_by_lane(convert, [as_numbers(args[0], term.args[0].type)], term.type)


def _float_to_float(term: Term, args: Sequence[Values]) -> Values:
    """Returns floats converted to the term's float type, rounded by its mode: by NumPy for `rn`,
    else by `exact`, lane by lane."""
    mode, source = str(term.attr), term.args[0].type
    if mode == "rn":
        return from_floats(as_numbers(args[0], source), term.type)
    source_format, target_format = exact.FORMATS[source.bits], exact.FORMATS[term.type.bits]

    def convert(a: int) -> int:
        """Returns the bits of one float in the term's format, rounded by the term's mode."""
        return exact.to_format(a, source_format, target_format, mode)

    return lane_by_lane(convert, args, term.type)


_INTEGRAL: Mapping[str, Callable[[Values], Values]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}


def _round_integral(term: Term, args: Sequence[Values]) -> Values:
    """Returns floats rounded to integral values, as floats, by the term's attribute: `rni` to
    nearest even, `rzi` to zero, `rmi` down, `rpi` up."""
    return from_floats(_INTEGRAL[str(term.attr)](as_numbers(args[0], term.type)), term.type)


def _float_to_integer(term: Term, args: Sequence[Values]) -> Values:
    """Returns floats as integers: cut towards zero, clamped to the range of the term's type, 0 for
    NaN."""
    lowest, highest = _range(term.type)

    def convert(number: float) -> int:
        """Returns one float as an integer: cut towards zero, clamped to the range, 0 for NaN."""
        if number != number:
            return 0
        return int(max(lowest, min(highest, number)))

    return lane_by_lane(convert, [as_numbers(args[0], term.args[0].type)], term.type)


def _range(type: ScalarType) -> tuple[int, int]:
    """Returns the least and the greatest value of an integer type."""
    top = (1 << (type.bits - 1 if type.is_signed else type.bits)) - 1
    return (-top - 1 if type.is_signed else 0), top


def _float_extreme(term: Term, args: Sequence[Values]) -> Values:
    """Returns minimumNumber (`fmin`) or maximumNumber (IEEE 754-2019): the other operand if one is
    NaN, the first if both are; -0 is below +0."""
    bits_of_a, bits_of_b = args
    a, b = (as_numbers(x, term.type) for x in args)
    below = (a < b) | ((a == b) & (np.signbit(a) > np.signbit(b)))
    is_first_chosen = below if term.op == "fmin" else ~below
    return np.where(np.isnan(b) | (is_first_chosen & ~np.isnan(a)), bits_of_a, bits_of_b)


def _is_nan(term: Term, args: Sequence[Values]) -> Values:
    """Returns a predicate by lane: true for a NaN."""
    return np.isnan(as_numbers(args[0], term.args[0].type))


def _canonical(term: Term, args: Sequence[Values]) -> Values:
    """Returns the value with each NaN replaced by the canonical NaN."""
    nan = splat(CANONICAL_NAN[term.type.bits], term.type, len(args[0]))
    return np.where(np.isnan(as_numbers(args[0], term.type)), nan, args[0])


def _absolute(term: Term, args: Sequence[Values]) -> Values:
    """Returns floats with the sign bit cleared, of NaNs too."""
    return args[0] & ~_sign_mask(term, args[0])


def _negated(term: Term, args: Sequence[Values]) -> Values:
    """Returns floats with the sign bit inverted, of NaNs too."""
    return args[0] ^ _sign_mask(term, args[0])


def _sign_mask(term: Term, value: Values) -> Values:
    """Returns the sign bit of the term's type, set, in as many lanes as `value` has."""
    return splat(1 << (term.type.bits - 1), term.type, len(value))


NODES: Mapping[str, Node] = {
    "add": _modular(np.add),
    "sub": _modular(np.subtract),
    "mul": _modular(np.multiply),
    "and": _modular(np.bitwise_and),
    "or": _modular(np.bitwise_or),
    "xor": _modular(np.bitwise_xor),
    "not": _modular(np.invert),
    "neg": _modular(np.negative),
    "shl": _modular(np.left_shift),
    "lshr": _modular(np.right_shift),
    "ashr": _shift_right_signed,
    "min": _extreme(np.minimum),
    "max": _extreme(np.maximum),
    "div": _divide,
    "rem": _remainder,
    "popc": _count_ones,
    "clz": _leading_zeros,
    "brev": _reverse,
    "eq": _comparison(np.equal),
    "ne": _comparison(_differ),
    "lt": _comparison(np.less),
    "le": _comparison(np.less_equal),
    "gt": _comparison(np.greater),
    "ge": _comparison(np.greater_equal),
    "select": _select,
    "extend": _extend,
    "truncate": _truncate,
    "reinterpret": _same_bits,
    "int_to_float": _integer_to_float,
    "float_to_float": _float_to_float,
    "float_to_int": _float_to_integer,
    "round_integral": _round_integral,
    "fmin": _float_extreme,
    "fmax": _float_extreme,
    "fabs": _absolute,
    "fneg": _negated,
    "is_nan": _is_nan,
    "canonical": _canonical,
    "fma": _fused,
    **dict(
        (
            _correctly_rounded("fadd", np.add, exact.add),
            _correctly_rounded("fsub", np.subtract, exact.subtract),
            _correctly_rounded("fmul", np.multiply, exact.multiply),
            _correctly_rounded("fdiv", np.divide, exact.divide),
            _correctly_rounded("fsqrt", np.sqrt, exact.square_root),
        )
    ),
}
"""The function that computes each operation of terms."""
