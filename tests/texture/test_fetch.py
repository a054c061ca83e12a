"""Checks texture fetches against tables that follow from the formulas of the programming guide.

T = (10, 20, 40, 80) along x, weights with 8 fraction bits (CUDA C++ Programming Guide, "Texture
Fetching").
"""

from __future__ import annotations

import numpy as np
import pytest

from warploom.cost.fields import CostRecord
from warploom.texture.axes import axis_texels, cube_face, log2_of
from warploom.texture.descriptors import (
    BORDERED,
    CLAMP,
    CLAMP_OGL,
    LINEAR,
    MIRROR,
    NORMALIZED,
    NORMALIZED_TEXELS,
    S16,
    U8,
    WRAP,
    TexelIssue,
)
from warploom.texture.texels import (
    count_sector,
    float_bits,
    half_to_single,
    linear_color,
    read_bytes,
    signed_value,
    single_to_half,
    write_component,
)

T = (10, 20, 40, 80)
NAN, INFINITY = float("nan"), float("inf")


def fetch_at(x: float, mode: int, flags: int) -> float:
    """Returns T at x, filtered of one or two texels; the border is 0."""
    left, right, weight = axis_texels(x, 0.0, len(T), mode, flags & NORMALIZED, flags)
    first, second = (T[i] if i >= 0 else 0 for i in (left, right))
    return ((256 - weight) * first + weight * second) / 256


@pytest.mark.parametrize(
    ("mode", "flags", "x", "value"),
    [
        # Nearest point: T[floor(x)], outside the first or the last.
        *((CLAMP, 0, x, v) for x, v in ((-1, 10), (0, 10), (0.99, 10), (1, 20), (3.5, 80))),
        *((CLAMP, 0, x, v) for x, v in ((4, 80), (1e30, 80), (-INFINITY, 10), (INFINITY, 80))),
        (CLAMP, 0, NAN, 10),
        (CLAMP, NORMALIZED, 0.49, 20),
        (CLAMP, NORMALIZED, 7, 80),
        *((BORDERED, 0, x, v) for x, v in ((-0.01, 0), (0, 10), (3.99, 80), (4, 0), (1e30, 0))),
        # Wrap is frac(x); mirror is frac(x), or 1 - frac(x) where floor(x) is odd.
        *((WRAP, NORMALIZED, x, v) for x, v in ((1.25, 20), (-0.25, 80), (7.6, 40), (-1e-30, 80))),
        *((MIRROR, NORMALIZED, x, v) for x, v in ((1.25, 80), (-0.25, 20), (1.9, 10), (2.3, 20))),
        (WRAP, NORMALIZED, INFINITY, 10),
        (WRAP, 0, 5.0, 80),  # only normalized coordinates repeat
        # Linear: xB = x - 0.5, between T[floor(xB)] and the next.
        *((CLAMP, LINEAR, x, v) for x, v in ((0.5, 10), (1.0, 15), (1.25, 17.5), (3.5, 80))),
        *((CLAMP, LINEAR, x, v) for x, v in ((0, 10), (4, 80), (-9, 10), (1e30, 80))),
        *((BORDERED, LINEAR, x, v) for x, v in ((0, 5), (-0.5, 0), (4, 40), (5, 0))),
        (WRAP, LINEAR | NORMALIZED, 0, 45),  # halfway between the last and the first
        (WRAP, LINEAR | NORMALIZED, 1, 45),
        (MIRROR, LINEAR | NORMALIZED, 0, 10),
        (MIRROR, LINEAR | NORMALIZED, 1.25, 60),
        (CLAMP_OGL, LINEAR, -3, 5),  # held at the edge, which is half border
        # The weight is a multiple of 1/256: a quarter of that is nothing, three quarters are one.
        (CLAMP, LINEAR, 0.5 + 1 / 1024, 10),
        (CLAMP, LINEAR, 0.5 + 3 / 1024, 10 + 10 / 256),
        (CLAMP, LINEAR, 1.5 - 1 / 1024, 20),
    ],
)
def test_texels_along_one_axis(mode: int, flags: int, x: float, value: float) -> None:
    assert fetch_at(x, mode, flags) == value


def test_directions_and_faces() -> None:
    """The largest coordinate selects the face; coordinates are (s / m + 1) / 2 (guide, "Cubemap
    Textures")."""
    assert cube_face(2, -1, 1) == (0, 0.25, 0.75)
    assert cube_face(-2, -1, 1) == (1, 0.75, 0.75)
    assert cube_face(1, 2, -1) == (2, 0.75, 0.25)
    assert cube_face(1, -2, -1) == (3, 0.75, 0.75)
    assert cube_face(1, 1, 2) == (4, 0.75, 0.25)
    assert cube_face(1, 1, -2) == (5, 0.25, 0.25)
    assert cube_face(0, 0, 0)[1:] == (0.5, 0.5)
    assert cube_face(NAN, NAN, NAN)[1:] == (0.5, 0.5)


def test_logarithms_have_nine_bits() -> None:
    assert [log2_of(2.0**n) for n in range(5)] == [0, 1, 2, 3, 4]
    assert log2_of(0.25) == log2_of(NAN) == 0
    assert log2_of(INFINITY) > 1000
    for value in np.geomspace(1, 1e9, 99):
        assert 0 <= np.log2(value) - log2_of(float(value)) < 2.0**-9


def test_half_precision_is_numpys() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16)
    numbers = halves.view(np.float16)
    singles = numbers.astype(np.float32).view(np.uint32).tolist()
    for half in range(0, 1 << 16, 7):
        number = not np.isnan(numbers[half])
        assert half_to_single(half) == (singles[half] if number else 0x7FFFFFFF)
    rng = np.random.default_rng(2)
    values = rng.standard_normal(3000) * 2.0 ** rng.integers(-30, 20, 3000)
    values = np.append(values, [65519.0, 65520.0, -65520.0, 2.0**-25, 3 * 2.0**-25, 0.0, INFINITY])
    bits = values.astype(np.float32).view(np.uint32).tolist()
    with np.errstate(over="ignore"):
        expected = values.astype(np.float32).astype(np.float16).view(np.uint16).tolist()
    assert [single_to_half(b) for b in bits] == expected
    assert single_to_half(0x7FC00000) == 0x7FFF


def test_components_are_clamped_to_their_format() -> None:
    memory = np.zeros(4, np.uint8)
    for format, word, stored in ((1, -300, -128), (1, 200, 127), (3, -70000, -32768)):
        write_component(memory, 0, format, word & 0xFFFFFFFF, 0)
        size = 1 if format == 1 else 2
        assert signed_value(read_bytes(memory, 0, size), 8 * size) == stored
    assert float_bits(NAN) == 0x7FFFFFFF


def test_floats_become_normalized_components() -> None:
    """PTX ISA, sust.p: a surface of UNORM or SNORM components takes floats. The conversion is that
    of OpenCL C 3.0, 6.15.15.8: times 255 or 32767, to the nearest even, within the range."""
    memory = np.zeros(4, np.uint8)
    cases = ((U8, 0.5, 128), (U8, 2.0, 255), (U8, -1.0, 0), (U8, 0.4 / 255, 0), (U8, NAN, 0))
    for format, value, stored in (*cases, (S16, -2.0, -32767), (S16, 0.25, 8192)):
        write_component(memory, 0, format, float_bits(value), NORMALIZED_TEXELS)
        bits = 8 if format == U8 else 16
        assert read_bytes(memory, 0, bits // 8) == stored & (1 << bits) - 1


def test_colors_in_srgb() -> None:
    """IEC 61966-2-1: 255 is 1, 10 is below the knee (10 / 255 / 12.92), and 188 is about half."""
    memory = np.array([255, 0, 10, 188], np.uint8)
    values = [linear_color(memory, address) for address in range(4)]
    assert values[:2] == [1.0, 0.0]
    assert values[2] == np.float32(10 / 255 / 12.92)
    assert abs(values[3] - 0.5) < 0.003


def test_sectors_are_counted_once() -> None:
    issue = TexelIssue(np.zeros(TexelIssue.WORDS, np.int64), 0)
    record = CostRecord(np.zeros(CostRecord.WORDS, np.int64), 0)
    for address in (0, 31, 32, 96, 128, 4, 130, 4096):
        count_sector(address, issue, record.words)
    assert issue.touched == record.sectors == 5  # 0, 1, 3, 4 and 128
    assert record.lines == 3
