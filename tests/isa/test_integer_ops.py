"""Integer, logic and bit instructions against Python's own unbounded integers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opcode_values import apply, integers, lanes_of, number, one, signed

from warploom.core.types import TYPES, ScalarType

Function = Callable[..., int]
FEW = settings(max_examples=8)

ALL = ("u16", "u32", "u64", "s16", "s32", "s64")
NARROW = ("u16", "u32", "s16", "s32")
SIGNED = ("s16", "s32", "s64")


def truncated_quotient(a: int, b: int) -> int:
    return -(-a // b) if (a < 0) != (b < 0) else a // b


def floor_high(value: int, type: ScalarType) -> int:
    return value >> type.bits


def clamp(value: int, bits: int = 32) -> int:
    return max(-(1 << (bits - 1)), min((1 << (bits - 1)) - 1, value))


def low24(value: int, type: ScalarType) -> int:
    return signed(value & 0xFFFFFF, 24) if type.is_signed else value & 0xFFFFFF


BINARY: list[tuple[str, tuple[str, ...], Callable[[int, int, ScalarType], int]]] = [
    ("add", ALL, lambda a, b, t: a + b),
    ("sub", ALL, lambda a, b, t: a - b),
    ("mul.lo", ALL, lambda a, b, t: a * b),
    ("mul.hi", ALL, lambda a, b, t: floor_high(a * b, t)),
    ("mul.wide", NARROW, lambda a, b, t: a * b),
    ("min", ALL, lambda a, b, t: min(a, b)),
    ("max", ALL, lambda a, b, t: max(a, b)),
    ("add.sat", ("s32",), lambda a, b, t: clamp(a + b)),
    ("sub.sat", ("s32",), lambda a, b, t: clamp(a - b)),
    ("min.relu", ("s32",), lambda a, b, t: max(0, min(a, b))),
    ("max.relu", ("s32",), lambda a, b, t: max(0, a, b)),
    ("mul24.lo", ("u32", "s32"), lambda a, b, t: low24(a, t) * low24(b, t)),
    ("mul24.hi", ("u32", "s32"), lambda a, b, t: low24(a, t) * low24(b, t) >> 16),
    ("div", ALL, lambda a, b, t: truncated_quotient(a, b) if b else -1),
    ("rem", ALL, lambda a, b, t: a - truncated_quotient(a, b) * b if b else a),
]


@pytest.mark.parametrize(
    ("name", "type", "expected"), [(n, TYPES[t], f) for n, types, f in BINARY for t in types]
)
@FEW
@given(data=st.data())
def test_two_operands(name: str, type: ScalarType, expected: Function, data: st.DataObject) -> None:
    a, b = (data.draw(lanes_of(integers(type.bits))) for _ in range(2))
    width = 2 * type.bits if name.endswith("wide") else type.bits
    numbers = zip(a, b, strict=True)
    wanted = [expected(number(x, type), number(y, type), type) % (1 << width) for x, y in numbers]
    assert apply(f"{name}{type}", a, b) == wanted


TERNARY: list[tuple[str, tuple[str, ...], Callable[[int, int, int, ScalarType], int]]] = [
    ("mad.lo", ALL, lambda a, b, c, t: a * b + c),
    ("mad.hi", ALL, lambda a, b, c, t: floor_high(a * b, t) + c),
    ("mad.hi.sat", ("s32",), lambda a, b, c, t: clamp(floor_high(a * b, t) + c)),
    ("mad24.lo", ("u32", "s32"), lambda a, b, c, t: low24(a, t) * low24(b, t) + c),
    ("mad24.hi", ("u32", "s32"), lambda a, b, c, t: (low24(a, t) * low24(b, t) >> 16) + c),
    ("mad24.hi.sat", ("s32",), lambda a, b, c, t: clamp((low24(a, t) * low24(b, t) >> 16) + c)),
    ("sad", ALL, lambda a, b, c, t: c + abs(a - b)),
]


@pytest.mark.parametrize(
    ("name", "type", "expected"), [(n, TYPES[t], f) for n, types, f in TERNARY for t in types]
)
@FEW
@given(data=st.data())
def test_three_operands(
    name: str, type: ScalarType, expected: Function, data: st.DataObject
) -> None:
    a, b, c = (data.draw(lanes_of(integers(type.bits))) for _ in range(3))
    numbers = ([number(x, type) for x in lane] for lane in zip(a, b, c, strict=True))
    wanted = [expected(*lane, type) % (1 << type.bits) for lane in numbers]
    assert apply(f"{name}{type}", a, b, c) == wanted


@pytest.mark.parametrize("type", [TYPES[t] for t in NARROW], ids=str)
@FEW
@given(data=st.data())
def test_mad_wide_adds_a_wide_operand(type: ScalarType, data: st.DataObject) -> None:
    a, b = (data.draw(lanes_of(integers(type.bits))) for _ in range(2))
    c = data.draw(lanes_of(integers(2 * type.bits)))
    lanes = zip(a, b, c, strict=True)
    wanted = [(number(x, type) * number(y, type) + z) % (1 << 2 * type.bits) for x, y, z in lanes]
    assert apply(f"mad.wide{type}", a, b, c) == wanted


UNARY: list[tuple[str, tuple[str, ...], Callable[[int, int], int]]] = [
    ("abs", SIGNED, lambda a, n: abs(signed(a, n))),
    ("neg", SIGNED, lambda a, n: -a),
    ("not", ("b16", "b32", "b64"), lambda a, n: ~a),
    ("cnot", ("b16", "b32", "b64"), lambda a, n: int(a == 0)),
    ("brev", ("b32", "b64"), lambda a, n: sum((a >> i & 1) << (n - 1 - i) for i in range(n))),
]


@pytest.mark.parametrize(
    ("name", "type", "expected"), [(n, TYPES[t], f) for n, types, f in UNARY for t in types]
)
@FEW
@given(data=st.data())
def test_one_operand(name: str, type: ScalarType, expected: Function, data: st.DataObject) -> None:
    a = data.draw(lanes_of(integers(type.bits)))
    assert apply(f"{name}{type}", a) == [expected(x, type.bits) % (1 << type.bits) for x in a]


def highest(value: int) -> int:
    """Place of the highest bit that is 1, -1 for none: bit by bit, as the manual tells it."""
    return max((i for i in range(64) if value >> i & 1), default=-1)


COUNTING: list[tuple[str, tuple[str, ...], Callable[[int, ScalarType], int]]] = [
    ("popc", ("b32", "b64"), lambda a, t: bin(a).count("1")),
    ("clz", ("b32", "b64"), lambda a, t: t.bits - 1 - highest(a)),
    ("bfind", ("u32", "u64"), lambda a, t: highest(a)),
    ("bfind", ("s32", "s64"), lambda a, t: highest(max(number(a, t), ~number(a, t)))),
    (
        "bfind.shiftamt",
        ("u32", "u64"),
        lambda a, t: t.bits - 1 - highest(a) if a else -1,
    ),
]


@pytest.mark.parametrize(
    ("name", "type", "expected"), [(n, TYPES[t], f) for n, types, f in COUNTING for t in types]
)
@FEW
@given(data=st.data())
def test_counting_gives_32_bits(
    name: str, type: ScalarType, expected: Function, data: st.DataObject
) -> None:
    a = data.draw(lanes_of(integers(type.bits)))
    assert apply(f"{name}{type}", a) == [expected(x, type) % (1 << 32) for x in a]


@pytest.mark.parametrize("type", [TYPES[t] for t in ("u32", "u64", "s32", "s64")], ids=str)
@FEW
@given(data=st.data())
def test_bfe_follows_the_manuals_loop(type: ScalarType, data: st.DataObject) -> None:
    a = data.draw(lanes_of(integers(type.bits)))
    b, c = (data.draw(lanes_of(st.integers(0, 300))) for _ in range(2))

    def extracted(x: int, start: int, count: int) -> int:
        start, count, top = start & 0xFF, count & 0xFF, type.bits - 1
        sign = x >> min(start + count - 1, top) & 1 if type.is_signed and count else 0
        bits = range(type.bits)
        inside = [x >> (start + i) & 1 if i < count and start + i <= top else sign for i in bits]
        return sum(bit << i for i, bit in enumerate(inside))

    assert apply(f"bfe{type}", a, b, c) == [extracted(*x) for x in zip(a, b, c, strict=True)]


@pytest.mark.parametrize("type", [TYPES["b32"], TYPES["b64"]], ids=str)
@FEW
@given(data=st.data())
def test_bfi_follows_the_manuals_loop(type: ScalarType, data: st.DataObject) -> None:
    a, b = (data.draw(lanes_of(integers(type.bits))) for _ in range(2))
    c, d = (data.draw(lanes_of(st.integers(0, 300))) for _ in range(2))

    def inserted(field: int, into: int, start: int, count: int) -> int:
        for i in range(count & 0xFF):
            place = (start & 0xFF) + i
            if place < type.bits:
                into = into & ~(1 << place) | (field >> i & 1) << place
        return into

    assert apply(f"bfi{type}", a, b, c, d) == [inserted(*x) for x in zip(a, b, c, d, strict=True)]


SHIFTS = [("shl", t) for t in ("b16", "b32", "b64")]
SHIFTS += [("shr", t) for t in ("b16", "b32", "b64", *ALL)]


@pytest.mark.parametrize(("name", "type"), [(n, TYPES[t]) for n, t in SHIFTS])
@FEW
@given(data=st.data())
def test_shifts_clamp_their_amount(name: str, type: ScalarType, data: st.DataObject) -> None:
    a = data.draw(lanes_of(integers(type.bits)))
    by = data.draw(lanes_of(st.one_of(st.integers(0, 70), integers(32))))
    wanted: list[int] = []
    for x, amount in zip(a, by, strict=True):
        amount = min(amount, type.bits)
        shifted = number(x, type) << amount if name == "shl" else number(x, type) >> amount
        wanted.append(shifted % (1 << type.bits))
    assert apply(f"{name}{type}", a, by) == wanted


@pytest.mark.parametrize("direction", ["l", "r"])
@pytest.mark.parametrize("mode", ["clamp", "wrap"])
@FEW
@given(data=st.data())
def test_shf_shifts_a_pair_of_words(direction: str, mode: str, data: st.DataObject) -> None:
    a, b = (data.draw(lanes_of(integers(32))) for _ in range(2))
    c = data.draw(lanes_of(st.one_of(st.integers(0, 70), integers(32))))
    wanted: list[int] = []
    for low, high, amount in zip(a, b, c, strict=True):
        n = min(amount, 32) if mode == "clamp" else amount % 32
        pair = high << 32 | low
        wanted.append((pair << n >> 32 if direction == "l" else pair >> n) % (1 << 32))
    assert apply(f"shf.{direction}.{mode}.b32", a, b, c) == wanted


@FEW
@given(data=st.data())
def test_lop3_looks_bits_up_in_its_table(data: st.DataObject) -> None:
    a, b, c = (data.draw(lanes_of(integers(32))) for _ in range(3))
    table = data.draw(st.integers(0, 255))

    def looked_up(x: int, y: int, z: int) -> int:
        rows = ((x >> i & 1) << 2 | (y >> i & 1) << 1 | z >> i & 1 for i in range(32))
        return sum((table >> row & 1) << i for i, row in enumerate(rows))

    wanted = [looked_up(*lane) for lane in zip(a, b, c, strict=True)]
    assert apply("lop3.b32", a, b, c, [table] * 32) == wanted


def test_lop3_tables_of_the_manual() -> None:
    """The manual builds a table from 0xF0, 0xCC and 0xAA in place of a, b and c."""
    a, b, c = 0x12345678, 0x0F0F3355, 0xFEDCBA98
    assert one("lop3.b32", a, b, c, 0xF0 & 0xCC & 0xAA) == a & b & c
    assert one("lop3.b32", a, b, c, 0xF0 | 0xCC | 0xAA) == a | b | c
    assert one("lop3.b32", a, b, c, 0xF0 & 0xCC & ~0xAA & 0xFF) == a & b & ~c
    assert one("lop3.b32", a, b, c, (0xF0 & 0xCC | 0xAA) ^ 0xF0) == (a & b | c) ^ a


BYTES = 0x33221100, 0x77665544
"""A pair of words whose byte number i is 0x11 * i."""


@pytest.mark.parametrize(
    ("opcode", "control", "expected"),
    [
        ("prmt.b32", 0x7531, 0x77553311),
        ("prmt.b32", 0x3210, 0x33221100),
        ("prmt.b32", 0x0123, 0x00112233),
        ("prmt.b32.f4e", 1, 0x44332211),
        ("prmt.b32.f4e", 3, 0x66554433),
        ("prmt.b32.b4e", 0, 0x55667700),
        ("prmt.b32.b4e", 2, 0x77001122),
        ("prmt.b32.rc8", 2, 0x22222222),
        ("prmt.b32.ecl", 1, 0x33221111),
        ("prmt.b32.ecl", 3, 0x33333333),
        ("prmt.b32.ecr", 2, 0x22221100),
        ("prmt.b32.ecr", 0, 0x00000000),
        ("prmt.b32.rc16", 0, 0x11001100),
        ("prmt.b32.rc16", 1, 0x33223322),
    ],
)
def test_prmt_by_the_manuals_tables(opcode: str, control: int, expected: int) -> None:
    assert one(opcode, *BYTES, control) == expected


def test_prmt_spreads_the_sign_where_the_selectors_top_bit_is_set() -> None:
    assert one("prmt.b32", 0x00007F80, 0, 0x9898) == 0x00FF00FF


def test_integer_division_is_total() -> None:
    assert one("div.s32", 1 << 31, (1 << 32) - 1) == 1 << 31
    assert one("rem.s32", 1 << 31, (1 << 32) - 1) == 0
    assert one("div.u64", 7, 0) == (1 << 64) - 1
    assert one("rem.s16", 7, 0) == 7
