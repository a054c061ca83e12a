"""Draws PTX texts that are mostly invalid: a valid program in which tokens are dropped, doubled or
replaced by others of their kind."""

from __future__ import annotations

import re

import hypothesis.strategies as st

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
    """Returns the kind of a token, a key of KINDS, or "space"."""
    return next((kind for kind, form in KINDS.items() if re.fullmatch(form, token)), "space")


ALIKE: dict[str, list[str]] = {kind: list(others) for kind, others in OTHERS.items()}
for token in dict.fromkeys(TOKENS):
    ALIKE.setdefault(kind_of(token), []).append(token)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Draws PROGRAM with up to three changes, mostly of one token for another of its kind."""
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
