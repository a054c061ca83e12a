"""What video instructions give, written from the manual's pseudo-code in Python integers."""

from __future__ import annotations

from collections.abc import Callable

from manual_comparisons import RELATIONS
from manual_floats import Bits, Result
from manual_integers import NONE, clamp, signed, value_of

from warploom.isa.spec import Operation

COMBINE: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "absdiff": lambda a, b: abs(a - b),
    "min": min,
    "max": max,
    "avrg": lambda a, b: (a + b + 1) >> 1 if a + b >= 0 else (a + b) >> 1,
}


def chosen(operation: Operation, name: str) -> str:
    """What stands behind an operand: `b2`, or `h10` for the parts of an operand of two."""
    return operation.modifiers.text(f"{name}sel", "").partition("=")[2]


def is_signed(operation: Operation, name: str) -> bool:
    return operation.modifiers[f"{name}type"] == "s32"


def place(part: str) -> tuple[int, int]:
    """The first bit and the number of bits of a part."""
    if not part:
        return 0, 32
    bits = {"b": 8, "h": 16}[part[0]]
    return bits * int(part[1]), bits


def operand(operation: Operation, name: str, word: int) -> int:
    first, bits = place(chosen(operation, name))
    value = word >> first & ((1 << bits) - 1)
    return signed(value, bits) if is_signed(operation, name) else value


def finished(operation: Operation, value: int, rest: Bits, *, sign: bool) -> int:
    """Saturates; then a second operation with c, or the result among the bits of c."""
    m = operation.modifiers
    first, bits = place(chosen(operation, "d"))
    if "sat" in m:
        value = clamp(value, bits, sign=sign)
    if not rest:
        return value & NONE
    if "op2" in m:
        third = signed(rest[0], 32) if sign else rest[0]
        return COMBINE[m.text("op2", "")](value, third) & NONE
    mask = ((1 << bits) - 1) << first
    return (value << first & mask) | (rest[0] & ~mask)


def scalar(name: str) -> Result:
    def result(operation: Operation, values: Bits) -> list[int]:
        a, b = (operand(operation, n, v) for n, v in zip("ab", values, strict=False))
        sign = is_signed(operation, "d")
        return [finished(operation, COMBINE[name](a, b), values[2:], sign=sign)]

    return result


def vset(operation: Operation, values: Bits) -> list[int]:
    a, b = (operand(operation, n, v) for n, v in zip("ab", values, strict=False))
    holds = int(RELATIONS[operation.modifiers.text("cmp", "")](a, b))
    return [finished(operation, holds, values[2:], sign=False)]


def shifted(operation: Operation, values: Bits) -> list[int]:
    a, b = (operand(operation, n, v) for n, v in zip("ab", values, strict=False))
    amount = b % 32 if operation.modifiers["mode"] == "wrap" else min(b, 32)
    value = a << amount if operation.name == "vshl" else a >> amount
    return [finished(operation, value, values[2:], sign=is_signed(operation, "d"))]


def vmad(operation: Operation, values: Bits) -> list[int]:
    m = operation.modifiers
    a, b = (operand(operation, n, v) for n, v in zip("ab", values, strict=False))
    minus = ("aneg" in m) != ("bneg" in m)
    sign = is_signed(operation, "a") or is_signed(operation, "b") or minus or "cneg" in m
    third = value_of(values[2], "s" if sign else "u", 32)
    total = (-a * b if minus else a * b) + (-third if "cneg" in m else third) + ("po" in m)
    total >>= int(m.text("scale", "shr0")[3:])
    return [(clamp(total, 32, sign=sign) if "sat" in m else total) & NONE]


# ---- two or four at once ------------------------------------------------------------------------


def lanes(operation: Operation, name: str, values: Bits, count: int) -> list[int]:
    """The parts of {b, a} that an operand names, the lowest first; of a the parts of a, of b those
    of b where it names none."""
    digits = chosen(operation, name)[1:] or "76543210"[-count:][:count]
    if not chosen(operation, name) and name == "b":
        digits = "76543210"[-2 * count : -count]
    bits = 32 // count
    both = values[1] << 32 | values[0]
    kind = "s" if is_signed(operation, name) else "u"
    return [value_of(both >> bits * int(at), kind, bits) for at in reversed(digits)]


def simd(count: int, combine: Callable[[Operation], Callable[[int, int], int]]) -> Result:
    def result(operation: Operation, values: Bits) -> list[int]:
        m, bits = operation.modifiers, 32 // count
        pairs = zip(*(lanes(operation, n, values, count) for n in "ab"), strict=True)
        found = [int(combine(operation)(a, b)) for a, b in pairs]
        if "sat" in m:
            found = [clamp(v, bits, sign=is_signed(operation, "d")) for v in found]
        through = [int(at) for at in chosen(operation, "d")[1:] or "3210"[-count:]]
        if "add" in m:
            return [(values[2] + sum(found[at] for at in through)) & NONE]
        word = values[2]
        for at in through:
            mask = ((1 << bits) - 1) << bits * at
            word = word & ~mask | found[at] << bits * at & mask
        return [word]

    return result


def named(name: str) -> Callable[[Operation], Callable[[int, int], int]]:
    return lambda operation: COMBINE[name]


RESULTS: dict[str, Result] = {
    **{f"v{name}": scalar(name) for name in COMBINE if name != "avrg"},
    **{f"v{name}{count}": simd(count, named(name)) for name in COMBINE for count in (2, 4)},
    **{
        f"vset{count}": simd(count, lambda o: RELATIONS[o.modifiers.text("cmp", "")])
        for count in (2, 4)
    },
    "vset": vset,
    "vshl": shifted,
    "vshr": shifted,
    "vmad": vmad,
}
