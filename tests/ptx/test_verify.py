"""Which modules are legal PTX: PTX ISA, "Type Information for Instructions and Operands"."""

from pathlib import Path

import pytest

from warploom.core.errors import PtxSyntaxError
from warploom.ptx.parser import parse
from warploom.ptx.verify import verify

SAMPLES = Path(__file__).parent / "samples"
HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
DECLARED = """
.global .u32 g; .const .u32 c; .shared .u32 s;
.func callee(.param .b32 a) { .reg .b32 %r<2>; LINE2 ret; }
.func (.param .b32 r) gives() { ret; }
.entry other() { ret; }
.entry k(.param .u64 p)
{
.reg .pred %p<3>; .reg .b16 %h<3>; .reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .u32 %u<3>;
.reg .f32 %f<5>; .reg .f64 %fd<2>; .local .u32 l; .param .b32 x; .param .b64 y;
proto: .callprototype _ (.param .b32 _);
Lx:
LINE
}
"""
LINE = (HEAD + DECLARED).split("\n").index("LINE") + 1


def text(line: str, line2: str = "") -> str:
    return (HEAD + DECLARED).replace("LINE2", line2).replace("LINE", line)


@pytest.mark.parametrize("name", ["mixed", "calls"])
def test_what_nvrtc_writes_is_legal(name: str) -> None:
    verify(parse((SAMPLES / f"{name}.ptx").read_text("utf-8")))


@pytest.mark.parametrize(
    "line",
    [
        "add.s32 %r1, %u1, 4294967295;",
        "add.s32 %r1, %r1, -2147483648;",
        "add.s32 %r1, %r1, 0xFFFFFFFFFFFFFFFF;",
        "and.b16 %h1, %h1, 255;",
        "mov.b32 %r1, 0f3F800000;",
        "mov.b32 %r1, %f1;",
        "add.f32 %f1, %r1, 1.5;",
        "ld.global.u8 %h1, [%rd1];",
        "ld.global.u8 %rd1, [g];",
        "ld.global.f32 %f1, [g+4];",
        "ld.u32 %r1, [g];",
        "ld.const.u32 %r1, [c];",
        "ld.param.u64 %rd1, [p];",
        "st.param.b32 [x], %r1;",
        "st.local.u32 [l], %r1;",
        "st.shared.u16 [%r1], %r2;",
        "ld.global.v4.f32 {%f1, %f2, _, %f3}, [%rd1];",
        "st.global.v2.b32 [%rd1], {%r1, 7};",
        "mov.b64 %rd1, {%r1, %f1};",
        "mov.b32 {%h1, _}, %r1;",
        "mov.u64 %rd1, g+4;",
        "mov.u64 %rd1, callee;",
        "cvta.global.u64 %rd1, g;",
        "cvta.shared.u64 %rd1, s;",
        "cvt.u32.u8 %r1, %r2;",
        "cvt.rn.f32.s32 %f1, %r1;",
        "setp.lt.s32 %p1|%p2, %r1, 3;",
        "setp.lt.and.s32 %p1, %r1, 3, !%p2;",
        "shfl.sync.down.b32 %r1|%p1, %r2, 4, 31, -1;",
        "mul.wide.u32 %rd1, %r1, 4;",
        "mov.u32 %r1, %tid.x;",
        "mov.pred %p1, 0;",
        "bar.sync 0;",
        "bar.sync 1, 64;",
        "@%p1 bra Lx;",
        "call callee, (x);",
        "call callee, (%r1);",
        "call callee, (5);",
        "call (x), gives;",
        "call (%r1), gives, ();",
        "call %rd1, (x), proto;",
    ],
)
def test_legal(line: str) -> None:
    verify(parse(text(line)))


@pytest.mark.parametrize(
    ("line", "offender", "reason"),
    [
        ("add.s32 %r1, %r2;", "add.s32", "takes 3 operands .* not 2"),
        ("bar.sync 0, 1, 2;", "bar.sync", "takes 1 to 2 operands .* not 3"),
        ("ret %r1;", "ret", "takes 0 operands"),
        ("alloca.u64 %rd1, 16, %rd1;", "%rd1", "constant alignment that is a power of two"),
        ("alloca.u64 %rd1, 16, 24;", "24", "constant alignment that is a power of two"),
        ("alloca.u64 %rd1, 16, 16777216;", "16777216", "at most 8388608"),
        (
            "setmaxnreg.inc.sync.aligned.u32 %r1;",
            "%r1",
            "a constant from 24 to 256 that is a multiple of 8",
        ),
        (
            "setmaxnreg.inc.sync.aligned.u32 20;",
            "20",
            "a constant from 24 to 256 that is a multiple of 8",
        ),
        (
            "setmaxnreg.dec.sync.aligned.u32 264;",
            "264",
            "a constant from 24 to 256 that is a multiple of 8",
        ),
        ("@%r1 ret;", "%r1", "a guard must be a predicate"),
        ("add.s32 %rd1, %r1, 1;", "%rd1", "takes d as .s32"),
        ("add.s32 %r1, %h1, 1;", "%h1", "is a .b16 register"),
        ("add.s32 %r1, %f1, 1;", "%f1", "is a .f32 register"),
        ("add.s32 %r1, %p1, 1;", "%p1", "is a .pred register"),
        ("add.f32 %f1, %u1, 0f00000000;", "%u1", "is a .u32 register"),
        ("setp.eq.s32 %r1, %r2, 3;", "%r1", "takes p as .pred"),
        ("cvt.rzi.u32.f32 %r1, %fd1;", "%fd1", "is a .f64 register"),
        ("ld.global.u64 %r1, [g];", "%r1", "takes d as .u64"),
        ("add.s32 %r1, %r1, 4294967296;", "4294967296", "does not fit into .s32"),
        ("add.s32 %r1, %r1, -2147483649;", "-2147483649", "does not fit"),
        ("add.s32 %r1, %r1, 1.5;", "1.5", "cannot be a float"),
        ("add.f32 %f1, %f1, 1;", "1", "must be a floating-point number"),
        ("mov.b16 %h1, 0f3F800000;", "0f3F800000", "cannot be a float"),
        ("add.s32 7, %r1, 1;", "7", "operand d cannot be written"),
        ("add.s32 %tid.x, %r1, 1;", "%tid.x", "operand d cannot be written"),
        ("add.s32 %r1, _, 1;", "_", "operand a cannot be read"),
        ("add.s32 %r1, g, 1;", "g", "operand a cannot be read"),
        ("add.s32 %r1, [g], 1;", "[g]", "operand a cannot be read"),
        ("add.s32 %r1|%p1, %r2, 1;", "%r1|%p1", "does not support a pair"),
        ("setp.lt.s32 %p1|%r1, %r1, 3;", "%r1", "is a .b32 register"),
        ("mov.u64 %rd1, %tid.x;", "%tid.x", "`%tid.x` is .u32"),
        ("ld.global.u32 %r1, g;", "g", "requires an address"),
        ("ld.global.u32 %r1, [%h1];", "%h1", "cannot hold an address"),
        ("ld.global.u32 %r1, [%fd1];", "%fd1", "cannot hold an address"),
        ("ld.global.u32 %r1, [s];", "s", "is in .shared memory"),
        ("ld.u32 %r1, [c];", "c", "write `ld.const`"),
        ("ld.global.u32 %r1, [Lx];", "Lx", "is not a variable"),
        ("cvta.global.u64 %rd1, s;", "s", "is in .shared memory"),
        ("st.param.u64 [p], %rd1;", "p", "can only be read"),
        ("st.param.b32 [x], %r1; ld.param.b32 %r1, [x];", "x", "no call returns a result"),
        ("mov.u64 %rd1, Lx;", "Lx", "has no address"),
        ("mov.b16 %h1, g;", "g", "does not fit"),
        ("ld.global.v2.f32 %f1, [g];", "%f1", "requires 2 elements"),
        ("ld.global.v2.f32 {%f1, %f2, %f3}, [g];", "{%f1, %f2, %f3}", "requires 2 elements"),
        ("ld.global.f32 {%f1, %f2}, [g];", "{%f1, %f2}", "without braces"),
        ("mov.b64 %rd1, {%r1, %r2, %r3};", "{%r1, %r2, %r3}", "cannot pack"),
        ("mov.b64 %rd1, {%r1, %rd2};", "%rd2", "is a .b64 register"),
        ("bra g;", "g", "must be a label"),
        ("call callee, ();", "call", "has 1 arguments, but the call has 0"),
        ("call callee, (y);", "y", "does not match the declared .b32 a"),
        ("call callee, (s);", "s", "does not match"),
        ("call callee, (%rd1);", "%rd1", "does not match"),
        ("call (x), callee, (x);", "(x)", "has 0 results"),
        ("call other;", "other", "cannot be called, only launched"),
        ("call g;", "g", "is not a function"),
        ("call %rd1;", "%rd1", "requires a .callprototype"),
        (".shared .u32 inside = 3;", "inside", "cannot have an initial value"),
        (".shared .u32 inside[];", "inside", "has no length"),
        ("ts: .branchtargets g;", ".branchtargets", "is not a label"),
    ],
)
def test_illegal(line: str, offender: str, reason: str) -> None:
    source = text(line)
    with pytest.raises(PtxSyntaxError, match=reason) as caught:
        verify(parse(source))
    span = caught.value.span
    assert span.line == LINE
    assert line[span.column - 1 : span.column - 1 + span.length] == offender


def test_a_function_may_not_write_what_it_is_given() -> None:
    with pytest.raises(PtxSyntaxError, match="can only be read"):
        verify(parse(text("ret;", "st.param.b32 [a], %r1;")))


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (".global .u32 g; .global .u32 g;", "defined twice"),
        (".func f() { ret; } .func f() { ret; }", "defined twice"),
        (".entry k(.shared .u32 x) { ret; }", "cannot be in .shared"),
        (".local .u32 x;", "cannot be declared at module scope"),
        (".entry (.param .b32 r) k() { ret; }", "cannot return a value"),
        (".entry k() .noreturn { trap; }", "found `.noreturn`"),
        (".global .pred g[1] = {1};", "`g` is a predicate; a predicate must be in a register"),
        (".shared .u32 s = 1;", "cannot have an initial value"),
    ],
)
def test_illegal_declarations(module: str, reason: str) -> None:
    with pytest.raises(PtxSyntaxError, match=reason):
        verify(parse(HEAD + module))


def test_a_declaration_may_come_beside_its_definition() -> None:
    declared = ".extern .global .u32 g; .global .u32 g = 3; .func f(); .func f() { ret; }"
    module = parse(HEAD + declared)
    verify(module)
    assert [v.name for v in module.variables] == ["g", "g"]
