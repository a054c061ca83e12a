"""Where the elements and the metadata of a sparse A stand: places worked out from the manual."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from warploom.isa.ops.matrix import product_of
from warploom.isa.spec import decode

FIRST_COLUMNS: dict[str, Callable[[int, int], int]] = {
    "m16n8k16.row.col.f32.f16.f16.f32": lambda t, i: 4 * t,
    "m16n8k32.row.col.f32.bf16.bf16.f32": lambda t, i: 4 * t + (16 if i >= 4 else 0),
    "m16n8k8.row.col.f32.tf32.tf32.f32": lambda t, i: 2 * t,
    "m16n8k16.row.col.f32.tf32.tf32.f32": lambda t, i: 2 * t + (8 if i >= 2 else 0),
    "m16n8k32.row.col.s32.s8.u8.s32": lambda t, i: 8 * t,
    "m16n8k64.row.col.f32.e4m3.e5m2.f32": lambda t, i: 8 * t + (32 if i >= 8 else 0),
    "m16n8k64.row.col.s32.s4.s4.s32": lambda t, i: 16 * t,
    "m16n8k128.row.col.s32.u4.u4.s32": lambda t, i: 16 * t + (64 if i >= 16 else 0),
}
"""The first of the columns that a register's elements come from, by thread of four and element
(PTX ISA, "Matrix fragments ... with sparse matrix A", below each figure)."""


@pytest.mark.parametrize("form", FIRST_COLUMNS)
def test_stored_elements_come_from_the_columns_of_the_manual(form: str) -> None:
    product = product_of(decode(f"mma.sp.sync.aligned.{form}"))
    sparsity = product.sparsity
    assert sparsity is not None
    width = 2 * product.a.packed
    for lane in range(32):
        for i in range(product.a.count):
            row, k = product.a.position(lane, i)
            first = FIRST_COLUMNS[form](lane % 4, i)
            columns = {sparsity.column(k, choice) for choice in range(sparsity.choices)}
            assert columns <= set(range(first, first + width))
            assert row in (lane // 4, lane // 4 + 8)


@pytest.mark.parametrize(
    ("form", "row", "column", "lane", "bit"),
    [
        # A thread has four chunks of row r, and in its upper half those of row r + 8.
        ("m16n8k16.row.col.f32.f16.f16.f32", 9, 8, 4, 16 + 8),
        ("m16n8k32.row.col.f32.f16.f16.f32", 2, 20, 9, 4),
        ("m16n8k16.row.col.f32.tf32.tf32.f32", 15, 10, 29, 16 + 4 + 1),
        # A thread has eight chunks of one row.
        ("m16n8k32.row.col.s32.s8.s8.s32", 9, 12, 5, 12),
        ("m16n8k64.row.col.s32.u8.u8.s32", 9, 40, 7, 8),
        ("m16n8k64.row.col.s32.s4.s4.s32", 3, 56, 12, 28),
        ("m16n8k128.row.col.s32.s4.s4.s32", 0, 64, 2, 0),
    ],
)
def test_metadata_stand_where_the_figures_have_them(
    form: str, row: int, column: int, lane: int, bit: int
) -> None:
    """The index of the first stored element of the chunk that begins at that column."""
    sparsity = product_of(decode(f"mma.sp::ordered_metadata.sync.aligned.{form}")).sparsity
    assert sparsity is not None
    assert sparsity.position(row, column // 2) == (lane, bit)


@pytest.mark.parametrize(
    "form",
    [
        "m16n8k16.row.col.f32.tf32.tf32.f32",
        "m16n8k32.row.col.f32.f16.f16.f32",
        "m16n8k32.row.col.f32.bf16.bf16.f32",
        "m16n8k64.row.col.s32.s8.u8.s32",
        "m16n8k64.row.col.f32.e4m3.e5m2.f32",
        "m16n8k128.row.col.s32.s4.u4.s32",
    ],
)
def test_cutlass_brings_each_lane_its_metadata(form: str) -> None:
    """How CUTLASS lays the metadata of a row and half of the columns (a short for elements of 16
    bits and more, else a word): rows at a distance of 8 become neighbors, squares of two by two
    are turned over, two columns lie side by side; `ldmatrix` gives lane l the l-th word."""
    sparsity = product_of(decode(f"mma.sp.sync.aligned.{form}")).sparsity
    assert sparsity is not None
    bits, neighbours = (16, 4) if sparsity.bits >= 16 else (32, 2)
    chunks = bits // 4
    for row in range(16):
        for column in range(2):
            y, x = row % 8 * neighbours + row // 8, column
            if y % 2 != x % 2:
                y, x = y ^ 1, x ^ 1
            lane, first = divmod(bits * (2 * y + x), 32)
            for chunk in range(chunks):
                stored = (chunks * column + chunk) * sparsity.stored
                upper = sparsity.choices == 2  # of two indices of tf32 the upper bit counts
                assert sparsity.position(row, stored) == (lane, first + 4 * chunk + upper)


@pytest.mark.parametrize(
    ("form", "contributors"),
    [
        ("m16n8k16.row.col.f32.f16.f16.f32", [[0], [1], [2], [3]]),
        ("m16n8k32.row.col.s32.s8.s8.s32", [[0, 1], [2, 3]]),
        ("m16n8k64.row.col.s32.s8.s8.s32", [[0, 1, 2, 3]]),
    ],
)
def test_the_selector_names_the_threads_of_the_manual(
    form: str, contributors: list[list[int]]
) -> None:
    sparsity = product_of(decode(f"mma.sp.sync.aligned.{form}")).sparsity
    assert sparsity is not None
    assert sparsity.selectors == len(contributors)
    for selector, threads in enumerate(contributors):
        read = [sparsity.contributor(28 + n, selector) for n in range(len(threads))]
        assert read == [28 + thread for thread in threads]
