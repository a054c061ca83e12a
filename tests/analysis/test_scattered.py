"""Registers whose lanes hold unrelated values, of small programs worked out by hand."""

from __future__ import annotations

import pytest

from warploom.analysis.scattered import scattered_registers
from warploom.analysis.shape_transfer import WarpLayout
from warploom.analysis.uniformity import shapes_of
from warploom.program.build import build
from warploom.ptx.parser import parse

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
DECLARED = (
    ".reg .pred p, q; .reg .b32 i, u, a, b, c, d; .reg .b64 x, y, z; .reg .f32 f, g;"
    ".shared .b32 counter;"
)
BEGIN = "ld.param.u64 x, [buffer]; ld.param.u32 u, [count]; mov.u32 i, %tid.x;"
"""`x` and `u` are uniform, `i` rises by one from lane to lane."""

GATHER = "mul.wide.u32 y, i, 4; add.s64 y, x, y; ld.global.u32 a, [y];"
"""`a` is what each lane loads from a place of its own."""


def scattered(body: str, warp_layout: WarpLayout = WarpLayout.LINE) -> set[str]:
    """Returns the scattered registers of a kernel with this body."""
    head = f"{HEAD}.entry k(.param .u64 buffer, .param .u32 count)"
    program = build(parse(f"{head} {{ {DECLARED} {BEGIN} {body} }}"), "k")
    shapes = shapes_of(program, warp_layout)
    lasting = {r: shape for r, shape in shapes.by_register.items() if r in shapes.lasting}
    return {register.name for register in scattered_registers(program, warp_layout, lasting)}


def test_what_lanes_load_from_places_of_their_own_is_scattered() -> None:
    assert scattered(GATHER) == {"a"}


def test_so_is_all_that_is_computed_of_it() -> None:
    chain = "shr.u32 b, a, 5; mul.wide.u32 z, b, 4; add.s64 z, z, x; setp.lt.u32 p, a, u;"
    assert scattered(GATHER + chain) == {"a", "b", "z", "p"}


def test_what_data_choose_is_scattered() -> None:
    assert scattered(f"{GATHER} setp.eq.u32 p, a, 0; selp.b32 b, i, u, p;") == {"a", "p", "b"}
    assert scattered(f"{GATHER} setp.eq.u32 p, a, 0; @p mov.b32 b, u;") == {"a", "p", "b"}


def test_what_all_lanes_load_from_one_place_is_not() -> None:
    assert scattered("ld.global.u32 a, [x]; mul.wide.u32 y, a, 4; ld.global.u32 b, [y];") == set()


def test_nor_what_is_loaded_at_a_quotient_of_the_index() -> None:
    """Long runs of lanes load one value: row pointers of a warp a row."""
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
def test_what_keeps_strides_is_not_but_what_is_loaded_there_is(made: str) -> None:
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
def test_what_breaks_strides_is_scattered_unless_lanes_agree(made: str) -> None:
    assert scattered(made) == {"b"}
    assert scattered(made.replace(", i,", ", u,").replace(", i;", ", u;")) == set()


def test_results_of_atomics_are_scattered() -> None:
    assert scattered("atom.shared.add.u32 a, [counter], 1; atom.global.inc.u32 b, [x], 9;") == {
        "a",
        "b",
    }


def test_a_float_that_is_rounded_is_scattered() -> None:
    body = "cvt.rn.f32.u32 f, i; mul.f32 g, f, 0f3FC00000; cvt.rzi.s32.f32 b, g;"
    assert scattered(body) == {"b"}
    assert scattered(body.replace("mul.f32", "div.rn.f32")) == {"b"}


def test_formats_narrower_than_a_type_are_no_integers() -> None:
    assert scattered(".reg .b16 h; cvt.rn.f32.u32 f, i; cvt.rn.bf16.f32 h, f;") == set()


def test_all_writers_count_whatever_their_order() -> None:
    """A list that each lane follows: its first place is uniform, the next ones are loaded."""
    loop = (
        "mov.b32 c, u; mov.b32 b, 0;"
        "L: mad.wide.u32 z, c, 4, y; ld.global.u32 c, [z]; add.s32 b, b, 1;"
        "setp.ne.s32 q, c, 0; @q bra L;"
    )
    assert scattered("add.s64 y, x, 8;" + loop) == set()
    strided = "mul.wide.u32 y, i, 4; add.s64 y, y, x;"
    assert scattered(strided + loop) == {"c", "z", "q"}


def test_an_index_of_rows_is_one_value_in_each_run() -> None:
    load = "mov.u32 b, %tid.y; mul.wide.u32 y, b, 4; add.s64 y, y, x; ld.global.u32 c, [y];"
    assert scattered(load, WarpLayout.ROWS) == set()
    assert scattered(load, WarpLayout.ANY) == {"c"}
