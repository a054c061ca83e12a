"""Which lane holds which element: against the formulas under the manual's figures, one by one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from warploom.isa.fragments import Fragment
from warploom.isa.ops.matrix import product_of
from warploom.isa.spec import FORMS, decode

Formula = Callable[[int, int, int], tuple[int, int]]
"""(group, thread in group, element) -> (row, column)."""

FORMULAS: dict[str, tuple[str, Formula, Formula, Formula]] = {
    "m16n8k16.f16": (
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        lambda g, t, i: (
            g + (0 if i in (0, 1, 4, 5) else 8),
            2 * t + (i & 1) + (8 if i >= 4 else 0),
        ),
        lambda g, t, i: (2 * t + (i & 1) + (8 if i >= 2 else 0), g),
        lambda g, t, i: (g + (8 if i >= 2 else 0), 2 * t + (i & 1)),
    ),
    "m16n8k8.tf32": (
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
        lambda g, t, i: (g + (0 if i in (0, 2) else 8), t + (4 if i >= 2 else 0)),
        lambda g, t, i: (t + 4 * i, g),
        lambda g, t, i: (g + (8 if i >= 2 else 0), 2 * t + (i & 1)),
    ),
    "m8n8k4.f64": (
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
        lambda g, t, i: (g, t),
        lambda g, t, i: (t, g),
        lambda g, t, i: (g, 2 * t + i),
    ),
    "m16n8k32.s8": (
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
        lambda g, t, i: (
            g + (0 if i < 4 or 8 <= i < 12 else 8),
            4 * t + (i & 3) + (16 if i >= 8 else 0),
        ),
        lambda g, t, i: (4 * t + (i & 3) + (16 if i >= 4 else 0), g),
        lambda g, t, i: (g + (8 if i >= 2 else 0), 2 * t + (i & 1)),
    ),
    "m16n8k64.s4": (
        "mma.sync.aligned.m16n8k64.row.col.s32.s4.u4.s32",
        lambda g, t, i: (
            g + (0 if i < 8 or 16 <= i < 24 else 8),
            8 * t + (i & 7) + (32 if i >= 16 else 0),
        ),
        lambda g, t, i: (8 * t + (i & 7) + (32 if i >= 8 else 0), g),
        lambda g, t, i: (g + (8 if i >= 2 else 0), 2 * t + (i & 1)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FORMULAS)
def test_fragments_are_those_of_the_manual(case: str) -> None:
    opcode, a, b, c = FORMULAS[case]
    product = product_of(decode(opcode))
    for lane in range(32):
        group, thread = divmod(lane, 4)
        for i in range(product.a.count):
            assert product.a.position(lane, i) == a(group, thread, i)
        for i in range(product.b.count):
            k, column = b(group, thread, i)
            assert product.b.position(lane, i) == (column, k)
        for i in range(product.c.count):
            assert product.c.position(lane, i) == c(group, thread, i)


def test_the_quads_of_volta() -> None:
    """PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16": lanes 0-3 and 16-19 share a product."""
    p = product_of(decode("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16"))
    assert p.a.position(2, 3) == (2, 3)
    assert p.a.position(18, 1) == (6, 1)
    assert p.b.position(17, 2) == (5, 2)
    assert p.c.position(19, 5) == (7, 5)  # .f16: row lane % 4 + 4, column i
    assert p.d.position(19, 5) == (5, 7)  # .f32: row (19 & 1) + (5 & 2) + 4, column 4 + 2 + 1
    assert p.d.position(4, 0) == (8, 8)  # the second of the four products


PRODUCTS = [spec for name in ("mma", "wmma") for spec in FORMS[name] if spec.syntax.count("ctype")]


@pytest.mark.parametrize("spec", PRODUCTS)
def test_every_element_has_a_holder(spec) -> None:
    parts = [s.choices[0] for s in spec.slots if not s.optional]
    product = product_of(decode(".".join((spec.name, *parts))))
    for fragment in (product.a, product.b, product.c, product.d):
        assert len(fragment.holders) == _size(fragment)


def _size(fragment: Fragment) -> int:
    """Elements in the matrix; of the four products of m8n8k4, those that are any product's."""
    area = fragment.rows * fragment.columns
    return area // 4 if (fragment.rows, fragment.columns) == (32, 32) else area
