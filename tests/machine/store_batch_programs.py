"""Draws kernels whose lanes store several words each, at addresses with a stride that is an
argument, with loads in between, some from the stored words."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

BYTES = 8192
"""The size of each of the two buffers."""

STORES = (
    "st.{s}.u32 [%place+{o}], %r{a};",
    "st.{s}.f32 [%place+{o}], %f0;",
    "st.{s}.u64 [%place+{o}], %d{a};",
)

BETWEEN = (
    "add.u32 %r{a}, %r{b}, {n};",
    "mad.lo.u32 %r{a}, %r{b}, {n}, %r{a};",
    "cvt.u64.u32 %d{a}, %r{b};",
    "mul.wide.u32 %d{a}, %x, 268435456;",
    "mov.u32 %r{a}, %ctaid.x;",
    "ld.param.u32 %r{a}, [step];",
    "ld.global.u32 %r{a}, [%row+{l}];",
    "ld.global.u32 %r{a}, [%source+{w}];",
    "ld.global.u32 %r{a}, [%seen+{l}];",
    "ld.global.u64 %d{a}, [%source+{w}];",
)

ENDING = (
    "ld.global.u32 %r{a}, [%place+{o}];",
    "ld.volatile.global.u32 %r{a}, [%source+{w}];",
    "@%p ld.global.u32 %r{a}, [%row+{o}];",
    "@%p st.{s}.u32 [%place+{o}], %r{a};",
    "st.release.gpu.global.u32 [%own], %r{a};",
    "atom.global.add.u32 %r{a}, [%source+{w}], 1;",
    "bar.warp.sync -1;",
    "membar.gl;",
    "add.u64 %place, %place, 4;",
    "mov.u64 %place, %place;",
)

FIRSTS = (*(2048,) * 8, 2176, 2052, 16, 2050, 3500, 5000, BYTES - 64)
STEPS = (*(32, 64, 128) * 3, 132, 40, 20, 16, 12, 8, 4, 0, -64, -8, 6, 1 << 20)
MOVES = (0, 0, 0, 0, 0, 4, 8, 128, 128, -128, 1000)


@dataclass(frozen=True)
class Places:
    """The stored addresses: `first` is that of lane 0, `step` the bytes from lane to lane, `move`
    those from iteration to iteration; `seen` is the offset at which lanes read in the same
    buffer."""

    first: int
    step: int
    move: int
    seen: int


def places() -> st.SearchStrategy[Places]:
    """Draws addresses that are mostly in the buffer and disjoint."""
    return st.builds(
        Places,
        st.sampled_from(FIRSTS),
        st.sampled_from(STEPS),
        st.sampled_from(MOVES),
        st.sampled_from([0, 1920, 2048, 2048, 2304, 4000]),
    )


@st.composite
def store_batch_kernels(draw: st.DrawFn) -> str:
    """Draws a kernel `k(out, source, first, step, move, seen, lanes)` of eight iterations."""
    shared = draw(st.integers(0, 5)) == 0
    body: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        wide = draw(st.sampled_from(STORES))
        for _ in range(draw(st.integers(1, 5))):
            body.append(_filled(draw, wide, shared))
            for _ in range(draw(st.integers(0, 2))):
                kind = ENDING if draw(st.integers(0, 11)) == 0 else BETWEEN
                body.append(_filled(draw, draw(st.sampled_from(kind)), shared))
    return _text("\n".join(body), shared, guarded=draw(st.integers(0, 4)) == 0)


def _filled(draw: st.DrawFn, line: str, shared: bool) -> str:
    words = [0, 4, 8, 12, 16, 28, -4]
    return line.format(
        s="shared" if shared else "global",
        a=draw(st.integers(0, 3)), b=draw(st.integers(0, 3)),
        n=draw(st.sampled_from([1, 3, 77])),
        w=draw(st.sampled_from([0, 8, 256])),
        l=draw(st.sampled_from([0, 0, 128, 4])),
        o=draw(st.sampled_from([w for w in words if w % 8 == 0] if "64" in line else words)),
    )  # fmt: skip


def _text(body: str, shared: bool, guarded: bool) -> str:
    leave = "@%p exit;" if guarded else ""
    base = "mov.u64 %place, room;" if shared else "ld.param.u64 %place, [out];"
    values = "\n".join(
        f"ld.global.u32 %r{n}, [%own+{128 * n}];\ncvt.u64.u32 %d{n}, %r{n};" for n in range(4)
    )
    others = "\n".join(
        f"add.u32 %r{n}, %r{n}, {n + 1};\nadd.u64 %d{n}, %d{n}, {n + 1};" for n in range(4)
    )
    shown = "\n".join(
        f"st.global.u32 [%own+{256 * n + 2048}], %r{n};\n"
        f"ld.shared.u32 %t, [%spot+{512 * n}];\nst.global.u32 [%own+{256 * n + 4096}], %t;"
        for n in range(4)
    )
    return f"""
.version 8.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 source, .param .s64 first, .param .s32 step,
                  .param .s64 move, .param .u64 seen, .param .u32 lanes)
{{
.reg .u32 %r<4>, %x, %t, %lap, %lanes, %spot;
.reg .f32 %f0;
.reg .s32 %step;
.reg .u64 %d<4>, %place, %source, %first, %move, %row, %seen, %own, %far;
.reg .pred %p, %q;
.shared .align 16 .b8 room[{BYTES}];
ld.param.u64 %source, [source];
ld.param.u64 %first, [first];
ld.param.s32 %step, [step];
ld.param.u64 %move, [move];
ld.param.u64 %seen, [out];
ld.param.u64 %far, [seen];
ld.param.u32 %lanes, [lanes];
mov.u32 %x, %tid.x;
mul.wide.u32 %row, %x, 4;
mov.u32 %spot, room;
cvt.u32.u64 %t, %row;
add.u32 %spot, %spot, %t;
add.u64 %seen, %seen, %far;
add.u64 %seen, %seen, %row;
add.u64 %row, %row, %source;
add.u64 %own, %row, 1024;
{base}
add.u64 %place, %place, %first;
mul.wide.s32 %far, %x, %step;
add.u64 %place, %place, %far;
setp.ge.u32 %p, %x, %lanes;
{values}
mov.u32 %lap, 0;
again:
{others}
mov.b32 %f0, %r2;
{body}
add.u64 %place, %place, %move;
add.u32 %lap, %lap, 1;
setp.lt.u32 %q, %lap, 8;
@%q bra again;
{leave}
{shown}
ret;
}}
"""
