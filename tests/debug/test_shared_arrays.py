"""Types of shared variables, as their source declares them."""

from __future__ import annotations

import pytest

from warploom.debug.shared_arrays import array_type, declared_arrays

CONSTANTS = """#define T 8
#define WIDE (2 * T)
constexpr int PAD = 1;
static const unsigned ROUND = T;
template <int N>
"""


@pytest.mark.parametrize(
    ("declared", "size", "name"),
    [
        ("float tile[T][T];", 256, "float [8][8]"),
        ("float tile[T][T + PAD];", 288, "float [8][9]"),
        ("double tile[WIDE][ROUND / 2];", 512, "double [16][4]"),
        ("int tile[3][4][5];", 240, "int [3][4][5]"),
        ("float tile[N][4];", 128, "float [8][4]"),  # of the size that it has
        ("float tile[N][N];", 64, "float [16]"),
        ("extern float tile[];", 40, ""),
        ("unsigned char tile[];", 40, "unsigned char [40]"),
        ("int tile;", 4, "int"),
        ("alignas(16) short tile[T];", 16, "short [8]"),
    ],
)
def test_lengths(declared: str, size: int, name: str) -> None:
    own = f"__shared__ {declared}"
    found = declared_arrays(own, CONSTANTS + own)
    made = array_type(found["tile"], size) if name else None
    assert (made.name if made else "") == name


def test_what_does_not_fit_is_no_type() -> None:
    (declared,) = declared_arrays("__shared__ int s[4];", "").values()
    assert array_type(declared, 20) is None
    assert array_type(("Unknown", (4,)), 16) is None
