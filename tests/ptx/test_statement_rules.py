"""Rules about instructions as a whole, each in a line that breaks it and one that does not; ptxas,
where it is, says the same of every line."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from needs import NEEDS_PTXAS

from warploom.core.errors import PtxSyntaxError, UnsupportedInstruction
from warploom.host.programs.ptxas import find_tool
from warploom.ptx.parser import parse
from warploom.ptx.verify import verify

HEAD = """.version 9.1
.target sm_90
.address_size 64
.const .u32 table[4]; .global .u32 cell[4];
.func (.param .b32 y) f(.param .b32 x) { ret; }
.visible .entry k(.param .u64 p, .param .align 8 .b8 w[16])
{
.reg .b32 r<4>; .reg .u32 u<3>; .reg .b64 a<3>; .reg .f64 d; .reg .f32 g<3>; .reg .pred q<3>;
.reg .b16 h<3>; .reg .f16x2 x; .reg .f16 e; .local .u32 own; .shared .align 8 .u32 s[4];
"""

BROKEN = {
    "bar.sync 16;": "barriers 0 to 15",
    "barrier.arrive 1, 33;": "33 is not a multiple of 32",
    "bar.sync -1;": "no barrier -1",
    "st.global.f64 [a1], d, a2;": "requires `.L2::cache_hint`",
    "ld.global.L2::cache_hint.u32 r1, [a1];": "requires a cache policy",
    "atom.global.add.u32 r1, [a1], r2, a2;": "requires `.L2::cache_hint`",
    "ld.volatile.param.u64 a1, [p];": "`.param` is not valid here",
    "ld.relaxed.gpu.const.u32 r1, [table];": "`.const` is not valid here",
    "st.release.gpu.local.u32 [own], r1;": "`.local` is not valid here",
    "{ .param .b32 i; .param .b32 o; @q1 st.param.b32 [i], r1; call (o), f, (i); }": "not have a",
    "st.global.v2.u32 [a1], {r1, a2};": "elements of a vector must have the same type",
    "st.global.v2.b32 [a1], {u1, g1};": "elements of a vector must have the same type",
    "add.f16x2 g1, g2, g2;": "takes d as .f16x2",
    "add.s16x2 u1, u2, u2;": "takes d as .s16x2",
    "fma.rn.bf16x2 x, x, x, x;": "takes d as .bf16x2",
    "add.bf16 e, e, e;": "takes d as .bf16",
    "mov.f32 g1, %tid.x;": "only mov and integer cvt read special registers",
    "mov.b32 r1, {%tid.x, %tid.y};": "the vector element is .b16",
    "mov.u32 _, r1;": "needs a register for its result",
    "ld.global.u8 _, [a1];": "needs a register for its result",
    "ld.global.v2.u32 {_, _}, [a1];": "needs a register for its result",
    "shfl.sync.idx.b32 _|q1, r1, 0, 31, -1;": "needs a register for its result",
}
SOUND = (
    *("bar.sync 15;", "barrier.arrive 1, 64;", "st.global.L2::cache_hint.f64 [a1], d, a2;"),
    *("ld.volatile.local.u32 r1, [own];", "ld.relaxed.gpu.shared.u32 r1, [s];"),
    "{ .param .b32 i; .param .b32 o; st.param.b32 [i], r1; @q1 call (o), f, (i); }",
    *("st.global.v2.b32 [a1], {r1, g1};", "st.global.v2.u8 [a1], {r1, r2};"),
    *("add.f16x2 r1, r2, r3;", "add.f16x2 x, x, x;", "add.bf16 h1, h1, h2;"),
    *("mov.b32 g1, %tid.x;", "mov.b64 a1, {%tid.x, %tid.y};", "atom.global.add.u32 _, [a1], r1;"),
    *("setp.eq.u32 _|q1, r1, r2;", "ld.global.v2.u32 {r1, _}, [a1];", "elect.sync _|q1, -1;"),
    *("shfl.sync.idx.b32 r1|_, r1, 0, 31, -1;", "lop3.or.b32 _|q1, r1, r2, r3, 1, q2;"),
)


def module(line: str) -> str:
    return f"{HEAD}{line}\nret;\n}}\n"


@pytest.mark.parametrize(("line", "message"), BROKEN.items())
def test_what_ptxas_refuses_is_refused(line: str, message: str) -> None:
    with pytest.raises((PtxSyntaxError, UnsupportedInstruction), match=re.escape(message)):
        verify(parse(module(line)))


@pytest.mark.parametrize("line", SOUND)
def test_what_ptxas_takes_is_taken(line: str) -> None:
    verify(parse(module(line)))


@NEEDS_PTXAS
def test_ptxas_says_the_same(tmp_path: Path) -> None:
    ptxas, file = find_tool("ptxas"), tmp_path / "line.ptx"
    assert ptxas is not None
    for line in (*BROKEN, *SOUND):
        file.write_text(module(line), encoding="utf-8")
        command = [ptxas, "-arch", "sm_90", file, "-o", tmp_path / "out"]
        done = subprocess.run(command, capture_output=True, check=False, text=True)
        assert (done.returncode == 0) is (line in SOUND), (line, done.stderr)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".version 8.0\n.target sm_1025\n", "there is no target sm_1025"),
        (".version 8.0\n.target sm_90\n.address_size 64\n.address_size 64\n", "occurs twice"),
        (".version 8.0\n.target sm_90\n.global .align 4294967296 .b8 c;\n", "fits in 32 bits"),
    ],
)
def test_directives_that_ptxas_refuses_are_refused(text: str, message: str) -> None:
    with pytest.raises(PtxSyntaxError, match=message):
        parse(text)
