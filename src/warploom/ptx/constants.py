"""Numbers in PTX text: literals, and the expressions over them that stand for one number.

Source: PTX ISA, "Constants". Integers have 64 bits and are signed unless they say or need
otherwise; an expression over floats is worked out in double precision.
"""

from __future__ import annotations

import operator
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from warploom.isa.instruction import Immediate
from warploom.ptx.cursor import Cursor

INTEGER = re.compile(r"(?:0[xX]([\da-fA-F]+)|0[bB]([01]+)|(0[0-7]*)|([1-9]\d*))(U?)")
EXACT_FLOAT = re.compile(r"0(?:[fF]([\da-fA-F]{8})|[dD]([\da-fA-F]{16}))")
DECIMAL_FLOAT = re.compile(r"\d+(?:\.\d*(?:[eE][+-]?\d+)?|[eE][+-]?\d+)")

LONGEST_LITERAL = len("0b") + 64 + len("U")


@dataclass(frozen=True, slots=True)
class Number:
    """A value on its way: an integer (reduced to 64 bits by its signedness) or a double."""

    value: int | float
    unsigned: bool = False

    @property
    def is_float(self) -> bool:
        return isinstance(self.value, float)

    @property
    def bits(self) -> int:
        """Return the integer's 64 bits, read as unsigned."""
        return int(self.value) & 0xFFFF_FFFF_FFFF_FFFF


def unsigned(value: int) -> Number:
    return Number(value & 0xFFFF_FFFF_FFFF_FFFF, unsigned=True)


def signed(value: int) -> Number:
    return Number((value + (1 << 63)) % (1 << 64) - (1 << 63))


def integer_literal(text: str) -> Number | None:
    """Return the integer that a token spells, None where it spells none or one beyond 64 bits."""
    found = INTEGER.fullmatch(text)
    if found is None or len(text) > LONGEST_LITERAL:
        return None
    for digits, base in zip(found.groups()[:4], (16, 2, 8, 10), strict=True):
        if digits is not None:
            value = int(digits, base)
            if value >= 1 << 64:
                return None
            return unsigned(value) if found[5] or value >= 1 << 63 else signed(value)
    return None


@lru_cache(maxsize=4096)
def literal(text: str) -> Immediate | None:
    """Return the operand that a single token spells (without a span), None where it is no
    number."""
    exact = EXACT_FLOAT.fullmatch(text)
    if exact is not None:
        single, double = exact.groups()
        return Immediate(int(single, 16), 32) if single else Immediate(int(double, 16), 64)
    if DECIMAL_FLOAT.fullmatch(text):
        return _immediate(Number(float(text)))
    number = integer_literal(text)
    return None if number is None else _immediate(number)


def _immediate(number: Number) -> Immediate:
    if isinstance(number.value, float):
        return Immediate(struct.unpack("<Q", struct.pack("<d", number.value))[0], 64)
    return Immediate(number.value)


def constant(cursor: Cursor) -> Immediate:
    """Return a literal or a constant expression."""
    start = cursor.at
    found = None if cursor.next_text in EXTENDING else literal(cursor.text)
    if found is not None:
        cursor.at += 1
    else:
        found = _immediate(_conditional(cursor))
    return Immediate(found.value, found.float_bits, cursor.span(start, cursor.at))


def offset(cursor: Cursor) -> int:
    """`+ n` or `- n` behind a base, 0 where there is none; a minus is the sign of what follows."""
    if cursor.accept("+") or cursor.text == "-":
        return integer(cursor, "an offset in bytes")
    return 0


def integer(cursor: Cursor, what: str = "an integer") -> int:
    """Return an integer constant expression, as its value."""
    start = cursor.at
    text = cursor.texts[start]
    if text and cursor.texts[start + 1] not in EXTENDING:
        found = literal(text)
        if found is not None and not found.float_bits:
            cursor.at = start + 1
            return found.value
    found = constant(cursor) if text else None
    if found is None or found.float_bits:
        cursor.at = start
        raise cursor.wrong(what)
    return found.value


# ---- expressions --------------------------------------------------------------------------------


def _conditional(cursor: Cursor) -> Number:
    condition = _binary(cursor, 0)
    if not cursor.accept("?"):
        return condition
    when_true = _conditional(cursor)
    cursor.expect(":")
    when_false = _conditional(cursor)
    left, right = _converted(when_true, when_false)
    return left if condition.value else right


def _binary(cursor: Cursor, level: int) -> Number:
    if level == len(LEVELS):
        return _unary(cursor)
    left = _binary(cursor, level + 1)
    while cursor.text in LEVELS[level]:
        at = cursor.at
        symbol = cursor.take()
        right = _binary(cursor, level + 1)
        if symbol in INTEGERS_ONLY and (left.is_float or right.is_float):
            raise cursor.error(f"`{symbol}` requires integers", at)
        if symbol in ("/", "%") and not right.value:
            raise cursor.error("division by zero in a constant expression", at)
        left = BINARY[symbol](left, right)
    return left


def _unary(cursor: Cursor) -> Number:
    at = cursor.at
    if cursor.accept("("):
        return _parenthesised(cursor)
    text = cursor.take()
    if text in ("+", "-", "!", "~"):
        return _applied(cursor, text, at)
    if text == "WARP_SZ":
        return Number(cursor.warp_size)
    number = integer_literal(text)
    if number is not None:
        return number
    if DECIMAL_FLOAT.fullmatch(text):
        return Number(float(text))
    double = re.fullmatch(r"0[dD]([\da-fA-F]{16})", text)
    if double is not None:
        return Number(struct.unpack("<d", struct.pack("<Q", int(double[1], 16)))[0])
    cursor.at = at
    if EXACT_FLOAT.fullmatch(text):
        raise cursor.error("a 0f literal cannot be part of an expression", at)
    raise cursor.wrong("a number")


def _parenthesised(cursor: Cursor) -> Number:
    """Returns what follows an opening parenthesis: a cast of an operand, or an expression in
    brackets."""
    at = cursor.at
    cast = {".s64": signed, ".u64": unsigned}.get(cursor.text)
    if cast is None:
        inner = _conditional(cursor)
        cursor.expect(")")
        return inner
    cursor.take()
    cursor.expect(")")
    operand = _unary(cursor)
    if operand.is_float:
        raise cursor.error("a cast requires an integer", at)
    return cast(int(operand.value))


def _applied(cursor: Cursor, symbol: str, at: int) -> Number:
    operand = _unary(cursor)
    if symbol == "+":
        return operand
    if isinstance(operand.value, float):
        if symbol == "-":
            return Number(-operand.value)
        raise cursor.error(f"`{symbol}` requires an integer", at)
    if symbol == "!":
        return Number(int(not operand.value))
    if symbol == "~":
        return unsigned(~operand.value)
    return unsigned(-operand.value) if operand.unsigned else signed(-operand.value)


def _converted(left: Number, right: Number) -> tuple[Number, Number]:
    """Return the usual conversions: a float makes both float, an unsigned integer both unsigned."""
    if left.is_float or right.is_float:
        return Number(float(left.value)), Number(float(right.value))
    if left.unsigned or right.unsigned:
        return unsigned(left.bits), unsigned(right.bits)
    return left, right


def _arithmetic(
    on_integers: Callable[[int, int], int], on_floats: Callable[[float, float], float]
) -> Callable[[Number, Number], Number]:
    def apply(left: Number, right: Number) -> Number:
        a, b = _converted(left, right)
        if isinstance(a.value, float) or isinstance(b.value, float):
            return Number(on_floats(a.value, b.value))
        value = on_integers(a.value, b.value)
        return unsigned(value) if a.unsigned else signed(value)

    return apply


def _comparison(test: Callable[[float, float], bool]) -> Callable[[Number, Number], Number]:
    def apply(left: Number, right: Number) -> Number:
        a, b = _converted(left, right)
        return Number(int(test(a.value, b.value)))

    return apply


def _bitwise(combine: Callable[[int, int], int]) -> Callable[[Number, Number], Number]:
    return lambda left, right: unsigned(combine(left.bits, right.bits))


def _shift(left: Number, right: Number, shifted: Callable[[int, int], int]) -> Number:
    value = shifted(int(left.value), min(right.bits, 64))
    return unsigned(value) if left.unsigned else signed(value)


def _quotient(a: int, b: int) -> int:
    """Division towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


BINARY: dict[str, Callable[[Number, Number], Number]] = {
    "||": lambda a, b: Number(int(bool(a.value or b.value))),
    "&&": lambda a, b: Number(int(bool(a.value and b.value))),
    "|": _bitwise(lambda a, b: a | b),
    "^": _bitwise(lambda a, b: a ^ b),
    "&": _bitwise(lambda a, b: a & b),
    "==": _comparison(operator.eq),
    "!=": _comparison(operator.ne),
    "<": _comparison(operator.lt),
    "<=": _comparison(operator.le),
    ">": _comparison(operator.gt),
    ">=": _comparison(operator.ge),
    "<<": lambda a, b: _shift(a, b, lambda x, n: x << n),
    ">>": lambda a, b: _shift(a, b, lambda x, n: x >> n),
    "+": _arithmetic(operator.add, operator.add),
    "-": _arithmetic(operator.sub, operator.sub),
    "*": _arithmetic(operator.mul, operator.mul),
    "/": _arithmetic(_quotient, lambda a, b: a / b),
    "%": _bitwise(lambda a, b: a % b),
}
"""What each operator computes (PTX ISA, "Summary of Constant Expression Evaluation Rules")."""

EXTENDING = frozenset({*BINARY, "?"})
"""What makes an expression of the literal before it."""

INTEGERS_ONLY = frozenset({"||", "&&", "|", "^", "&", "<<", ">>", "%"})

LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
"""Operators from the loosest to the tightest."""
