"""Tests which bits may be 1 where lane runs begin, and the shapes of masks that follow."""

from __future__ import annotations

import pytest

from warploom.analysis.uniformity import shapes_of
from warploom.core.types import S32, U32
from warploom.devices.catalog import catalog
from warploom.isa.terms import Term, argument, constant
from warploom.program.build import build
from warploom.program.program import Program
from warploom.ptx.parser import parse
from warploom.shapes.vector_shape import UNIFORM, VARYING, ShapedValue, TermShapes, VectorShape
from warploom.shapes.warp_layout import MOST_THREADS, WarpLayout, warp_layout_of

RISING, ROWS = VectorShape(1, 1), VectorShape(4, 1)
RANK = """
mov.u32 %w, %ntid.x;
mov.u32 %y, %tid.y;
mov.u32 %x, %tid.x;
mad.lo.s32 %rank, %y, %w, %x;
"""


def program(body: str) -> Program:
    return build(
        parse(f"""
.version 8.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 buffer)
{{
.reg .u32 %x, %y, %w, %rank, %a, %b, %c, %d, %r;
.reg .u64 %base, %wide;
.reg .pred %p;
ld.param.u64 %base, [buffer];
{body}
st.global.u32 [%base], %r;
ret;
}}
"""),
        "k",
    )


def shape_of(body: str, layout: WarpLayout) -> VectorShape:
    shapes = shapes_of(program(body), layout).by_register
    return next((shape for register, shape in shapes.items() if register.name == "%r"), VARYING)


@pytest.mark.parametrize(
    ("mask", "line", "rows_of_8"),
    [
        ("and.b32 %r, %rank, 31;", RISING, ROWS),
        ("and.b32 %r, %rank, 63;", RISING, ROWS),
        ("rem.u32 %r, %rank, 32;", RISING, ROWS),
        ("rem.s32 %r, %rank, 32;", RISING, ROWS),
        ("bfe.u32 %r, %rank, 0, 5;", RISING, ROWS),
        ("and.b32 %r, %rank, -32;", UNIFORM, VectorShape(4)),
        ("shr.u32 %r, %rank, 5;", UNIFORM, VectorShape(4)),
        ("shr.s32 %r, %rank, 31;", UNIFORM, VectorShape(4)),
        ("div.s32 %r, %rank, 32;", UNIFORM, VectorShape(4)),
        ("and.b32 %r, %rank, 7;", VARYING, ROWS),
        ("shr.u32 %r, %rank, 3;", VARYING, VectorShape(4)),
        ("and.b32 %r, %rank, 30;", VARYING, VARYING),
        ("rem.u32 %r, %rank, 31;", VARYING, VARYING),
        ("div.u32 %r, %rank, 33;", VARYING, VARYING),
        ("shl.b32 %a, %rank, 2; and.b32 %r, %a, 124;", VectorShape(1, 4), VectorShape(4, 4)),
        ("shl.b32 %a, %rank, 2; shr.u32 %r, %a, 1;", VectorShape(1, 2), VectorShape(4, 2)),
        ("shl.b32 %a, %rank, 2; and.b32 %r, %a, 3;", UNIFORM, VectorShape(4)),
        ("add.u32 %a, %rank, 64; and.b32 %r, %a, 31;", RISING, ROWS),
        ("add.u32 %a, %rank, 8; and.b32 %r, %a, 31;", VARYING, ROWS),
        ("add.u32 %a, %rank, 1; and.b32 %r, %a, 31;", VARYING, VARYING),
        ("sub.u32 %a, 32, %rank; and.b32 %r, %a, 31;", VARYING, VARYING),
    ],
)
def test_masks_of_thread_ranks_have_shapes(
    mask: str, line: VectorShape, rows_of_8: VectorShape
) -> None:
    assert shape_of(RANK + mask, WarpLayout.LINE) == line
    assert shape_of(RANK + mask, WarpLayout.ROWS_OF_8) == rows_of_8
    assert shape_of(RANK + mask, WarpLayout.ANY) == VARYING


def test_the_remainder_of_a_signed_rank_is_affine() -> None:
    """A compiler adds the divisor less one to negative dividends; ranks are none."""
    rounding = "shr.s32 %a, %rank, 31; shr.u32 %b, %a, 27; add.s32 %d, %rank, %b;"
    rounding += "and.b32 %c, %d, -32;"
    assert shape_of(f"{RANK}{rounding} sub.s32 %r, %rank, %c;", WarpLayout.LINE) == RISING
    # What is loaded may be negative: only the lowest bits of its sum with a rank are its own.
    loaded = "ld.global.u32 %a, [%base]; add.s32 %rank, %rank, %a;"
    assert shape_of(f"{RANK}{loaded}{rounding} mov.u32 %r, %c;", WarpLayout.LINE) == VARYING


def test_in_one_line_of_any_length_ranks_are_aligned_in_the_block_only() -> None:
    """A block of 40 threads: its second warp begins at 32; warps of the second block at 40, 72."""
    assert warp_layout_of((40, 1, 1)) is WarpLayout.ONE_LINE
    assert warp_layout_of((64, 1, 1)) is warp_layout_of((64, 2, 1)) is WarpLayout.LINE
    of_grid = "mov.u32 %a, %ctaid.x; mad.lo.u32 %rank, %a, %w, %rank;"
    mask = "and.b32 %r, %rank, 31;"
    assert shape_of(RANK + mask, WarpLayout.ONE_LINE) == RISING
    assert shape_of(RANK + of_grid + mask, WarpLayout.ONE_LINE) == VARYING
    assert shape_of(RANK + of_grid + mask, WarpLayout.LINE) == RISING


def test_layouts_of_a_whole_block_have_no_runs_to_be_aligned() -> None:
    mask = "mov.u32 %x, %tid.x; and.b32 %r, %x, 31;"
    for layout in (WarpLayout.BLOCK, WarpLayout.ALONG_X):
        assert shape_of(mask, layout) == VARYING
    # All rows begin at 0.
    assert shape_of(mask, WarpLayout.IN_ROWS) == VectorShape(1, 1, repeats=2)


def test_writers_are_joined() -> None:
    body = "mov.u32 %r, {0}; setp.lt.u32 %p, %w, 5; @%p shl.b32 %r, %w, 1;"
    assert shape_of(RANK + body.format("%ntid.x"), WarpLayout.LINE).ones == -32
    assert shape_of(RANK + body.format("%ctaid.x"), WarpLayout.LINE).ones == -1


def test_a_counter_of_a_loop_ends_the_analysis() -> None:
    body = "mov.u32 %r, %x; again: add.u32 %r, %r, 32; setp.lt.u32 %p, %w, 64; @%p bra again;"
    assert shape_of(RANK + body, WarpLayout.LINE).ones == -32


def test_a_loaded_value_begins_with_any_bits() -> None:
    """The address is a multiple of 32."""
    body = "shl.b32 %a, %w, 5; cvt.u64.u32 %base, %a; ld.global.u32 %r, [%base];"
    shape = shape_of(RANK + body, WarpLayout.LINE)
    assert (shape, shape.ones) == (UNIFORM, -1)


def test_an_arithmetic_shift_sees_no_sign_inside_of_a_run() -> None:
    """2 ** 27 times the lane: from lane 16 on it is negative."""
    term = Term("ashr", S32, (argument(0, S32), constant(27, U32)))
    assert TermShapes([ShapedValue(VectorShape(1, 1 << 27, 0))]).shape(term) == VARYING
    assert TermShapes([ShapedValue(VectorShape(2, 1 << 27, 0))]).shape(term) == VectorShape(2, 1)


def test_the_window_of_a_space_is_no_multiple() -> None:
    body = "cvta.shared.u64 %base, %wide; cvt.u32.u64 %r, %base;"
    shape = shape_of(f"{RANK} mul.wide.u32 %wide, %w, 4; {body}", WarpLayout.LINE)
    assert (shape, shape.ones) == (UNIFORM, -1)


def test_a_shift_of_a_constant_by_the_lane_is_varying() -> None:
    term = Term("lshr", U32, (constant(1 << 31, U32), argument(0, U32)))
    assert TermShapes([ShapedValue(VectorShape(1, 1, 0))]).shape(term) == VARYING


def test_no_device_has_larger_blocks() -> None:
    for device in catalog().values():
        sides = zip(device.max_block_dims, MOST_THREADS.values(), strict=True)
        assert all(side <= most for side, most in sides)
