"""Whatever a PTX text says, loading and launching it ends: well, or with an error of Warploom's.

Programs that run are spoilt: tokens are dropped, doubled, changed for others of their kind."""

from __future__ import annotations

import contextlib
import re

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given, settings

import warploom as wl
from warploom.core.errors import PtxError
from warploom.ptx.ir import Module
from warploom.ptx.parser import parse
from warploom.ptx.printer import print_module

PROGRAM = """.version 9.0
.target sm_90
.address_size 64
.global .align 4 .u32 table[4] = {1, 2, 3, 4};
.extern .shared .align 8 .b8 dynamic[];
.const .align 4 .f32 constants[2] = {1.5, 0f3F800000};
.func (.param .b32 r) f(.param .b32 a)
{
  .reg .b32 %x; .reg .pred %p;
  ld.param.b32 %x, [a];
  setp.gt.u32 %p, %x, 3;
  @%p bra END;
  { .param .b32 b; .param .b32 q; add.u32 %x, %x, 1; st.param.b32 [b], %x;
    call (q), f, (b); ld.param.b32 %x, [q]; }
END: st.param.b32 [r], %x;
  ret;
}
.global .align 8 .u64 pointers[2] = {f, table};
.visible .entry k(.param .u64 out) .maxntid 64, 1, 1
{
  .reg .pred %p<4>; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %d<6>;
  .local .align 8 .b8 own[16]; .shared .align 8 .b64 arrived;
  ld.param.u64 %d0, [out];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %d1, %r0, 4;
  add.u64 %d1, %d1, %d0;
  setp.lt.and.u32 %p0|%p1, %r0, 5, !%p2;
  @!%p0 bra ONE;
  ways: .branchtargets ONE, TWO;
  and.b32 %r1, %r0, 1;
  brx.idx %r1, ways;
ONE: atom.global.add.u32 %r2, [%d0], 1;
  activemask.b32 %r7; shfl.sync.up.b32 %r3|%p1, %r0, 1, 0, %r7;
TWO: mov.b64 {%r4, %r5}, %d1;
  mov.u64 %d2, own; cvta.local.u64 %d2, %d2; st.v2.u32 [%d2+8], {%r0, 7};
  ld.const.f32 %f0, [constants+4]; fma.rn.ftz.f32 %f1, %f0, 2.5, -1.0;
  mbarrier.init.shared.b64 [arrived], 1;
  bar.sync 0;
  mov.u64 %d3, pointers; ld.global.u64 %d3, [%d3];
  kind: .callprototype (.param .b32 _) _ (.param .b32 _);
  { .param .b32 a; .param .b32 q; st.param.b32 [a], 2;
    call (q), %d3, (a), kind; ld.param.b32 %r6, [q]; }
  lop3.b32 %r6, %r6, %r0, %r1, 0x96;
  st.global.u32 [%d1], %r6;
  cp.async.ca.shared.global [dynamic], [%d0], 4; cp.async.wait_all;
  ret;
}
"""
HEAD = PROGRAM[: PROGRAM.index(".global")]
TOKENS = re.findall(r"\s+|[.\w$%]+|\S", PROGRAM)
KINDS = {
    "register": r"%\w.*",
    "number": r"\d.*",
    "opcode": r"[a-z]\w*(?:\.\w+)+",
    "name": r"[A-Za-z]\w*",
    "directive": r"\..*",
    "sign": r"\S",
}
OTHERS = {
    "number": ("0", "-1", "7", "33", "4096", "4294967296", "99999999999999999999", "1e999", "0f7"),
    "sign": ("{", "}", "(", ")", "[", "]", "@", "|", "/*", '"', "\x00", "é"),
    "opcode": ("tex.1d.v4.f32.s32", "bar.red.popc.u32", "alloca.u64", "trap", "exit", "call"),
}


def kind_of(token: str) -> str:
    return next((kind for kind, form in KINDS.items() if re.fullmatch(form, token)), "space")


ALIKE: dict[str, list[str]] = {kind: list(others) for kind, others in OTHERS.items()}
for token in dict.fromkeys(TOKENS):
    ALIKE.setdefault(kind_of(token), []).append(token)


@st.composite
def spoilt(draw: st.DrawFn) -> str:
    """The program with up to three changes, mostly of one token for another of its kind."""
    tokens = list(TOKENS)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(tokens) - 1))
        way = draw(st.sampled_from(("change", "change", "change", "drop", "double", "cut")))
        if way == "change":
            tokens[at] = draw(st.sampled_from(ALIKE[kind_of(tokens[at])]))
        elif way == "drop":
            tokens[at] = ""
        elif way == "double":
            tokens[at] *= 2
        else:
            tokens[at:] = ["\n}"] * draw(st.booleans())
        tokens = tokens or [""]
    return "".join(tokens)


WORDS = [*ALIKE["directive"], *ALIKE["name"], *ALIKE["number"], *"{}()[]=,;"]
"""What a text of declarations may be made of."""


def changed(old: str, new: str) -> str:
    assert old in PROGRAM
    return PROGRAM.replace(old, new)


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_every_program_ends(engine: str, random_examples: int) -> None:
    @settings(
        max_examples=random_examples if engine == "reference" else random_examples // 2,
    )
    @given(spoilt())
    @example(PROGRAM)
    @example(changed("own[16]", "own[4294967295]"))
    @example(changed("[%d0], 4; cp", "[%d0], 4096; cp"))
    @example(changed("[%d0], 4; cp", "[%d0], %r0; cp"))
    @example(changed("{f, table}", "{constants, table}"))
    @example(changed("(a), kind;", "(a), ways;"))
    def ends(text: str) -> None:
        gpu = wl.Device("h100", engine=engine, output=lambda text: None)
        with contextlib.suppress(wl.WarploomError):
            module = gpu.compile(text, "ptx")
            for name in module.kernels:
                module[name][1, 40, 0, 64](gpu.zeros(64, np.uint32), max_instructions=800)

    ends()


@settings(max_examples=200)
@given(st.text(max_size=200) | st.lists(st.sampled_from(WORDS)).map(" ".join), st.booleans())
@example("", True)
@example(PROGRAM[len(HEAD) :], True)
def test_any_text_is_ptx_or_an_error_at_a_place_in_it(text: str, headed: bool) -> None:
    """What is PTX says the same when it is printed and read again."""
    whole = (HEAD if headed else "") + text
    module, error = compiled(whole)
    if module is not None:
        assert parse(print_module(module)) == module
    else:
        assert error is not None
        assert 1 <= error.span.line <= whole.count("\n") + 1
        assert error.span.text.content == whole.rstrip("\0")


def compiled(text: str) -> tuple[Module, None] | tuple[None, PtxError]:
    try:
        return wl.Device("a100").compile(text, "ptx").ir, None
    except PtxError as error:
        return None, error


def test_the_program_itself_runs() -> None:
    gpu = wl.Device("h100")
    out = gpu.zeros(64, np.uint32)
    gpu.compile(PROGRAM, "ptx")["k"][1, 40, 0, 64](out)
    assert out.copy_to_host()[39] == 4 ^ 39


def test_a_large_variable_with_few_values_is_loaded() -> None:
    """16 GiB, of which 16 bytes are given."""
    module = wl.Device("h100").compile(changed("table[4]", "table[4294967296]"), "ptx")
    assert module.kernels == ("k",)
