"""What comparisons and selections give, written from the PTX manual."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction

from exact_numbers import FORMATS, Format
from manual_floats import PAIRS, Bits, Result
from manual_integers import value_of

from warploom.isa.spec import Operation

RELATIONS: dict[str, Callable[..., bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "lo": operator.lt,
    "ls": operator.le,
    "hi": operator.gt,
    "hs": operator.ge,
}
JOINS: dict[str, Callable[[int, int], int]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}


def holds(operation: Operation, type: str, a: int, b: int) -> bool:
    """Whether two values of a type stand in the relation of the opcode."""
    cmp = operation.modifiers.text("cmp", "")
    if type in FORMATS:
        return float_holds(operation, FORMATS[type], cmp, a, b)
    kind, width = type[0], int(type[1:])
    return RELATIONS[cmp](value_of(a, kind, width), value_of(b, kind, width))


def float_holds(operation: Operation, format: Format, cmp: str, a: int, b: int) -> bool:
    """Comparisons of floats: false where one is a NaN, but for those that end with u."""
    if "ftz" in operation.modifiers:
        a, b = format.flushed(a), format.flushed(b)
    x, y = format.decode(a), format.decode(b)
    unordered = x.is_nan or y.is_nan
    if cmp in ("num", "nan"):
        return unordered == (cmp == "nan")
    if unordered:
        return cmp.endswith("u")
    return RELATIONS[cmp[:2]](x.order, y.order)


def conditions(operation: Operation, values: Bits) -> list[int]:
    """The relation in each element of the operands."""
    type = operation.modifiers.text("type", "")
    if type not in PAIRS:
        return [int(holds(operation, type, values[0], values[1]))]
    name, width = PAIRS[type]
    mask = (1 << width) - 1
    return [
        int(holds(operation, name, values[0] >> at & mask, values[1] >> at & mask))
        for at in (0, width)
    ]


def joined(operation: Operation, condition: int, values: Bits) -> int:
    join = operation.modifiers["bool"]
    return JOINS[join](condition, values[2]) if join else condition


def setp(operation: Operation, values: Bits) -> list[int]:
    """A pair has a predicate for each half; a scalar has the complement as its second one."""
    found = conditions(operation, values)
    if len(found) == 1 and operation.modifiers.text("type", "") not in ("f16", "bf16"):
        found.append(1 - found[0])
    return [joined(operation, each, values) for each in found]


def set_(operation: Operation, values: Bits) -> list[int]:
    """1.0 for true where the result is a float, all ones elsewhere."""
    dtype = operation.modifiers.text("dtype", "")
    element, width = PAIRS.get(dtype, (dtype, 0))
    found = [joined(operation, each, values) for each in conditions(operation, values)]
    width = width or (16 if len(found) == 2 else int(dtype.lstrip("busf")))
    true = (1 << width) - 1
    if element in FORMATS:
        true = FORMATS[element].bias << FORMATS[element].fraction
    return [sum(true * each << width * place for place, each in enumerate(found))]


def slct(operation: Operation, values: Bits) -> list[int]:
    """The first where c is at least zero; a NaN is not."""
    a, b, c = values
    if operation.modifiers["type"] == "s32":
        return [a if value_of(c, "s", 32) >= 0 else b]
    single = FORMATS["f32"]
    number = single.decode(single.flushed(c) if "ftz" in operation.modifiers else c)
    return [a if not number.is_nan and number.order >= (0, Fraction(0)) else b]


RESULTS: dict[str, Result] = {
    "setp": setp,
    "set": set_,
    "selp": lambda o, v: [v[0] if v[2] else v[1]],
    "slct": slct,
}
