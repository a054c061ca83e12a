"""Comparison and selection: every relation on numbers, zeros, infinities and NaNs."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opcode_values import (
    INF32,
    NAN32,
    apply,
    apply_all,
    f32,
    from_f32,
    integers,
    lanes_of,
    number,
    one,
)

from warploom.core.types import TYPES

RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
SPECIAL = [f32(x) for x in (0.0, -0.0, 1.0, -1.0, 1.5, 2.0**-149, 2.0**-126)]
SPECIAL += [INF32, INF32 | 1 << 31, NAN32, 0x7FC00000, 0xFFC00000]
PAIRS = list(itertools.product(SPECIAL, SPECIAL))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("unordered", [False, True])
def test_float_relations(relation: str, unordered: bool) -> None:
    a, b = (list(side) for side in zip(*PAIRS, strict=True))
    wanted: list[int] = []
    for x, y in ((from_f32(x), from_f32(y)) for x, y in PAIRS):
        nan = math.isnan(x) or math.isnan(y)
        wanted.append(unordered if nan else RELATIONS[relation](x, y))
    assert apply(f"setp.{relation}{'u' if unordered else ''}.f32", a, b) == wanted


def test_num_and_nan() -> None:
    assert one("setp.num.f32", f32(1), INF32) == 1
    assert one("setp.num.f32", f32(1), NAN32) == 0
    assert one("setp.nan.f32", NAN32, f32(1)) == 1
    assert one("setp.nan.f32", f32(1), f32(2)) == 0


def test_ftz_compares_a_subnormal_as_zero() -> None:
    tiny = f32(2.0**-149)
    assert one("setp.gt.f32", tiny, 0) == 1
    assert one("setp.gt.ftz.f32", tiny, 0) == 0
    assert one("setp.eq.ftz.f32", tiny, tiny | 1 << 31) == 1


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("type", ["u16", "s16", "u32", "s32", "u64", "s64"])
@settings(max_examples=8)
@given(data=st.data())
def test_integer_relations(relation: str, type: str, data: st.DataObject) -> None:
    a, b = (data.draw(lanes_of(integers(TYPES[type].bits))) for _ in range(2))
    pairs = zip(a, b, strict=True)
    wanted = [RELATIONS[relation](number(x, TYPES[type]), number(y, TYPES[type])) for x, y in pairs]
    assert apply(f"setp.{relation}.{type}", a, b) == wanted


@pytest.mark.parametrize(("name", "same"), [("lo", "lt"), ("ls", "le"), ("hi", "gt"), ("hs", "ge")])
def test_unsigned_names(name: str, same: str) -> None:
    a, b = [1, 2, 1 << 31, 5], [2, 1, 1, 5]
    assert apply(f"setp.{name}.u32", a, b) == apply(f"setp.{same}.u32", a, b)


def test_the_second_destination_is_the_complement_joined_alike() -> None:
    a, b, c = [1, 1, 2, 2], [1, 1, 1, 1], [0, 1, 0, 1]
    assert apply_all("setp.eq.u32", a, b) == [[1, 1, 0, 0], [0, 0, 1, 1]]
    assert apply_all("setp.eq.and.u32", a, b, c) == [[0, 1, 0, 0], [0, 0, 0, 1]]
    assert apply_all("setp.eq.or.u32", a, b, c) == [[1, 1, 0, 1], [0, 1, 1, 1]]
    assert apply_all("setp.eq.xor.u32", a, b, c) == [[1, 0, 0, 1], [0, 1, 1, 0]]


def test_set_writes_ones_or_one() -> None:
    assert one("set.lt.u32.s32", (1 << 32) - 1, 0) == 0xFFFFFFFF
    assert one("set.lt.f32.s32", (1 << 32) - 1, 0) == f32(1.0)
    assert one("set.lt.u32.u32", (1 << 32) - 1, 0) == 0
    assert one("set.gt.and.s32.f64", 0x4000_0000_0000_0000, 0, 0) == 0


def test_selp_and_slct() -> None:
    assert one("selp.b64", 5, 6, 1) == 5
    assert one("selp.b64", 5, 6, 0) == 6
    assert one("slct.b32.s32", 5, 6, 0) == 5
    assert one("slct.b32.s32", 5, 6, 1 << 31) == 6
    assert one("slct.u64.f32", 5, 6, f32(-0.0)) == 5
    assert one("slct.u64.f32", 5, 6, f32(-1.0)) == 6
    assert one("slct.u64.f32", 5, 6, NAN32) == 6
    assert one("slct.ftz.u64.f32", 5, 6, f32(-(2.0**-149))) == 5


def test_lop3_with_a_predicate() -> None:
    d, p = apply_all("lop3.or.b32", [0, 0, 3], [0, 0, 1], [0, 0, 1], [0x80] * 3, [0, 1, 0])
    assert (d, p) == ([0, 0, 1], [0, 1, 1])
