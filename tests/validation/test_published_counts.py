"""Executed machine instructions against counts of hardware that were published."""

from __future__ import annotations

import pytest
from needs import NEEDS_PTXAS

from warploom.validation.counts import Count, CountRow, count_rows, counts, counts_as_markdown

DAILY = (
    "sum_atomic",
    "sum_divergent",
    "sum_of_strided_pairs",
    "sum_unrolled_warp",
    "online_grid",
    "column_deviations",
    "mean_of_sums",
    "product",
)
"""Divergent branches, unrolled loops, atomics that are reduced, divisions; the others by night."""


def case(count: Count) -> object:
    named = f"{count.device}-{count.kernel}-{count.block[0]}"
    marks = () if count.kernel in DAILY else pytest.mark.nightly
    return pytest.param(count, id=named, marks=marks)


ALMOST = {"attended": 0.0005}
"""Kernels of which some instructions are missed, and the part that may be."""


@NEEDS_PTXAS
@pytest.mark.parametrize("count", [case(count) for count in counts()])
def test_instructions_are_those_that_hardware_executed(count: Count) -> None:
    """Both compilers make the same code of these kernels, so that counts are exact."""
    [row] = count_rows([count])
    assert abs(row.error) <= ALMOST.get(count.kernel, 0)
    assert row.registers_agree


def test_a_table_says_how_good_the_counts_are() -> None:
    """Errors of 0, 2 and 10 %; one of two published registers is met, with the least of 16."""
    given = [(1000, 1000, 16, 12), (1000, 1020, 30, 32), (1000, 900, None, 40)]
    rows = [
        CountRow(Count("t4", "k", (1,), (32,), 0, (), 1, published, stated, "S"), counted, made)
        for published, counted, stated, made in given
    ]
    assert [row.registers_agree for row in rows] == [True, False, True]
    assert [*counts_as_markdown(rows)][-1] == "| 3 | 2.00 % | 10.00 % | 1 of 2 |"
