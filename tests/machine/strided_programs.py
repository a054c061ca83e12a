"""Draws kernels whose threads stride through arrays: grid-stride loops, up and down, by index and
by pointer, unrolled, nested, with early exits, over arrays that overlap and that are too short."""

from __future__ import annotations

from hypothesis import strategies as st

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 out,
    .param .s32 count, .param .s32 far)
{
.reg .u32 %t, %g, %n, %m, %all, %at, %k, %far, %sum;
.reg .u64 %a, %b, %c, %out, %o;
.shared .align 4 .b8 tile[1024];
ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; ld.param.u64 %c, [c]; ld.param.u64 %out, [out];
ld.param.s32 %n, [count]; ld.param.s32 %far, [far];
mov.u32 %t, %tid.x; mov.u32 %m, %ntid.x; mov.u32 %g, %ctaid.x;
mad.lo.s32 %at, %g, %m, %t; mov.u32 %all, %nctaid.x; mul.lo.s32 %all, %all, %m;
mov.u32 %sum, 0; mul.wide.u32 %o, %at, 4; add.u64 %o, %out, %o;
"""
LOOP = """{
.reg .u32 %i, %step, %u, %v<4>; .reg .u64 %p, %q, %r, %w, %wide, %j, %z;
.reg .u16 %h; .reg .pred %e, %l, %x, %y;
mov.u32 %i, %at; mov.u32 %step, %all;
mov.u32 %v0, 1; mov.u32 %v1, 2; mov.u32 %v2, 3; mov.u32 %v3, 5;
"""
TAIL = "st.global.u32 [%o], %sum;\nret;\n}\n"

STEPS = (
    "", "", "",
    "mov.s32 %step, {n};",
    "neg.s32 %step, %step; add.s32 %i, %n, %i; sub.s32 %i, %i, %m;",
    "mov.u32 %step, %far;",
    "shl.b32 %i, %i, 1; shl.b32 %step, %step, 1;",
    "mov.u32 %i, %t; mov.s32 %step, 32;",
    "mov.u32 %i, %g; mov.s32 %step, 1;",
)  # fmt: skip
"""How far iterations are apart."""

AT = ("mul.wide.s32 %w, %i, {size};", "mul.wide.u32 %w, %i, {size};",
      "cvt.s64.s32 %w, %i; shl.b64 %w, %w, {log};", "mul.lo.s64 %w, %j, {size};")  # fmt: skip

BODY = (
    *["ld.global.u32 {v}, [{p}+{o}];"] * 4,
    *["ld.global.u32 {v}, [{p}+{o}]; add.u32 %sum, %sum, {v};"] * 4,
    "ld.global.u32 {v}, [{p}]; ld.global.u32 {u}, [{q}]; xor.b32 {v}, {v}, {u};"
    " st.global.u32 [{r}], {v};",
    *["st.global.u32 [{r}+{o}], {v};"] * 4,
    "ld.global.v2.u32 {{{v}, {u}}}, [{p}]; add.u32 %sum, {u}, %sum;",
    "ld.global.u16 %h, [{p}+{o}]; cvt.u32.u16 {v}, %h;",
    "st.global.u8 [{r}], {v};",
    "ld.global.u32 {v}, [%a+{o}]; add.u32 %sum, %sum, {v};",
    "and.b32 {u}, {v}, 60; mul.wide.u32 %z, {u}, 1; add.u64 %z, %a, %z; ld.global.u32 {v}, [%z];",
    "atom.global.add.u32 {u}, [%b], {v};",
    "red.global.add.u32 [{r}], 1;",
    "setp.gt.u32 %x, {v}, {u}; @%x add.u32 %sum, %sum, 7; @%x ld.global.u32 {v}, [{q}];",
    "and.b32 {u}, %i, 31; shl.b32 {u}, {u}, 2; mov.u32 %k, tile; add.u32 {u}, {u}, %k;"
    " st.shared.u32 [{u}], {v}; ld.shared.u32 {v}, [{u}];",
    "shfl.sync.bfly.b32 {u}, {v}, 1, 31, -1; add.u32 %sum, %sum, {u};",
    "add.s32 %step, %step, 1;",
    "mul.lo.u32 %sum, %sum, 3; add.u32 %sum, %sum, %i;",
    "{{ .reg .u32 %in; mov.u32 %in, 0; inner: ld.global.u32 {v}, [{p}+4]; add.u64 %p, %p, 4;"
    " add.u32 %sum, %sum, {v}; add.u32 %in, %in, 1; setp.lt.u32 %y, %in, 6; @%y bra inner; }}",
)
COMPARISONS = (*["lt.s32"] * 5, "le.s32", "lt.u32", "ne.s32", "gt.s32", "ge.s32")


@st.composite
def strided_kernels(draw: st.DrawFn) -> str:
    """Draws a kernel with one or two loops whose addresses advance by strides."""
    loops = [_loop(draw, number) for number in range(draw(st.integers(1, 2)))]
    between = draw(st.sampled_from(["\n", "\nbar.sync 0;\n"]))
    return HEAD + between.join([*loops, ""]) + TAIL


def _loop(draw: st.DrawFn, number: int) -> str:
    step = draw(st.sampled_from(STEPS)).format(n=draw(st.sampled_from([1, 8, 32, 33, 64, -32])))
    log = draw(st.sampled_from([2, 2, 2, 2, 2, 3]))
    size = draw(st.sampled_from([1 << log] * 5 + [12]))
    compare = draw(st.sampled_from(COMPARISONS))
    limit = draw(st.sampled_from(["%n", "%n", "%n", "300", "0"]))
    increments = draw(st.booleans())
    address = draw(st.sampled_from(AT)).format(size=size, log=log)
    place = f"{address} add.u64 %p, %a, %w; add.u64 %q, %b, %w; add.u64 %r, %c, %w;"
    step_on = f"cvt.s64.s32 %wide, %step; mad.lo.s64 %p, %wide, {size}, %p;"
    body = [_line(draw) for _ in range(draw(st.integers(1, 4)))]
    if draw(st.integers(0, 3)) == 0:
        body.insert(
            draw(st.integers(0, len(body))), f"setp.eq.u32 %e, %v0, 77; @%e bra out{number};"
        )
    if draw(st.integers(0, 3)) == 0:  # once more in the same iteration
        middle = f"add.s32 %i, %i, %step; setp.{compare} %l, %i, {limit}; @!%l bra out{number};"
        body += [middle, place, *(_line(draw) for _ in range(2))]
    before = f"setp.{compare} %l, %i, {limit}; @!%l bra out{number};"
    guard = [before] if draw(st.booleans()) else []
    lines = [step, "cvt.s64.s32 %j, %i;", place, *guard, f"again{number}:"]
    lines += [step_on if increments else place, *body]
    lines += ["cvt.s64.s32 %wide, %step; add.s64 %j, %j, %wide;", "add.s32 %i, %i, %step;"]
    lines += [f"setp.{compare} %l, %i, {limit};", f"@%l bra again{number};", f"out{number}:"]
    return LOOP + "\n".join([*lines, "}\n"])


def _line(draw: st.DrawFn) -> str:
    values = st.sampled_from([f"%v{n}" for n in range(4)])
    pointers = st.sampled_from(["%p", "%p", "%q", "%r"])
    return draw(st.sampled_from(BODY)).format(
        v=draw(values), u=draw(values), p=draw(pointers), q=draw(pointers), r=draw(pointers),
        o=draw(st.sampled_from([0, 0, 0, 4, 4, 8, 8, 128, -4, 2])),
    )  # fmt: skip
