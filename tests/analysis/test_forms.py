"""Tests linear forms against the terms that they represent, for every value of the variables."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warploom.analysis.linear.forms import Form, IndexVariable, form
from warploom.analysis.linear.term_forms import as_type, evaluate
from warploom.core.types import PRED, S32, S64, U32, U64
from warploom.isa.spec import decode
from warploom.machine.reference.evaluate import evaluate as run
from warploom.machine.reference.lanes import collect

X, Y = IndexVariable("x", 5), IndexVariable("y", 3)
OPCODES = (
    *("add.s32", "sub.s32", "mul.lo.s32", "mad.lo.s32", "mul.wide.s32", "mul.wide.u32"),
    *("mad.wide.u32", "shl.b32", "and.b32", "or.b32", "shr.u32", "shr.s32", "div.u32", "rem.u32"),
    *("min.s32", "max.u32", "bfi.b32", "bfe.u32", "neg.s32", "cvt.s64.s32", "cvt.u32.u64"),
    *("add.s64", "shl.b64", "selp.b32"),
)


def forms_of(bits: int):
    constant = st.integers(-40, 300) | st.integers(0, (1 << bits) - 1)
    strides = st.dictionaries(st.sampled_from((X, Y)), st.integers(-9, 40), max_size=2)
    return st.builds(form, constant, strides)


def value(made: Form, x: int, y: int) -> int:
    at = {X: x, Y: y}
    return made.constant + sum(stride * at[v] for v, stride in made.strides)


@settings(max_examples=400)
@given(st.data())
def test_forms_have_the_values_of_terms(data: st.DataObject) -> None:
    """A form in the variables of the operands is exact; one with a new variable covers the
    value."""
    operation = decode(data.draw(st.sampled_from(OPCODES)))
    types = [t for t in operation.source_types if t is not None]
    given_forms = []
    for type in types:
        drawn = data.draw(forms_of(min(type.bits, 32)))
        given_forms.append(as_type(drawn, type) if type != PRED else form(1))
    [term] = operation.terms_for(len(operation.source_types))
    made = evaluate(term, given_forms)
    if made is None or None in given_forms:
        return
    for x, y in product(range(5), range(3)):
        values = [collect([value(f, x, y)], t) for f, t in zip(given_forms, types, strict=True)]
        if any(t == PRED for t in types):
            values = [
                v.astype(bool) if t == PRED else v for v, t in zip(values, types, strict=True)
            ]
        expected = int(run(term, values, 1)[0])
        width = 1 << term.type.bits
        if all(variable in (X, Y) for variable, _ in made.strides):
            assert value(made, x, y) % width == expected
        else:
            assert made.low <= expected <= made.high


def test_values_that_may_wrap_are_unknown() -> None:
    thread = form(0, {IndexVariable("t", 1024): 1 << 22})
    assert as_type(thread, U64) == thread
    assert as_type(thread, U32) == thread  # 1023 * 2^22 is below 2^32
    assert as_type(thread, S32) is None
    assert as_type(thread.times(2), U32) is None
    assert as_type(form(-1), U32) == form(0xFFFFFFFF)
    assert as_type(form(0xFFFFFFFF), S32) == form(-1)
    assert as_type(form(0, {X: -1}), S64) == form(0, {X: -1})
    assert as_type(form(0, {X: -1}), U64) is None  # 0 is no negative number, the others are
    assert as_type(form(-1, {X: -1}), U32) == form(0xFFFFFFFF, {X: -1})
    assert as_type(form(0xFFFFFFFF, {X: -1}), S32) == form(-1, {X: -1})


def test_what_quotients_leave_is_a_remainder() -> None:
    """x - x / 32 * 32, and compilers' x - (x & ~31), are x % 32."""
    x = form(0, {IndexVariable("x", 256): 1})
    remainder = evaluated("rem.u32", x, form(32))
    quotient = evaluated("div.u32", x, form(32))
    cleared = evaluated("and.b32", x, form(0xFFFFFFE0))
    assert remainder is not None
    assert quotient is not None
    assert cleared is not None
    assert cleared == quotient.times(32)
    assert x.plus(cleared, -1) == remainder
    assert x.times(4).plus(quotient, -128).plus(quotient, 900) == remainder.times(4).plus(
        quotient, 900
    )


def test_a_mask_of_half_a_type_clears_the_other_half() -> None:
    """Of a count without a bound, bits above the mask's may be set; where the mask has all high
    bits of the type, it is rounded down."""
    counted = form(0, {IndexVariable("loops", None, at=frozenset((1,)), counts=True): 32})
    shifted = counted.plus(form(5))
    assert evaluated("and.b64", shifted, form(0xFFFFFFE0)) is None
    assert evaluated("and.b64", shifted, form(0xFFFFFFFFFFFFFFE0)) == counted
    assert evaluated("and.b32", shifted, form(0xFFFFFFE0)) == counted


@pytest.mark.parametrize("shift", ["shr.s32", "shr.u32"])
def test_what_is_not_negative_has_no_sign(shift: str) -> None:
    """Compilers add 31 to negative numbers, by the sign, before they divide by 32."""
    counted = form(7, {IndexVariable("loops", None, at=frozenset((1,)), counts=True): 256})
    expected = form(0) if shift == "shr.s32" else None
    assert evaluated(shift, counted, form(31)) == expected


def test_a_mask_above_clear_bits_is_a_remainder() -> None:
    """Compilers make (x & 3) * 4 into x * 4 & 12, and both are one index."""
    part = evaluated("and.b32", form(0, {X: 1}), form(3))
    assert part is not None
    [(variable, stride)] = part.strides
    assert (variable.extent, stride) == (4, 1)
    assert evaluated("and.b32", form(0, {X: 4}), form(12)) == part.times(4)


def evaluated(opcode: str, *operands: Form) -> Form | None:
    operation = decode(opcode)
    [term] = operation.terms_for(len(operation.source_types))
    return evaluate(term, operands)
