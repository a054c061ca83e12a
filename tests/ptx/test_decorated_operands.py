"""Operands that no text shows, parts of registers, and operands in braces."""

from __future__ import annotations

import pytest

from warploom.core.errors import PtxSyntaxError, UnsupportedInstruction
from warploom.isa.instruction import Instruction
from warploom.program.uses import reads, writes
from warploom.ptx.module import Module
from warploom.ptx.parser import parse
from warploom.ptx.printer import print_module
from warploom.ptx.verify import verify


def module(line: str) -> Module:
    text = f"""
.version 9.0
.target sm_100
.address_size 64
.entry k()
{{
.reg .b16 %h<3>; .reg .b32 %r<6>; .reg .f32 %f<4>;
{line}
ret;
}}
"""
    found = parse(text)
    verify(found)
    return found


def first(line: str) -> Instruction:
    return module(line).functions[0].instructions[0]


def test_the_carry_flag_is_read_and_written_like_a_register() -> None:
    made = first("addc.cc.u32 %r0, %r1, %r2;")
    assert [r.name for r in writes(made)] == ["%r0", "%cc"]
    assert [r.name for r in reads(made)] == ["%r1", "%r2", "%cc"]
    assert len(made.written) == 3
    assert "%cc" in {r.name for r in module("add.cc.u32 %r0, %r1, %r2;").functions[0].registers}


def test_parts_and_signs_of_operands_belong_to_the_operation() -> None:
    made = first("vmad.s32.u32.u32.sat %r0, -%r1.b2, %r2.h1, %r3;")
    assert made.operation.modifiers["asel"] == "a=b2"
    assert made.operation.modifiers["bsel"] == "b=h1"
    assert made.operation.opcode == "vmad.s32.u32.u32.sat"
    assert [r.name for r in reads(made)] == ["%r1", "%r2", "%r3"]


@pytest.mark.parametrize(
    "line",
    [
        "add.cc.u32 %r0, %r1, %r2; addc.u32 %r3, %r4, %r5;",
        "vadd.u32.u32.s32.sat %r0.b1, %r1.b3, %r2.h0, %r3;",
        "vmad.s32.u32.u32.shr7 %r0, %r1, %r2.b0, -%r3;",
        "vadd4.u32.u32.u32.add %r0.b20, %r1.b7654, %r2, %r3;",
        "cvt.rs.satfinite.e4m3x4.f32 %r0, {%f0, %f1, %f2, %f3}, %r1;",
        "elect.sync _|%p, -1;",
    ],
)
def test_what_is_printed_parses_to_the_same(line: str) -> None:
    found = module(f".reg .pred %p; {line}")
    assert parse(print_module(found)) == found


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ("vadd.u32.u32.u32 %r0, %r1.b5, %r2;", UnsupportedInstruction, "plain register"),
        ("add.u32 %r0, %r1.b0, %r2;", UnsupportedInstruction, "plain register"),
        ("add.u32 %r0, -%r1, %r2;", UnsupportedInstruction, "plain register"),
        ("add.cc.u32 %r0, %r1;", PtxSyntaxError, "takes 3 operands"),
        ("add.u16x2 %r0, %r1, 7;", PtxSyntaxError, "must be a register"),
        ("add.f16 %h0, %h1, 0x3C00;", PtxSyntaxError, "must be a register"),
        ("cvt.rs.satfinite.e4m3x4.f32 %r0, {%f0, %f1}, %r1;", PtxSyntaxError, "4 elements"),
        ("setp.lt.f16 %p|%q, %h0, %h1;", PtxSyntaxError, "not support a pair"),
    ],
)
def test_what_cannot_stand_there(line: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        module(f".reg .pred %p, %q; {line}")
