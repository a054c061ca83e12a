"""Whether accesses can meet, held against all threads of small launches."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from warploom.analysis.linear.dependence import AddressRange, are_of_one_thread, never_overlap
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


def reached(where: Form, size: int, known: frozenset[Form]) -> AddressRange:
    telling = [form(0, {variable: 1}) for variable in THREADS]
    return AddressRange(where, size, Ranges.under(known, [where, *telling]))


def places(where: Form, size: int, known: frozenset[Form]) -> list[tuple[tuple[int, int], range]]:
    """Lists the bytes that each thread reaches in each iteration, where its facts hold."""
    found: list[tuple[tuple[int, int], range]] = []
    for x, y, iteration in product(range(4), range(3), range(3)):
        values = {X: x, Y: y, ITERATION: iteration}
        if all(value(fact, values) >= 0 for fact in known):
            at = value(where, values)
            found.append(((x, y), range(at, at + size)))
    return found


def meet(one: range, two: range) -> bool:
    return one.start < two.stop and two.start < one.stop


@settings(max_examples=400, deadline=None)
@given(forms, forms, st.sampled_from([1, 2, 4]), st.sampled_from([1, 4]), facts, facts)
def test_what_is_said_to_be_apart_is(one, two, size, other_size, known, others) -> None:
    """No thread's bytes are another's where the tests say so."""
    mine, theirs = reached(one, size, known), reached(two, other_size, others)
    pairs = list(product(places(one, size, known), places(two, other_size, others)))
    if never_overlap(mine, theirs):
        assert not any(meet(a, b) for (_, a), (_, b) in pairs)
    if are_of_one_thread(mine, theirs, THREADS):
        assert not any(meet(a, b) for (thread, a), (other, b) in pairs if thread != other)


@settings(max_examples=200, deadline=None)
@given(forms, facts)
def test_ranges_hold_every_value(one, known) -> None:
    low, high = Ranges.under(known, [one]).of(one)
    for x, y, iteration in product(range(4), range(3), range(3)):
        values = {X: x, Y: y, ITERATION: iteration}
        if all(value(fact, values) >= 0 for fact in known):
            assert low <= value(one, values) <= high


def plain(where: Form, size: int = 4, *known: Form) -> AddressRange:
    return reached(where, size, frozenset(known))


def test_rows_of_a_matrix_are_of_one_thread() -> None:
    """Elements of 4 bytes in rows of 4, a thread each."""
    rows = plain(form(0, {X: 4, Y: 16}))
    assert are_of_one_thread(rows, rows, THREADS)
    assert not never_overlap(rows, rows)


def test_rows_that_are_too_short_need_a_fact() -> None:
    """In rows of three elements the fourth is the next row's first, but not where x < 3."""
    where = form(0, {X: 4, Y: 12})
    assert not are_of_one_thread(plain(where), plain(where), THREADS)
    below = form(2, {X: -1})
    assert are_of_one_thread(plain(where, 4, below), plain(where, 4, below), THREADS)


def test_a_column_is_apart_from_the_columns_behind_it() -> None:
    """Column 0 of rows of four, against columns 1 to 3: the rests by the row's 16 bytes differ."""
    column, others = form(0, {Y: 16}), form(0, {X: 4, Y: 16})
    behind = form(-1, {X: 1})
    assert never_overlap(plain(column), plain(others, 4, behind))
    assert not never_overlap(plain(column), plain(others))


def test_one_thread_alone_is_of_one_thread() -> None:
    """`if (x == 0 && y == 0)` leaves one thread, wherever it stores."""
    first = form(0, {X: -1}), form(0, {Y: -1})
    assert are_of_one_thread(plain(form(5), 4, *first), plain(form(5), 4, *first), THREADS)
    assert not are_of_one_thread(plain(form(5)), plain(form(5)), THREADS)
