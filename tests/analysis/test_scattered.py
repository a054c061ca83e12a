"""Tests which registers hold unrelated values in their lanes, in small programs worked out by
hand."""

from __future__ import annotations

import pytest

from warploom.analysis.scattered import scattered_registers
from warploom.analysis.uniformity import shapes_of
from warploom.program.build import build
from warploom.ptx.parser import parse
from warploom.shapes.warp_layout import WarpLayout

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
DECLARED = (
    ".reg .pred p, q; .reg .b32 i, u, a, b, c, d; .reg .b64 x, y, z; .reg .f32 f, g;"
    ".shared .b32 counter;"
)
BEGIN = "ld.param.u64 x, [buffer]; ld.param.u32 u, [count]; mov.u32 i, %tid.x;"
"""Makes `x` and `u` uniform, and `i` affine<1>."""

GATHER = "mul.wide.u32 y, i, 4; add.s64 y, x, y; ld.global.u32 a, [y];"
"""Makes `a` a value that each lane loads from an address of its own."""


def scattered(body: str, warp_layout: WarpLayout = WarpLayout.LINE) -> set[str]:
    """Returns the scattered registers of a kernel with this body."""
    head = f"{HEAD}.entry k(.param .u64 buffer, .param .u32 count)"
    program = build(parse(f"{head} {{ {DECLARED} {BEGIN} {body} }}"), "k")
    shapes = shapes_of(program, warp_layout)
    lasting = {r: shape for r, shape in shapes.by_register.items() if r in shapes.lasting}
    return {register.name for register in scattered_registers(program, warp_layout, lasting)}


def test_gathered_values_are_scattered() -> None:
    assert scattered(GATHER) == {"a"}


def test_values_computed_from_scattered_ones_are_scattered() -> None:
    chain = "shr.u32 b, a, 5; mul.wide.u32 z, b, 4; add.s64 z, z, x; setp.lt.u32 p, a, u;"
    assert scattered(GATHER + chain) == {"a", "b", "z", "p"}


def test_values_selected_by_scattered_predicates_are_scattered() -> None:
    assert scattered(f"{GATHER} setp.eq.u32 p, a, 0; selp.b32 b, i, u, p;") == {"a", "p", "b"}
    assert scattered(f"{GATHER} setp.eq.u32 p, a, 0; @p mov.b32 b, u;") == {"a", "p", "b"}


def test_uniform_loads_are_not_scattered() -> None:
    assert scattered("ld.global.u32 a, [x]; mul.wide.u32 y, a, 4; ld.global.u32 b, [y];") == set()


def test_loads_at_quotients_of_the_index_are_not_scattered() -> None:
    """Long runs of lanes load one value, such as row pointers with one warp per row."""
    body = "shr.u32 b, i, 5; mul.wide.u32 y, b, 4; add.s64 y, y, x; ld.global.u32 c, [y];"
    assert scattered(f"{body} add.s32 d, c, i;") == set()
    assert scattered(body.replace("shr.u32 b, i, 5", "div.u32 b, i, u")) == set()


@pytest.mark.parametrize(
    "made",
    [
        *("mul.lo.s32 b, i, u;", "shl.b32 b, i, u;", "min.s32 b, i, u;", "max.s32 b, i, 7;"),
        *("rem.u32 b, i, u;", "and.b32 b, i, 12;", "or.b32 b, i, u;", "mad.lo.s32 b, i, u, i;"),
        *(
            "not.b32 b, i;",
            "cvt.u64.u32 y, i; cvt.u32.u64 b, y;",
            "setp.lt.s32 p, i, u; selp.b32 b, i, u, p;",
        ),
    ],
)
def test_strided_values_are_not_scattered_but_loads_at_them_are(made: str) -> None:
    load = "mul.wide.u32 y, b, 4; add.s64 y, y, x; ld.global.u32 c, [y];"
    assert scattered(made + load) == {"c"}


@pytest.mark.parametrize(
    "made",
    [
        *("xor.b32 b, i, u;", "popc.b32 b, i;", "brev.b32 b, i;", "clz.b32 b, i;"),
        *("shfl.sync.bfly.b32 b, i, 1, 31, -1;", "prmt.b32 b, i, u, 0x3210;"),
        "setp.lt.s32 p, i, u; vote.sync.ballot.b32 b, p, -1;",
    ],
)
def test_operations_that_break_strides_scatter_unless_uniform(made: str) -> None:
    assert scattered(made) == {"b"}
    assert scattered(made.replace(", i,", ", u,").replace(", i;", ", u;")) == set()


def test_results_of_atomics_are_scattered() -> None:
    assert scattered("atom.shared.add.u32 a, [counter], 1; atom.global.inc.u32 b, [x], 9;") == {
        "a",
        "b",
    }


def test_rounded_floats_are_scattered() -> None:
    body = "cvt.rn.f32.u32 f, i; mul.f32 g, f, 0f3FC00000; cvt.rzi.s32.f32 b, g;"
    assert scattered(body) == {"b"}
    assert scattered(body.replace("mul.f32", "div.rn.f32")) == {"b"}


def test_formats_narrower_than_a_type_are_no_integers() -> None:
    assert scattered(".reg .b16 h; cvt.rn.f32.u32 f, i; cvt.rn.bf16.f32 h, f;") == set()


def test_all_writers_count_in_any_order() -> None:
    """In a linked list that each lane follows, the first address is uniform, further ones are
    loaded."""
    loop = (
        "mov.b32 c, u; mov.b32 b, 0;"
        "L: mad.wide.u32 z, c, 4, y; ld.global.u32 c, [z]; add.s32 b, b, 1;"
        "setp.ne.s32 q, c, 0; @q bra L;"
    )
    assert scattered("add.s64 y, x, 8;" + loop) == set()
    strided = "mul.wide.u32 y, i, 4; add.s64 y, y, x;"
    assert scattered(strided + loop) == {"c", "z", "q"}


def test_row_indices_are_uniform_in_each_run() -> None:
    load = "mov.u32 b, %tid.y; mul.wide.u32 y, b, 4; add.s64 y, y, x; ld.global.u32 c, [y];"
    assert scattered(load, WarpLayout.ROWS) == set()
    assert scattered(load, WarpLayout.ANY) == {"c"}
