"""Tests that constant terms are folded to what the reference machine computes, and unknown ones
not."""

from __future__ import annotations

import numpy as np
import pytest
from example_counts import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from warploom.core.types import F32, PRED, S32, S64, U16, U32, U64, ScalarType
from warploom.isa.terms import Term, argument
from warploom.machine.reference.evaluate import evaluate
from warploom.machine.reference.lanes import collect, splat
from warploom.shapes.run_starts import as_signed
from warploom.shapes.vector_shape import (
    LANES,
    UNIFORM,
    VARYING,
    ShapedValue,
    TermShapes,
    VectorShape,
    strided,
)

INTEGERS = (U16, U32, S32, U64, S64)
OF_TWO = ("add", "sub", "mul", "div", "rem", "and", "or", "xor", "min", "max")
COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")
SHIFTS = ("shl", "lshr", "ashr")


def words(type: ScalarType) -> st.SearchStrategy[int]:
    """Any bits of a type, those at its ends among them."""
    top = 1 << type.bits
    ends = st.sampled_from([0, 1, 2, top // 2 - 1, top // 2, top - 2, top - 1])
    return ends | st.integers(0, top - 1)


@st.composite
def operations(draw: st.DrawFn) -> tuple[Term, list[int]]:
    type = draw(st.sampled_from(INTEGERS))
    op = draw(st.sampled_from((*OF_TWO, *COMPARED, *SHIFTS, "neg", "not", "extend", "truncate")))
    args = [
        argument(n, type) for n in range(1 if op in ("neg", "not", "extend", "truncate") else 2)
    ]
    given = [draw(words(type)) for _ in args]
    if op in SHIFTS:
        given[1] %= type.bits
    result = {"extend": U64 if type is not S32 else S64, "truncate": U16}.get(op, type)
    return Term(op, PRED if op in COMPARED else result, tuple(args)), given


@given(operations())
def test_folded_constants_equal_evaluated_terms(drawn: tuple[Term, list[int]]) -> None:
    term, given = drawn
    types = [argument.type for argument in term.args]
    lanes = [splat(value, type, 1) for value, type in zip(given, types, strict=True)]
    [expected] = evaluate(term, lanes, 1)
    found = TermShapes([ShapedValue(UNIFORM, value) for value in given]).constant(term)
    assert found == int(expected) % (1 << term.type.bits)


def test_only_integers_are_folded() -> None:
    """-1.0 is below 0.0, though its bits are not."""
    minus_one = int(np.float32(-1).view(np.uint32))
    term = Term("lt", PRED, (argument(0, F32), argument(1, F32)))
    assert (
        TermShapes([ShapedValue(UNIFORM, minus_one), ShapedValue(UNIFORM, 0)]).constant(term)
        is None
    )


def test_unknown_operands_are_not_folded() -> None:
    term = Term("add", U32, (argument(0, U32), argument(1, U32)))
    assert TermShapes([ShapedValue(UNIFORM, 1), ShapedValue(UNIFORM)]).constant(term) is None


@pytest.mark.parametrize("type", INTEGERS)
def test_the_complement_negates_the_stride(type: ScalarType) -> None:
    """The complement of 5, 8, 11, ... is -6, -9, -12, ...: ~x is -1 - x, which wraps around as x
    does."""
    term = Term("not", type, (argument(0, type),))
    assert TermShapes([ShapedValue(VectorShape(1, 3))]).shape(term) == VectorShape(1, -3)
    assert TermShapes([ShapedValue(VectorShape(4, -1))]).shape(term) == VectorShape(4, 1)
    assert TermShapes([ShapedValue(UNIFORM)]).shape(term) == UNIFORM
    assert TermShapes([ShapedValue(VARYING)]).shape(term) == VARYING


def test_a_stride_of_half_the_range_is_its_own_negative() -> None:
    """Lanes 0 and 1 hold 0 and 0x8000, then 0xffff and 0x7fff: 0x8000 is the difference in both."""
    term = Term("not", U16, (argument(0, U16),))
    assert TermShapes([ShapedValue(VectorShape(1, -0x8000))]).shape(term) == VectorShape(1, -0x8000)


def test_the_complement_is_linear_between_runs() -> None:
    """Rows that begin at 0, 16, 32 and so on: their complements begin at -1, -17, -33."""
    term = Term("not", U32, (argument(0, U32),))
    assert TermShapes([ShapedValue(VectorShape(2, 1))], linear=True).shape(term) == VectorShape(
        2, -1
    )
    shifted = Term("xor", U32, (argument(0, U32), argument(1, U32)))
    operands = [ShapedValue(VectorShape(2)), ShapedValue(UNIFORM)]
    assert TermShapes(operands, linear=True).shape(shifted) == VARYING


@st.composite
def affine_values(draw: st.DrawFn, type: ScalarType) -> tuple[ShapedValue, list[int]]:
    """Draws a value with a shape, and its bits in each lane; or a constant."""
    cut, bits = (1 << type.bits) - 1, st.sampled_from([0, 0x1F, 0x3E0, 0xF80, -32, 8, -1, 1 << 31])
    if draw(st.booleans()):
        number = draw(words(type) | st.sampled_from([1, 3, 4, 5, 31, 32, 124])) & cut
        return ShapedValue(UNIFORM, number), [number] * LANES
    width, repeats = draw(st.sampled_from([1, 4])), draw(st.sampled_from([1, 2, 4]))
    stride, ones = draw(st.sampled_from([0, 1, 1, 4, -1, 1 << 27])), draw(bits)
    firsts = [draw(words(type) | st.integers(0, 1 << 12)) & ones for _ in range(width)]
    part, length = LANES // width, LANES // (width * repeats)
    lanes = [(firsts[n // part] + n % length * stride) & cut for n in range(LANES)]
    return ShapedValue(strided(width, stride, type.bits, ones, repeats)), lanes


def _wraps(shape: VectorShape, type: ScalarType, lanes: list[int]) -> bool:
    """Returns whether the numbers of some run do not rise by the stride in their type."""
    numbers = [as_signed(bits, type.bits) if type.is_signed else bits for bits in lanes]
    inside = (lane for lane in range(LANES) if lane % shape.length)
    return any(numbers[lane] - numbers[lane - 1] != shape.stride for lane in inside)


@st.composite
def affine_operations(draw: st.DrawFn) -> tuple[Term, list[ShapedValue], list[list[int]]]:
    """Draws an operation on one or two values with shapes."""
    type = draw(st.sampled_from(INTEGERS))
    op = draw(st.sampled_from((*OF_TWO, *SHIFTS, "neg", "not", "extend", "truncate")))
    count = 1 if op in ("neg", "not", "extend", "truncate") else 2
    values = [draw(affine_values(type)) for _ in range(count)]
    shaped, lanes = [value[0] for value in values], [value[1] for value in values]
    if op in SHIFTS:
        amount = draw(st.integers(0, type.bits - 1))
        shaped[1], lanes[1] = ShapedValue(UNIFORM, amount), [amount] * LANES
    assume(op != "extend" or not _wraps(shaped[0].shape, type, lanes[0]))
    result = {"extend": U64 if type is not S32 else S64, "truncate": U16}.get(op, type)
    return Term(op, result, tuple(argument(n, type) for n in range(count))), shaped, lanes


@settings(max_examples=examples(600, nightly=2000))
@given(affine_operations())
def test_lanes_of_a_result_are_as_its_shape_says(
    drawn: tuple[Term, list[ShapedValue], list[list[int]]],
) -> None:
    """The reference machine computes each lane; a run that wraps around is not extended."""
    term, shaped, lanes = drawn
    shape = TermShapes(shaped).shape(term)
    arguments = [
        collect(values, argument.type) for values, argument in zip(lanes, term.args, strict=True)
    ]
    found = [int(value) for value in evaluate(term, arguments, LANES)]
    part = LANES // shape.width
    for lane, value in enumerate(found):
        begins = value - lane % shape.length * shape.stride
        assert (begins & ~shape.ones) % (1 << term.type.bits) == 0
        assert (begins - found[lane - lane % part]) % (1 << term.type.bits) == 0


def test_sums_have_the_runs_of_both_operands() -> None:
    """In a block 8 threads wide `%tid.x` is equal in four runs, `%tid.y` is another number in each;
    in one line of threads, 8 lanes are a part of the only run."""
    term = Term("add", U32, (argument(0, U32), argument(1, U32)))
    x, y, lane = (
        ShapedValue(s) for s in (VectorShape(1, 1, repeats=4), VectorShape(4), VectorShape(1, 1))
    )
    assert TermShapes([x, y]).shape(term) == VectorShape(4, 1)
    assert TermShapes([x, x]).shape(term) == VectorShape(1, 2, repeats=4)
    assert TermShapes([x, ShapedValue(UNIFORM)]).shape(term) == VectorShape(1, 1, repeats=4)
    assert TermShapes([x, lane]).shape(term) == VectorShape(4, 2)
    difference = Term("sub", U32, (argument(0, U32), argument(1, U32)))
    assert TermShapes([x, x]).shape(difference) == UNIFORM


def test_equal_runs_are_joined_with_others() -> None:
    x, rising = VectorShape(1, 1, repeats=4), VectorShape(1, 1)
    assert x.join(x) == x
    assert x.join(VectorShape(4, 1)) == x.join(rising) == rising.join(x) == VectorShape(4, 1)
    assert x.join(VectorShape(1, 1, repeats=2)) == VectorShape(4, 1)
    assert x.join(UNIFORM) == VARYING
