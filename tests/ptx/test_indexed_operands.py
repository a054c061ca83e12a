"""Elements of arrays as operands (PTX ISA, "Arrays as Operands")."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl
from warploom.core.errors import PtxSyntaxError
from warploom.isa.instruction import Address, Instruction, Symbol
from warploom.ptx.parser import parse
from warploom.ptx.printer import print_module
from warploom.ptx.verify import verify

HEAD = """.version 8.0
.target sm_75
.address_size 64
.global .u32 a[10]; .const .u16 half[4]; .global .u32 grid[2][3]; .global .v4 .f32 v[2];
.global .u32 one;
.visible .entry k(.param .u64 out) {
.reg .u16 %h; .reg .pred %p; .reg .b32 %r<4>; .reg .s32 %s; .reg .u64 %d<4>; .reg .f32 %f;
.shared .f64 tile[8];
"""


def instructions(line: str) -> tuple[Instruction, ...]:
    module = parse(f"{HEAD}{line}\n}}\n")
    verify(module)
    assert parse(print_module(module)) == module
    return module.functions[0].instructions


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ld.global.u32 %r0, a[0];", Address(Symbol("a"), 0)),
        ("ld.global.u32 %r0, a[10-1];", Address(Symbol("a"), 36)),
        ("ld.const.u16 %h, half[3];", Address(Symbol("half"), 6)),
        ("ld.shared.f32 %f, tile[2];", Address(Symbol("tile"), 16)),
        ("mov.u64 %d0, a[1];", Symbol("a", 4)),
    ],
)
def test_a_number_in_brackets_counts_elements(line: str, expected: Address | Symbol) -> None:
    (made,) = instructions(line)
    assert made.operands[1] == expected


def test_an_index_in_a_register_is_worked_out_before_and_counts_as_instructions() -> None:
    names = [made.operation.text for made in instructions("@%p st.global.u32 a[%s-1], %r0;")]
    assert names == ["mov.u64", "mad.wide.s32", "st.global.u32"]


@pytest.mark.parametrize(
    "line",
    [
        "ld.global.u32 %r0, grid[1];",
        "ld.global.u32 %r0, v[1];",
        "ld.global.u32 %r0, one[0];",
        "ld.global.u32 %r0, a[%h];",
        "ld.global.u32 %r0, a[%f];",
        "ld.global.u32 %r0, a[%r0*2];",
        "ld.global.u32 %r0, a[1;",
        "ld.global.u32 %r0, a;",
        "add.u64 %d0, a[1], %d1;",
        "mov.b64 %d0, {a[1], %r0};",
        "bra a[1];",
    ],
)
def test_what_is_no_element_is_an_error_in_its_line(line: str) -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        instructions(line)
    assert caught.value.span.line == HEAD.count("\n") + 1


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_elements_are_read_written_and_pointed_to(engine: str) -> None:
    """Thread t copies in[9 - t] to out[t] through `a`, whose elements begin with 100, 101, ..."""
    text = """.version 8.0
.target sm_75
.address_size 64
.global .u32 a[10] = {100, 101, 102, 103, 104, 105, 106, 107, 108, 109};
.visible .entry k(.param .u64 out) {
.reg .u32 %t, %x, %y; .reg .s32 %s; .reg .u64 %o, %e; .reg .pred %p;
.shared .u32 tile[10];
ld.param.u64 %o, [out];
mov.u32 %t, %tid.x;
mad.wide.u32 %o, %t, 4, %o;
neg.s32 %s, %t;
setp.lt.u32 %p, %t, 5;
ld.global.u32 %x, a[%s+9];
st.shared.u32 tile[%t], %x;
@%p st.shared.u32 tile[%t], 7;
mov.u64 %e, a[%t];
ld.global.u32 %y, [%e];
mov.u64 %e, tile[%t];
ld.shared.u32 %x, [%e];
mad.lo.u32 %x, %y, 1000, %x;
st.global.u32 [%o], %x;
ret;
}
"""
    out = np.zeros(10, np.uint32)
    wl.Device(cc="7.5", engine=engine).compile(text, "ptx")["k"][1, 10](out)
    assert out.tolist() == [(100 + t) * 1000 + (7 if t < 5 else 109 - t) for t in range(10)]
