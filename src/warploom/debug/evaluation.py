"""Evaluates expressions in a thread, with C++'s conversions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from warploom.debug import expressions as tree
from warploom.debug.expressions import Node
from warploom.debug.names import Names
from warploom.debug.scene import EvaluationError, Thread
from warploom.debug.source_types import parsed_type
from warploom.debug.types import (
    BOOL,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    UNSIGNED,
    UNSIGNED_LONG,
    Arithmetic,
    Array,
    Encoding,
    Enumeration,
    Pointer,
    Type,
)
from warploom.debug.values import Value
from warploom.isa.instruction import Space
from warploom.program.frames import SourceFrame

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}


@dataclass(frozen=True)
class Evaluator:
    """Evaluates in one frame of one thread."""

    names: Names
    thread: Thread
    frame: SourceFrame | None

    def value(self, text: str) -> Value:
        """Returns the value of an expression. Raises EvaluationError."""
        return self.of(tree.parse(text))

    def holds(self, node: Node) -> bool:
        """Returns whether a condition holds."""
        return bool(self.of(node).number(self.thread))

    def of(self, node: Node) -> Value:
        """Returns the value of a tree."""
        match node:
            case tree.Number(value, suffix):
                return _literal(value, suffix)
            case tree.Name(name):
                return self._plain(self.names.find(name, self.thread, self.frame))
            case tree.Unary(operator, operand):
                return self._unary(operator, operand)
            case tree.Binary(operator, left, right):
                return self._binary(operator, left, right)
            case tree.Choice(condition, yes, no):
                return self.of(yes if self.holds(condition) else no)
            case tree.Access(of, name, _):
                value = self.of(of)
                if isinstance(value.type, Pointer):
                    value = value.element(0, self.thread)
                return value.member(name, self.thread)
            case tree.Call(function, condition):
                return self._over_lanes(function, condition)
            case tree.Cast(type, operand):
                return self._cast(parsed_type(type), self.of(operand))

    def assign(self, target: Value, number: float | bytes) -> None:
        """Changes what a value stands for."""
        type, thread = target.type, self.thread
        if isinstance(number, bytes):
            data = number
        elif isinstance(type, Arithmetic):
            data = type.data(number)
        elif isinstance(type, (Pointer, Enumeration)):
            data = (int(number) % (1 << 8 * type.size)).to_bytes(type.size, "little")
        else:
            raise EvaluationError(f"a number cannot be assigned to a value of type {type.name}")
        if target.register is not None:
            thread.set_register(target.register, int.from_bytes(data, "little"))
        elif target.place is not None and target.place.space is not Space.PARAM:
            thread.write(target.place, data)
        else:
            raise EvaluationError(
                "the left side of the assignment is neither in memory nor in a register"
            )

    def _plain(self, value: Value) -> Value:
        """Returns what a reference refers to."""
        if isinstance(value.type, Pointer) and value.type.reference:
            return value.element(0, self.thread)
        return value

    def _unary(self, operator: str, operand: Node) -> Value:
        value = self.of(operand)
        match operator:
            case "*":
                return value.element(0, self.thread)
            case "&":
                if value.place is None:
                    raise EvaluationError(
                        "the operand of & has no address, because it is in a register"
                    )
                return _made(value.place.generic, Pointer(value.type))
            case "sizeof":
                return _made(value.type.size, UNSIGNED_LONG)
            case "!":
                return _made(not value.number(self.thread), BOOL)
            case _:
                number, type = value.number(self.thread), _promoted(value.type)
        if operator == "~":
            return _made(~_integer(number), type)
        return _made(-number if operator == "-" else number, type)

    def _binary(self, operator: str, left: Node, right: Node) -> Value:
        if operator in ("&&", "||"):
            first = self.holds(left)
            decided = first if operator == "||" else not first
            return _made(first if decided else self.holds(right), BOOL)
        a = self.of(left)
        if operator == "=":
            b = self.of(right)
            same = not isinstance(a.type, (Arithmetic, Pointer, Enumeration))
            self.assign(a, b.bytes(self.thread) if same else b.number(self.thread))
            return self.of(left)
        b = self.of(right)
        if operator == "[]":
            return a.element(_integer(b.number(self.thread)), self.thread)
        if operator == "@":
            if a.place is None:
                raise EvaluationError("the left operand of @ must be in memory")
            count = _integer(b.number(self.thread))
            return Value(Array(a.type, max(0, count)), place=a.place)
        return self._calculated(operator, a, b)

    def _calculated(self, operator: str, a: Value, b: Value) -> Value:
        x, y = a.number(self.thread), b.number(self.thread)
        if operator in _COMPARE:
            return _made(_COMPARE[operator](x, y), BOOL)
        pointed = a if isinstance(a.type, (Pointer, Array)) else b
        if isinstance(pointed.type, (Pointer, Array)) and operator in "+-":
            return self._moved(operator, a, b, pointed)
        type = _common(_promoted(a.type), _promoted(b.type))
        if operator in ("<<", ">>"):
            type = _promoted(a.type)
        return _made(_result(operator, x, y, type), type)

    def _moved(self, operator: str, a: Value, b: Value, pointed: Value) -> Value:
        """Returns a pointer so many elements on, or how many are between two."""
        of = pointed.type.of if isinstance(pointed.type, Array) else None
        to = of if isinstance(pointed.type, Array) else getattr(pointed.type, "to", None)
        size = to.size if to is not None else 1
        x, y = _integer(a.number(self.thread)), _integer(b.number(self.thread))
        if isinstance(b.type, (Pointer, Array)) and isinstance(a.type, (Pointer, Array)):
            return _made((x - y) // size, LONG)
        if isinstance(b.type, (Pointer, Array)):
            x, y = y, x
        return _made(x + size * (y if operator == "+" else -y), Pointer(to))

    def _cast(self, type: Type, value: Value) -> Value:
        if isinstance(type, Pointer):
            return _made(_integer(value.number(self.thread)), type)
        return _made(value.number(self.thread), type)

    def _over_lanes(self, function: str, condition: Node) -> Value:
        """Returns how a condition does over the active lanes of the warp."""
        mask = 0
        for lane in range(self.thread.warp.size):
            if self.thread.warp.splits.active >> lane & 1:
                other = replace(self, thread=replace(self.thread, lane=lane))
                mask |= other.holds(condition) << lane
        match function:
            case "any":
                return _made(bool(mask), BOOL)
            case "all":
                return _made(mask == self.thread.warp.splits.active, BOOL)
            case "popcount":
                return _made(mask.bit_count(), INT)
            case _:
                return _made(mask, UNSIGNED_LONG if self.thread.warp.size > 32 else UNSIGNED)


def _made(number: float, type: Type) -> Value:
    """Returns a number as a value of a type."""
    if isinstance(type, Arithmetic):
        integral = not type.is_float and isinstance(number, float)
        return Value(type, type.data(_integer(number) if integral else number))
    return Value(type, (_integer(number) % (1 << 8 * type.size)).to_bytes(type.size, "little"))


def _literal(value: float, suffix: str) -> Value:
    if isinstance(value, float):
        return _made(value, FLOAT if suffix == "f" else DOUBLE)
    if suffix == "c":
        return _made(value, CHAR)
    type = INT if value < 1 << 31 else LONG
    if "u" in suffix or value >= 1 << 63:
        type = UNSIGNED if value < 1 << 32 else UNSIGNED_LONG
    if "l" in suffix:
        type = UNSIGNED_LONG if "u" in suffix else LONG
    return _made(value, type)


def _promoted(type: Type) -> Arithmetic:
    """Returns the type with which a value is calculated (C++, "Integral promotions")."""
    if isinstance(type, Arithmetic):
        if type.is_float:
            return type
        if type.size < 4 or type.encoding in (Encoding.BOOLEAN, Encoding.CHARACTER):
            return INT
        signed = type.encoding is Encoding.SIGNED
        if type.size == 4:
            return INT if signed else UNSIGNED
        return LONG if signed else UNSIGNED_LONG
    return INT if isinstance(type, Enumeration) else UNSIGNED_LONG


def _common(a: Arithmetic, b: Arithmetic) -> Arithmetic:
    """Returns the type of a result (C++, "Usual arithmetic conversions")."""
    if a.is_float or b.is_float:
        floats = [type for type in (a, b) if type.is_float]
        return max(floats, key=lambda type: type.size)
    return max(a, b, key=lambda type: (type.size, type.encoding is Encoding.UNSIGNED))


def _result(operator: str, x: float, y: float, type: Arithmetic) -> float:
    if type.is_float:
        return _floating(operator, float(x), float(y), type)
    a, b = _integer(x), _integer(y)
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/" | "%":
            if not b:
                raise EvaluationError("division by zero")
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return quotient if operator == "/" else a - b * quotient
        case "<<":
            return a << (b % 64)
        case ">>":
            return a >> (b % 64)
        case "&":
            return a & b
        case "|":
            return a | b
        case _:
            return a ^ b


def _floating(operator: str, x: float, y: float, type: Arithmetic) -> float:
    kind = np.float64 if type.size == 8 else np.float32
    a, b = kind(x), kind(y)
    with np.errstate(all="ignore"):
        match operator:
            case "+":
                return float(a + b)
            case "-":
                return float(a - b)
            case "*":
                return float(a * b)
            case "/":
                return float(a / b)
            case _:
                raise EvaluationError(f"{operator} requires integers, not {type.name}")


def _integer(number: float) -> int:
    if isinstance(number, float) and not math.isfinite(number):
        raise EvaluationError(f"{number} is not an integer")
    return int(number)
