"""Tests which regions lanes leave separately, and the shapes of registers inside of and after
them."""

from __future__ import annotations

import pytest

from warploom.analysis.uniformity import shapes_of
from warploom.program.build import build
from warploom.program.masked_loops import MaskedRegion, masked_regions
from warploom.program.program import Program
from warploom.ptx.parser import parse
from warploom.shapes.operand_shapes import RegisterShapes
from warploom.shapes.vector_shape import UNIFORM
from warploom.shapes.warp_layout import WarpLayout

KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 words, .param .u32 most)
{{
.reg .u32 %x, %n, %most, %value, %other; .reg .u64 %at, %base; .reg .pred %p, %q;
ld.param.u64 %base, [words];
ld.param.u32 %most, [most];
mov.u32 %x, %tid.x;
mul.wide.u32 %at, %x, 4;
add.u64 %at, %at, %base;
mov.u32 %n, 0;
mov.u32 %value, %x;
mov.u32 %other, 0;
LAP:
{middle}
add.u32 %n, %n, 1;
mul.lo.u32 %value, %value, %value;
setp.lt.u32 %p, %n, {limit};
@%p bra LAP;
OUT:
st.global.u32 [%at], %n;
ret;
}}
"""


def program(middle: str = "", limit: str = "%x") -> Program:
    return build(parse(KERNEL.format(middle=middle, limit=limit)), "k")


def loops(middle: str = "", limit: str = "%x") -> list[MaskedRegion]:
    return list(masked_regions(program(middle, limit)))


def names(registers: frozenset[object]) -> set[str]:
    return {getattr(register, "name") for register in registers}  # noqa: B009


def test_registers_live_after_a_loop_are_merged() -> None:
    (loop,) = loops()
    assert names(loop.written) == {"%n", "%value", "%p"}
    assert names(loop.merged) == {"%n"}
    assert loop.header == 1
    assert loop.blocks == {1}
    assert loop.exits == {1}
    assert loop.point == 2


def test_a_region_may_have_several_exits_to_one_block() -> None:
    (loop,) = loops("setp.eq.u32 %q, %value, 7;\n@%q bra OUT;")
    assert loop.exits == {1, 2}
    assert loop.point == 3


@pytest.mark.parametrize(
    "middle",
    [
        "bar.sync 0;",
        "shfl.sync.down.b32 %other, %n, 1, 31, -1;",
        "vote.sync.any.pred %q, %p, -1;",
        "activemask.b32 %other;",
        "setp.eq.u32 %q, %value, 7;\n@%q exit;",
        "setp.eq.u32 %q, %value, 7;\n@%q ret;",
    ],
)
def test_no_region_where_lanes_wait_or_communicate_or_end(middle: str) -> None:
    assert not loops(middle)


def test_no_region_with_exits_to_different_blocks() -> None:
    elsewhere = "setp.eq.u32 %q, %value, 7;\n@%q bra ELSE;\nbra ON;\nELSE:\nst.global.u32 [%at], 0;"
    assert not loops(f"{elsewhere}\nbra OUT;\nON:")


def test_outer_regions_come_before_inner_ones() -> None:
    step = "add.u32 %other, %other, 1;\nsetp.lt.u32 %q, %other, %x;"
    inner = f"mov.u32 %other, 0;\nMORE:\n{step}\n@%q bra MORE;"
    outside, inside = loops(inner)
    assert inside.blocks < outside.blocks
    assert inside.point in outside.blocks


def uniform_in(shapes: RegisterShapes, block: int) -> set[str]:
    return {r.name for r, shape in shapes.at(block).items() if shape == UNIFORM}


def test_a_counter_is_uniform_in_its_loop_and_varying_after_it() -> None:
    shapes = shapes_of(program(), WarpLayout.LINE)
    assert [loop.point for loop in shapes.masked_regions] == [2]
    assert "%n" in uniform_in(shapes, 1)
    assert "%n" not in uniform_in(shapes, 2)
    assert "%n" not in names(shapes.lasting)


def test_a_loop_with_a_uniform_exit_is_no_masked_region() -> None:
    shapes = shapes_of(program(limit="%most"), WarpLayout.LINE)
    assert not shapes.masked_regions
    assert "%n" in uniform_in(shapes, 2)


def test_block_wide_shapes_hold_everywhere_or_nowhere() -> None:
    known = {r.name for r in shapes_of(program(), WarpLayout.BLOCK).by_register}
    assert "%n" not in known
    assert "%most" in known


def test_registers_written_on_one_path_are_varying_at_reconvergence() -> None:
    middle = (
        "mov.u32 %other, 1;\nsetp.eq.u32 %q, %x, 7;\n@%q bra MEET;\nmov.u32 %other, 2;\nMEET:\n"
        "add.u32 %value, %value, %other;"
    )
    shapes = shapes_of(program(middle, "%most"), WarpLayout.LINE)
    before, path, reconvergence = 1, 2, 3
    assert "%other" in uniform_in(shapes, before)
    assert "%other" not in uniform_in(shapes, path) | uniform_in(shapes, reconvergence)


JUMP = """
setp.ge.u32 %q, %x, 7;
@%q bra OVER;
mov.u32 %other, 1;
setp.eq.u32 %p, %x, %value;
@%p bra OVER;
mul.lo.u32 %value, %other, 3;
IN:
add.u32 %other, %other, 1;
setp.lt.u32 %p, %other, 9;
@%p bra IN;
OVER:
st.global.u32 [%at], %value;
"""


def test_a_branch_skips_a_region() -> None:
    """Block 1 skips blocks 2 to 4. The loop of block 4 has the same exit: it is part of the
    region."""
    outer, skipped = loops(JUMP)
    assert outer.blocks == {1, 2, 3, 4, 5}
    assert skipped.header == 1
    assert skipped.blocks == {1, 2, 3, 4}
    assert skipped.exits == {1, 2, 4}
    assert skipped.point == 5
    assert names(skipped.merged) == {"%value"}


def test_predicated_blocks_are_no_regions() -> None:
    (loop,) = loops("setp.ge.u32 %q, %x, 7;\n@%q bra OVER;\nmov.u32 %other, 1;\nOVER:")
    assert loop.exits == {3}
