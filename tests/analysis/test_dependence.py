"""Tests the dependence tests of accesses against all threads of small launches."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from warploom.analysis.linear.dependence import AddressRange, never_overlap, overlap_only_if_equal
from warploom.analysis.linear.forms import Form, IndexVariable, form
from warploom.analysis.linear.ranges import Ranges

X, Y, ITERATION = IndexVariable("x", 4), IndexVariable("y", 3), IndexVariable("iteration", 3)
THREADS = (X, Y)

strides = st.sampled_from([-8, -4, -1, 0, 1, 2, 3, 4, 8, 12, 16, 20])
forms = st.builds(
    lambda c, x, y, iteration: form(c, {X: x, Y: y, ITERATION: iteration}),
    st.integers(-6, 20),
    strides,
    strides,
    strides,
)
facts = st.sets(
    st.builds(
        lambda c, x, y: form(c, {X: x, Y: y}),
        st.integers(-3, 9),
        st.integers(-4, 4),
        st.integers(-4, 4),
    ).filter(lambda one: bool(one.strides)),
    max_size=2,
).map(frozenset)


def value(one: Form, values: dict[IndexVariable, int]) -> int:
    return one.constant + sum(stride * values[variable] for variable, stride in one.strides)


def address_range(address: Form, size: int, known: frozenset[Form]) -> AddressRange:
    index_forms = [form(0, {variable: 1}) for variable in THREADS]
    return AddressRange(address, size, Ranges.under(known, [address, *index_forms]))


def touched_bytes(
    address: Form, size: int, known: frozenset[Form]
) -> list[tuple[tuple[int, int], range]]:
    """Lists (thread, bytes) for each thread and iteration in which the facts hold."""
    found: list[tuple[tuple[int, int], range]] = []
    for x, y, iteration in product(range(4), range(3), range(3)):
        values = {X: x, Y: y, ITERATION: iteration}
        if all(value(fact, values) >= 0 for fact in known):
            at = value(address, values)
            found.append(((x, y), range(at, at + size)))
    return found


def overlap(one: range, two: range) -> bool:
    return one.start < two.stop and two.start < one.stop


@settings(max_examples=400, deadline=None)
@given(forms, forms, st.sampled_from([1, 2, 4]), st.sampled_from([1, 4]), facts, facts)
def test_disjoint_accesses_share_no_byte(one, two, size, other_size, known, others) -> None:
    """Enumerates all threads: the tests must be right whenever they return True."""
    first_range, second_range = (
        address_range(one, size, known),
        address_range(two, other_size, others),
    )
    pairs = list(product(touched_bytes(one, size, known), touched_bytes(two, other_size, others)))
    if never_overlap(first_range, second_range):
        assert not any(overlap(a, b) for (_, a), (_, b) in pairs)
    if overlap_only_if_equal(first_range, second_range, THREADS):
        assert not any(overlap(a, b) for (thread, a), (other, b) in pairs if thread != other)


@settings(max_examples=200, deadline=None)
@given(forms, facts)
def test_ranges_contain_every_value(one, known) -> None:
    low, high = Ranges.under(known, [one]).of(one)
    for x, y, iteration in product(range(4), range(3), range(3)):
        values = {X: x, Y: y, ITERATION: iteration}
        if all(value(fact, values) >= 0 for fact in known):
            assert low <= value(one, values) <= high


def range_of(address: Form, size: int = 4, *known: Form) -> AddressRange:
    return address_range(address, size, frozenset(known))


def test_elements_of_a_matrix_overlap_only_if_equal() -> None:
    """Uses rows of four elements of 4 bytes, one thread each."""
    rows = range_of(form(0, {X: 4, Y: 16}))
    assert overlap_only_if_equal(rows, rows, THREADS)
    assert not never_overlap(rows, rows)


def test_overlapping_rows_need_a_fact() -> None:
    """In rows of three elements the fourth is the next row's first, but not if x < 3."""
    address = form(0, {X: 4, Y: 12})
    assert not overlap_only_if_equal(range_of(address), range_of(address), THREADS)
    below = form(2, {X: -1})
    assert overlap_only_if_equal(range_of(address, 4, below), range_of(address, 4, below), THREADS)


def test_a_column_never_overlaps_the_columns_after_it() -> None:
    """Column 0 of rows of four against columns 1 to 3: their remainders by the row's 16 bytes
    differ."""
    column, others = form(0, {Y: 16}), form(0, {X: 4, Y: 16})
    positive = form(-1, {X: 1})
    assert never_overlap(range_of(column), range_of(others, 4, positive))
    assert not never_overlap(range_of(column), range_of(others))


def test_facts_that_leave_one_thread_make_accesses_of_one_thread() -> None:
    """With `if (x == 0 && y == 0)` one thread is left, wherever it stores."""
    first = form(0, {X: -1}), form(0, {Y: -1})
    assert overlap_only_if_equal(
        range_of(form(5), 4, *first), range_of(form(5), 4, *first), THREADS
    )
    assert not overlap_only_if_equal(range_of(form(5)), range_of(form(5)), THREADS)
