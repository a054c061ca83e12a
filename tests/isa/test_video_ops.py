"""Video instructions against the manual's pseudo-code, written with Python integers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opcode_values import integers, one, signed

FEW = settings(max_examples=60)
WORD = integers(32)
SIGNS = st.sampled_from(("u32", "s32"))
PARTS = ("b0", "b1", "b2", "b3", "h0", "h1")
SOME_PART = st.sampled_from(("", *PARTS))


def place(part: str) -> tuple[int, int]:
    """First bit and number of bits."""
    if not part:
        return 0, 32
    bits = {"b": 8, "h": 16}[part[0]]
    return bits * int(part[1]), bits


def number(word: int, part: str, type: str) -> int:
    first, bits = place(part)
    value = word >> first & ((1 << bits) - 1)
    return signed(value, bits) if type == "s32" else value


def clamp(value: int, bits: int, type: str) -> int:
    low, high = (
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if type == "s32" else (0, (1 << bits) - 1)
    )
    return max(low, min(high, value))


def decorated(opcode: str, **parts: str) -> str:
    return opcode + "".join(f".{name}={part}" for name, part in parts.items() if part)


OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
}
SECOND: dict[str, Callable[[int, int], int]] = {"add": lambda a, b: a + b, "min": min, "max": max}


@pytest.mark.parametrize("name", OPERATIONS)
@FEW
@given(st.data())
def test_scalar_arithmetic(name: str, data: st.DataObject) -> None:
    dtype, atype, btype = (data.draw(SIGNS) for _ in range(3))
    a, b, c = (data.draw(WORD) for _ in range(3))
    asel, bsel = data.draw(SOME_PART), data.draw(SOME_PART)
    found = OPERATIONS[name](number(a, asel, atype), number(b, bsel, btype))
    head = f"{name}.{dtype}.{atype}.{btype}"
    assert one(decorated(head, a=asel, b=bsel), a, b) == found % (1 << 32)
    saturated = clamp(found, 32, dtype)
    assert one(decorated(f"{head}.sat", a=asel, b=bsel), a, b) == saturated % (1 << 32)
    for op2, join in SECOND.items():
        expected = join(saturated, number(c, "", dtype)) % (1 << 32)
        assert one(decorated(f"{head}.sat.{op2}", a=asel, b=bsel), a, b, c) == expected
    dsel = data.draw(st.sampled_from(PARTS))
    first, bits = place(dsel)
    mask = ((1 << bits) - 1) << first
    merged = clamp(found, bits, dtype) << first & mask | c & ~mask
    assert one(decorated(f"{head}.sat", d=dsel, a=asel, b=bsel), a, b, c) == merged


@FEW
@given(a=WORD, b=integers(7), type=SIGNS)
def test_shifts(a: int, b: int, type: str) -> None:
    value = number(a, "", type)
    for mode, amount in (("clamp", min(b, 32)), ("wrap", b % 32)):
        left, right = value << amount, value >> amount
        assert one(f"vshl.{type}.{type}.u32.{mode}", a, b) == left % (1 << 32)
        assert one(f"vshr.{type}.{type}.u32.{mode}", a, b) == right % (1 << 32)
        expected = clamp(left, 32, type) % (1 << 32)
        assert one(f"vshl.{type}.{type}.u32.sat.{mode}", a, b) == expected


RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "eq": int.__eq__,
    "ne": int.__ne__,
    "lt": int.__lt__,
    "le": int.__le__,
    "gt": int.__gt__,
    "ge": int.__ge__,
}


@pytest.mark.parametrize("cmp", RELATIONS)
@FEW
@given(a=WORD, b=WORD, c=WORD, atype=SIGNS, btype=SIGNS)
def test_comparisons(cmp: str, a: int, b: int, c: int, atype: str, btype: str) -> None:
    holds = RELATIONS[cmp]
    head = f"vset.{atype}.{btype}.{cmp}"
    found = int(holds(number(a, "", atype), number(b, "", btype)))
    assert one(head, a, b) == found
    assert one(f"{head}.add", a, b, c) == (c + found) % (1 << 32)
    for count, letter in ((2, "h"), (4, "b")):
        parts = [f"{letter}{i}" for i in range(count)]
        each = [int(holds(number(a, p, atype), number(b, p, btype))) for p in parts]
        bits = 32 // count
        packed = sum(value << bits * i for i, value in enumerate(each))
        assert one(f"vset{count}.{atype}.{btype}.{cmp}", a, b, c) == packed
        total = (c + sum(each)) % (1 << 32)
        assert one(f"vset{count}.{atype}.{btype}.{cmp}.add", a, b, c) == total


@FEW
@given(a=WORD, b=WORD, c=WORD, atype=SIGNS, btype=SIGNS, shift=st.sampled_from((0, 7, 15)))
def test_multiply_add(a: int, b: int, c: int, atype: str, btype: str, shift: int) -> None:
    scale = f".shr{shift}" if shift else ""
    product = number(a, "", atype) * number(b, "", btype)
    for sign, plus, term in (("", "", 1), (".-a", "", 1), (".-c", "", -1), ("", ".po", 1)):
        final = "s32" if "s32" in (atype, btype) or sign else "u32"
        total = (-product if sign == ".-a" else product) + term * number(c, "", final)
        total = total + bool(plus) >> shift
        head = f"vmad.{final}.{atype}.{btype}{plus}"
        if -(1 << 63) <= total << shift < 1 << 63:
            assert one(f"{head}{scale}{sign}", a, b, c) == total % (1 << 32)
        expected = clamp(total, 32, final) % (1 << 32)
        assert one(f"{head}.sat{scale}{sign}", a, b, c) == expected


def average(a: int, b: int) -> int:
    return (a + b + 1) >> 1 if a + b >= 0 else (a + b) >> 1


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("name", [*OPERATIONS, "vavrg"])
@FEW
@given(st.data())
def test_simd_arithmetic(name: str, count: int, data: st.DataObject) -> None:
    dtype, atype, btype = (data.draw(SIGNS) for _ in range(3))
    a, b, c = (data.draw(WORD) for _ in range(3))
    letter, bits = {2: ("h", 16), 4: ("b", 8)}[count]
    digits = st.lists(st.integers(0, 2 * count - 1), min_size=count, max_size=count)
    asel, bsel = data.draw(digits), data.draw(digits)
    through = data.draw(st.sets(st.integers(0, count - 1), min_size=1))
    both = a | b << 32

    def parts(selected: list[int], type: str) -> list[int]:
        values = [both >> bits * i & ((1 << bits) - 1) for i in selected]
        return [signed(v, bits) if type == "s32" else v for v in values]

    operate = OPERATIONS.get(name, average)
    found = [operate(x, y) for x, y in zip(parts(asel, atype), parts(bsel, btype), strict=True)]
    written = [letter + "".join(map(str, reversed(s))) for s in (sorted(through), asel, bsel)]
    where = dict(zip("dab", written, strict=True))
    head = f"{name}{count}.{dtype}.{atype}.{btype}"
    for sat in ("", ".sat"):
        results = [clamp(v, bits, dtype) if sat else v for v in found]
        lanes = [results[i] if i in through else c >> bits * i for i in range(count)]
        packed = sum((v & ((1 << bits) - 1)) << bits * i for i, v in enumerate(lanes))
        assert one(decorated(head + sat, **where), a, b, c) == packed
    total = (c + sum(found[i] for i in through)) % (1 << 32)
    assert one(decorated(f"{head}.add", **where), a, b, c) == total
