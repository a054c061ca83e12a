"""Draws random kernels for uniformity analysis: index arithmetic with uniform and affine values,
some of which wrap around; uniform and divergent branches and loops; loads and stores at such
addresses; uniform values that only some lanes write while others are inactive."""

from __future__ import annotations

from hypothesis import strategies as st

WORDS = 6
OUT_BYTES = 128
"""The bytes of the buffer that each thread owns."""

STARTS = (
    "mov.u32 {d}, %tid.x;",
    "mov.u32 {d}, %tid.y;",
    "mov.u32 {d}, %laneid;",
    "mov.u32 {d}, %ctaid.x;",
    "mov.u32 {d}, %ntid.x;",
    "mov.u32 {d}, 2147483640;",
    "mov.u32 {d}, 4294967290;",
    "mov.u32 {d}, %i;",
    "ld.global.u32 {d}, [%mine];",
    "ld.global.u32 {d}, [%base];",
    "ld.const.u32 {d}, [table+4];",
)

STEPS = (
    "add.u32 {d}, {a}, {b};",
    "sub.s32 {d}, {a}, {b};",
    "mul.lo.u32 {d}, {a}, {n};",
    "mul.lo.u32 {d}, {a}, {b};",
    "mad.lo.s32 {d}, {a}, {n}, {b};",
    "shl.b32 {d}, {a}, {k};",
    "shr.u32 {d}, {a}, {k};",
    "neg.s32 {d}, {a};",
    "and.b32 {d}, {a}, {b};",
    "min.s32 {d}, {a}, {b};",
    "mov.u32 {d}, {a};",
    "cvt.s64.s32 {w}, {a};",
    "cvt.u64.u32 {w}, {a};",
    "mul.wide.s32 {w}, {a}, {n};",
    "mul.wide.u32 {w}, {a}, {n};",
    "add.s64 {w}, {w}, {v};",
    "shl.b64 {w}, {v}, {k};",
    "cvt.u32.u64 {d}, {v};",
    "cvt.s64.s16 {w}, %short;",
    "cvt.u16.u32 %short, {a};",
    "setp.lt.s32 {p}, {a}, {b};",
    "setp.eq.u32 {p}, {a}, {n};",
    "setp.{cmp}.s32 {p}, {a}, {u};",
    "setp.{cmp}.u32 {p}, {u}, {a};",
    "selp.u32 {d}, {a}, {b}, {p};",
    "@{p} mov.u32 {d}, {a};",
    "@!{p} add.u32 {d}, {d}, {n};",
    "ld.global.u32 {d}, [%row+{o}];",
    "ld.global.u32 {d}, [%base+{o}];",
    "@{p} ld.global.u32 {d}, [%row+{o}];",
    "ld.shared.u32 {d}, [%spot+{o}];",
    "ld.shared.v2.u32 {{{d}, {c}}}, [block+8];",
    "st.shared.u32 [%spot+{o}], {a};",
    "st.global.u32 [%own+{o}], {a};",
    "atom.shared.add.u32 {d}, [block+4], 1;",
    "bar.sync 0;",
)

UNIFORM_STEPS = (
    "mov.u32 {d}, {u};",
    "mov.u32 {d}, {n};",
    "mov.u32 {d}, %ctaid.x;",
    "add.u32 {d}, {u}, {n};",
    "shl.b32 {d}, {u}, {k};",
    "mul.wide.u32 {w}, {u}, 4;",
    "setp.lt.u32 {p}, {u}, {n};",
    "ld.global.u32 {d}, [%base+{o}];",
    "ld.global.u32 {d}, [cells+{o}];",
    "ld.shared.u32 {d}, [block+{o}];",
    "st.global.u32 [cells+{o}], {u};",
    "st.global.u32 [cells+{o}], {a};",
    "st.shared.u32 [block+{o}], {u};",
    "st.shared.u32 [block+{o}], {a};",
    "st.shared.v2.u32 [block+{o}], {{{u}, {a}}};",
    "atom.shared.add.u32 {d}, [block+{o}], {u};",
    "@{p} mov.u32 {d}, {u};",
    "@{p} st.shared.u32 [block+{o}], {u};",
)
"""Instructions for lanes of one side of a branch: their values and addresses are uniform, but held
in registers of each lane."""

DIVERGING_CONDITIONS = (
    "setp.lt.u32 {p}, %t, {limit};",
    "setp.ge.u32 {p}, %t, {limit};",
    "setp.eq.u32 {p}, %t, {limit};",
    "setp.lt.u32 {p}, {a}, {b};",
)
"""Conditions that select the lanes of such a side."""

_R, _D, _P, _U = (
    st.sampled_from([f"%{name}{n}" for n in range(count)])
    for name, count in (("r", WORDS), ("d", 3), ("p", 3), ("u", 3))
)


@st.composite
def steps(draw: st.DrawFn, depth: int, barriers: bool) -> str:
    """Draws instructions, and branches and loops that contain more of them."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.integers(0, 8)) if depth else 8
        if kind == 2:
            lines += _predicated_block(draw)
        elif kind == 0:
            lines += _branch(draw(_P), draw(steps(depth - 1, False)))
        elif kind == 1:
            lines += _loop(draw, draw(steps(depth - 1, False)), depth)
        else:
            line = draw(st.sampled_from(STEPS if barriers else STEPS[:-1]))
            lines.append(_filled(draw, line))
    return "\n".join(lines)


def _filled(draw: st.DrawFn, line: str) -> str:
    """Returns an instruction template with drawn operands."""
    wide = draw(_D), draw(_D)
    return line.format(
        d=draw(_R), a=draw(_R), b=draw(_R), c=draw(_R), w=wide[0], v=wide[1], p=draw(_P),
        cmp=draw(st.sampled_from(["lt", "le", "gt", "ge", "eq", "ne"])),
        u=draw(_U), limit=draw(st.sampled_from([1, 3, 16, 31, 40])),
        n=draw(st.sampled_from([0, 1, 3, 4, -4, 8, 0x10000000])),
        k=draw(st.sampled_from([0, 1, 2, 5, 28])),
        o=draw(st.sampled_from([0, 4, 8, 64])),
    )  # fmt: skip


def _predicated_block(draw: st.DrawFn) -> list[str]:
    """Draws an `if` without `else` whose body has uniform values."""
    guard = draw(_P)
    who = _filled(draw, draw(st.sampled_from(DIVERGING_CONDITIONS)).replace("{p}", guard))
    inside = [
        _filled(draw, draw(st.sampled_from(UNIFORM_STEPS))) for _ in range(draw(st.integers(1, 4)))
    ]
    return [who, *_branch(guard, "\n".join(inside))]


def _branch(guard: str, inside: str) -> list[str]:
    return ["{", f"@{guard} bra over;", inside, "over:", "}"]


def _loop(draw: st.DrawFn, inside: str, depth: int) -> list[str]:
    """Returns a loop of three iterations, or of as many as the lowest bits of a register, which may
    differ between lanes."""
    counter, limit = f"%lap{depth}", f"%laps{depth}"
    laps = "mov.u32 {0}, 3;" if draw(st.booleans()) else "and.b32 {0}, {1}, 3;"
    return [
        laps.format(limit, draw(_R)),
        f"mov.u32 {counter}, 0;",
        "{",
        "again:",
        inside,
        f"add.u32 {counter}, {counter}, 1;",
        f"setp.lt.u32 %lapped, {counter}, {limit};",
        "@%lapped bra again;",
        "}",
    ]


@st.composite
def predicated_blocks(draw: st.DrawFn) -> str:
    """Draws several `if`s without `else`, with an instruction after each."""
    lines: list[str] = []
    for _ in range(draw(st.integers(2, 6))):
        lines += [*_predicated_block(draw), _filled(draw, draw(st.sampled_from(STEPS)))]
    return "\n".join(lines)


MASKED_STARTS = (
    "mov.u32 {d}, %tid.x;",
    "mov.u32 {d}, %laneid;",
    "mov.u32 {d}, %rank;",
    "mul.lo.u32 {d}, %rank, {f};",
    "mov.u32 {d}, %tid.y; mul.lo.u32 {d}, %width, {d};",
    "mov.u32 {d}, %tid.x; mov.u32 {c}, %ctaid.x; mad.lo.u32 {d}, %width, {c}, {d};",
    "mov.u32 {d}, %i;",
    "ld.global.u32 {d}, [%base];",
)
MASKS = (
    "and.b32 {d}, {a}, {m};",
    "and.b32 {d}, {a}, {m};",
    "rem.u32 {d}, {a}, {m};",
    "rem.s32 {d}, {a}, {m};",
    "div.u32 {d}, {a}, {m};",
    "div.s32 {d}, {a}, {m};",
    "shr.u32 {d}, {a}, {k};",
    "shr.s32 {d}, {a}, {k};",
    "bfe.u32 {d}, {a}, {k}, {k};",
    "shr.s32 {c}, {a}, 31; shr.u32 {c}, {c}, 27; add.s32 {c}, {a}, {c}; and.b32 {d}, {c}, -32;",
    "shr.s32 {c}, {a}, 31; shr.u32 {c}, {c}, 29; add.s32 {c}, {a}, {c}; shr.s32 {d}, {c}, 3;",
    "cvt.u16.u32 %short, {a}; and.b16 %short, %short, 31; cvt.u32.u16 {d}, %short;",
    "cvt.u64.u32 {w}, {a}; shr.u64 {w}, {w}, {k}; cvt.u32.u64 {d}, {w};",
    "mul.wide.s32 {w}, {a}, {f}; and.b64 {w}, {w}, {m}; cvt.u32.u64 {d}, {w};",
    "add.u32 {d}, {a}, {b};",
    "sub.u32 {d}, {a}, {b};",
    "shl.b32 {d}, {a}, {k};",
    "mad.lo.u32 {d}, {a}, {f}, {b};",
    "mul.lo.u32 {d}, {a}, {b};",
    "add.u32 {d}, {a}, {f};",
    "min.u32 {d}, {a}, {b};",
    "or.b32 {d}, {a}, {b};",
    "setp.lt.u32 {p}, {a}, {b};",
    "selp.u32 {d}, {a}, {b}, {p};",
    "@{p} add.u32 {d}, {d}, 32;",
    "and.b32 {c}, {a}, 1020; cvt.u64.u32 {w}, {c}; add.u64 {w}, {w}, %base;"
    " ld.global.u32 {d}, [{w}];",
    "and.b32 {c}, {a}, 31; mad.lo.u32 {c}, {c}, 4, %block; ld.shared.u32 {d}, [{c}];",
    "and.b32 {c}, {a}, 31; mad.lo.u32 {c}, {c}, 4, %block; st.shared.u32 [{c}], {a};",
)  # fmt: skip
"""Masks, shifts, quotients and remainders, and what changes the low bits of their operands."""


def _masked(draw: st.DrawFn, lines: tuple[str, ...]) -> str:
    return _filled_mask(draw, draw(st.sampled_from(lines)), 0)


def _filled_mask(draw: st.DrawFn, line: str, written: int) -> str:
    """Returns an instruction template with drawn registers, masks, factors and shifts; operands are
    of the first `written` registers that are written once, or any."""
    read = st.sampled_from([f"%m{n}" for n in range(written)]) if written else _R
    return line.format(
        d=draw(_R), a=draw(read), b=draw(read), c=draw(_R), w=draw(_D), p=draw(_P),
        m=draw(st.sampled_from([31, 32, 32, 1, 2, 3, 4, 7, 8, 15, 16, 12, 28, 63, 64, 127, 96, 5,
                                -1, -2, -4, -32, 1 << 31])),
        f=draw(st.sampled_from([1, 2, 4, 4, 3, 8, 32, 64, 0, -1, -4, 1 << 26, 1 << 27, 1 << 28])),
        k=draw(st.sampled_from([0, 1, 2, 2, 3, 4, 5, 5, 6, 8, 27, 31, 32])),
    )  # fmt: skip


@st.composite
def masks(draw: st.DrawFn, depth: int = 2) -> str:
    """Draws masks and shifts of thread ranks and what is computed from them, in branches and loops,
    some of which lanes leave one by one."""
    lines: list[str] = []
    if depth == 2:
        # Registers that are written once, as compilers write them: others have many writers, and so
        # little is known of them.
        for number in range(16):
            kinds = MASKED_STARTS if number < 4 else MASKS[:13]
            line = draw(st.sampled_from(kinds)).replace("{d}", f"%m{number}")
            lines.append(_filled_mask(draw, line, max(number, 1)))
        lines += [f"mov.u32 %r{n}, %m{draw(st.integers(4, 15))};" for n in range(4)]
    for _ in range(draw(st.integers(2, 8))):
        kind = draw(st.integers(0, 9)) if depth else 9
        if kind == 0:
            lines += _branch(draw(_P), draw(masks(depth - 1)))
        elif kind == 1:
            lines += _loop(draw, draw(masks(depth - 1)), depth)
        else:
            lines.append(_masked(draw, MASKS))
    return "\n".join(lines)


CHAIN_BODY = (
    "ld.global.u32 {d}, [{w}]; add.s64 {v}, {w}, {s}; ld.global.u32 {a}, [{v}+{o}];",
    "add.s64 {w}, {w}, {s}; ld.global.u32 {d}, [{w}];",
    "add.u64 {w}, {s}, {w}; ld.global.u32 {d}, [{w}];",
    "ld.shared.u32 {d}, [{x}+{o}]; add.s64 {y}, {x}, {s}; st.shared.u32 [{y}], {d};",
    "add.s64 {x}, {x}, {s}; st.shared.u32 [{x}+{o}], {d};",
    "add.s64 {w}, {v}, {s};",
    "ld.global.u32 {d}, [{w}+{o}];",
    "add.u32 {d}, {a}, {d};",
    "@{p} ld.global.u32 {d}, [{w}+{o}];",
    "@{p} add.s64 {w}, {v}, {s};",
    "mov.u64 {w}, %row;",
    "add.s64 {s}, {s}, 4;",
)
"""Instructions of a loop body; the last two and the guarded ones are drawn less often."""

STRIDES = (
    "mov.u64 {s}, {n};",
    "mov.u64 {s}, {n};",
    "mul.wide.u32 {s}, %u2, {n};",
    "ld.global.s32 {s}, [%base+16]; and.b64 {s}, {s}, 60;",
    "mul.wide.u32 {s}, %x, 4;",
)
"""Definitions of a stride: uniform but for the last, constant over the launch or different in each
block or read from memory."""

_W, _X = (st.sampled_from([f"%{name}{n}" for n in range(2)]) for name in "wx")
_S = st.sampled_from(["%s0", "%s0", "%s0", "%s1"])


@st.composite
def strided_chains(draw: st.DrawFn) -> str:
    """Draws a loop of one basic block in which pointers advance by strides, read and store."""
    lengths = st.sampled_from([4, 4, 8, 16, 64, 64, 128, 0, -4, -8, -64, 2, 1 << 41])
    begin = [
        draw(st.sampled_from(STRIDES)).format(s=f"%s{n}", n=abs(draw(lengths))) for n in range(2)
    ]
    begin[0] = f"mov.u64 %s0, {draw(lengths)};"
    starts = st.sampled_from(["%row", "%base"])
    begin += [f"add.u64 %w{n}, {draw(starts)}, {draw(st.integers(60, 66)) * 32};" for n in range(2)]
    begin += [f"cvt.u64.u32 %x{n}, %spot; add.u64 %x{n}, %x{n}, 256;" for n in range(2)]
    seldom = st.integers(0, 9).flatmap(
        lambda n: st.sampled_from(CHAIN_BODY if n == 0 else CHAIN_BODY[:-4])
    )
    lines = [
        draw(seldom).format(
            w=draw(_W), v=draw(_W), x=draw(_X), y=draw(_X), s=draw(_S), d=draw(_R), a=draw(_R),
            p=draw(_P), o=draw(st.sampled_from([0, 0, 4, 8, 64])),
        )
        for _ in range(draw(st.integers(4, 16)))
    ]  # fmt: skip
    body = _loop(draw, "\n".join(lines), 2)
    return "\n".join(["{", ".reg .u64 %w<2>, %x<2>, %s<2>;", *begin, *body, "}"])


BACKWARDS = {
    1: ("ld.{s}.u8 {d}, [%back];", "st.{s}.u8 [%back], {d};"),
    2: ("ld.{s}.u16 {d}, [%back];", "st.{s}.u16 [%back], {d};"),
    4: ("ld.{s}.u32 {d}, [%back];", "st.{s}.u32 [%back], {d};"),
    8: ("ld.{s}.u64 {w}, [%back];", "st.{s}.u64 [%back], {w};",
        "ld.{s}.v2.u32 {{{d}, {c}}}, [%back];", "st.{s}.v2.u32 [%back], {{{d}, {c}}};"),
    16: ("ld.{s}.v2.u64 {{{w}, {v}}}, [%back];", "st.{s}.v4.u32 [%back], {{{d}, {c}, {d}, %x}};"),
}  # fmt: skip
"""Accesses by their bytes, which are those from each lane's address to the one before."""

BACKWARDS_IN = {
    "%base": ("global", "mov.u64 %begin, %base;", 4096),
    "cells": ("global", "mov.u64 %begin, cells;", 128),
    "block": ("shared", "cvt.u64.u32 %begin, %block;", 1024),
}


@st.composite
def backwards(draw: st.DrawFn) -> str:
    """Draws loops of accesses at addresses that fall from lane to lane by an access, up to both
    ends of memory; of some, the lanes that would be outside are off, or others."""
    return "\n".join(_backwards(draw) for _ in range(draw(st.integers(1, 3))))


def _backwards(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(list(BACKWARDS_IN)))
    space, begin, length = BACKWARDS_IN[name]
    size = draw(st.sampled_from(list(BACKWARDS)))
    # The page is read only. Registers are written once: of others no shape is known.
    accesses = BACKWARDS[size][::2] if name == "%base" else BACKWARDS[size]
    # Lanes below 16 are off where the first address is beyond the end, else those after `lane`.
    lane = draw(st.sampled_from([31, 31, 15, 16, 7, 3]))
    at_end, who = draw(st.booleans()), draw(st.sampled_from(["@%q ", "@%q ", "@%q ", "@%q ", ""]))
    start = length + 15 * size if at_end else size * lane
    start += draw(st.sampled_from([0] * 20 + [1, size // 2]))
    mask = "setp.ge.u32 %q, %x, 16;" if at_end else f"setp.le.u32 %q, %x, {lane};"
    lines = [
        who
        + draw(st.sampled_from(accesses)).format(
            s=space, d=draw(_R), c=draw(_R), w=draw(_D), v=draw(_D)
        )
        for _ in range(draw(st.integers(1, 3)))
    ]
    body = _loop(draw, "\n".join(lines), 2)
    return "\n".join(
        [
            "{",
            ".reg .u64 %begin, %step, %from, %back; .reg .pred %q;",
            begin,
            f"mul.wide.s32 %step, %x, -{size};",
            f"add.s64 %from, %begin, {start};",
            "add.s64 %back, %from, %step;",
            mask,
            *body,
            "}",
        ]
    )


@st.composite
def empty_warp_laps(draw: st.DrawFn) -> str:
    """Draws a loop with a barrier in which only threads below, or from, some index have work:
    mostly the first ones, and mostly fewer of them in each iteration."""
    cmp = draw(st.sampled_from(["ge", "ge", "gt", "hs", "lt", "le", "eq", "ne"]))
    type = "u32" if cmp == "hs" else draw(st.sampled_from(["s32", "u32"]))
    compared = draw(st.sampled_from(["%x, %s", "%x, %s", "%s, %x"]))
    work = [
        draw(st.sampled_from(["add.u32 %r0, %r0, %s;", "st.shared.u32 [%spot], %r1;"])),
        draw(st.sampled_from(["ld.shared.u32 %r1, [%spot+64];", "mov.u32 %r2, %s;"])),
    ]
    change = st.sampled_from(
        ["shr.u32 %s, %s, 1;", "sub.u32 %s, %s, 33;", "add.u32 %e, %e, %s;", "xor.b32 %s, %s, 64;"]
    )
    after = [draw(change) for _ in range(draw(st.integers(1, 3)))]
    before = draw(st.sampled_from(["", "add.u32 %e, %e, 1;", "mov.u32 %f, %e;"]))
    leave = draw(st.sampled_from(["", "", "@%l exit;"]))
    return "\n".join(
        [
            "{",
            ".reg .u32 %x, %s, %e, %f, %m; .reg .pred %q, %w, %l;",
            "mov.u32 %x, %tid.x;",
            f"mov.u32 %s, {draw(st.sampled_from([0, 1, 5, 31, 32, 33, 64, 70]))};",
            "mov.u32 %e, %ctaid.x; mov.u32 %f, 0; mov.u32 %m, 0;",
            f"setp.gt.u32 %l, %x, {draw(st.sampled_from([20, 40, 64]))};",
            leave,
            draw(st.sampled_from(["", "bar.sync 0;"])),
            "lap:",
            before,
            f"setp.{cmp}.{type} %q, {compared};",
            f"@{draw(st.sampled_from(['', '', '!']))}%q bra past;",
            *work,
            "past:",
            "bar.sync 0;",
            *after,
            "add.u32 %m, %m, 1;",
            "setp.lt.u32 %w, %m, 4;",
            "@%w bra lap;",
            "add.u32 %r3, %e, %f; mov.u32 %r4, %s;",
            "}",
        ]
    )


EXIT_CONDITIONS = (
    "setp.ge.u32 %away, %t, {limit}; setp.ge.and.u32 %away, %round, {k}, %away;",
    "setp.ge.u32 %away, %round, %mine_only;",
    "and.b32 %low, {a}, 7; setp.eq.u32 %away, %low, %round;",
    "setp.gt.u32 %away, %round, {limit};",
)
"""Conditions that select the lanes that leave a loop, by iteration; with the first one, most often
some lanes never leave."""


@st.composite
def masked_loops(draw: st.DrawFn, *, turns: bool = True) -> str:
    """Draws loops that lanes leave one by one: before the first iteration, in the middle of one, or
    at its end. With `turns`, some are so long that a turn ends while some lanes have left. Values
    that are computed in the loop are read after it."""
    return "\n".join(_masked_loop(draw, turns=turns) for _ in range(draw(st.integers(1, 2))))


def _masked_loop(draw: st.DrawFn, *, turns: bool) -> str:
    long = turns and draw(st.integers(0, 5)) == 0
    rounds = 1100 if long else draw(st.sampled_from([2, 7, 40]))
    kinds = st.just(1) if long else st.integers(0, 4)
    parts = [_lap_part(draw, draw(kinds)) for _ in range(1 if long else draw(st.integers(1, 2)))]
    sooner = "setp.lt.and.u32 %stays, %round, %mine_only, %stays;"
    return "\n".join(
        [
            "{",
            ".reg .u32 %round, %low, %mine_only; .reg .pred %away, %stays;",
            _filled(draw, "and.b32 %mine_only, {a}, 7;"),
            f"mov.u32 %round, {draw(st.sampled_from([0, 0, 1]))};",
            "round:",
            *parts,
            "add.u32 %round, %round, 1;",
            f"setp.lt.u32 %stays, %round, {rounds};",
            "" if long else draw(st.sampled_from(["", sooner])),
            "@%stays bra round;",
            "away:",
            draw(st.sampled_from(["", "bar.sync 0;"])),
            draw(st.sampled_from(["add.u32 %r0, %r0, %round;", "mov.u32 %r1, %round;", ""])),
            _filled(draw, draw(st.sampled_from(STEPS))),
            draw(st.sampled_from(["", "bar.sync 0;"])),
            "}",
        ]
    )


def _lap_part(draw: st.DrawFn, kind: int) -> str:
    """Draws part of an iteration: lanes leave the loop, or all lanes or some of them compute."""
    plain = [_filled(draw, draw(st.sampled_from(STEPS[:-1]))) for _ in range(3)]
    away = _filled(
        draw, draw(st.sampled_from(EXIT_CONDITIONS[:1] if kind == 1 else EXIT_CONDITIONS))
    )
    match kind:
        case 0 | 1:
            return "\n".join([away, "@%away bra away;", *plain])
        case 2:
            return "\n".join([plain[0], *_predicated_block(draw), away, "@%away bra away;"])
        case 3:
            return "\n".join([plain[0], *_loop(draw, "\n".join(plain[1:]), 1), plain[0]])
        case _:
            return draw(steps(1, False))


@st.composite
def jumps(draw: st.DrawFn) -> str:
    """Draws branches over several basic blocks, to one target from several of them, also out of
    loops. Values that are computed in between are read afterwards."""
    return "\n".join(_jump(draw, 2) for _ in range(draw(st.integers(1, 2))))


def _jump(draw: st.DrawFn, depth: int) -> str:
    who = [
        _filled(draw, draw(st.sampled_from(DIVERGING_CONDITIONS)).replace("{p}", "%off"))
        for _ in range(3)
    ]
    over = draw(st.sampled_from(["@%off bra past;", "@!%off bra past;"]))
    parts: list[str] = []
    for _ in range(draw(st.integers(2, 4))):
        plain = [_filled(draw, draw(st.sampled_from(STEPS[:-1]))) for _ in range(3)]
        match draw(st.integers(0, 5 if depth else 3)):
            case 0:
                parts += plain
            case 1:
                parts += [plain[0], who[1], over, plain[1]]
            case 2:
                parts += _predicated_block(draw)
            case 3:
                out = [who[2], "@%off bra past;"] if draw(st.booleans()) else []
                parts += _loop(draw, "\n".join([plain[0], *out, plain[1]]), depth)
            case 4:
                parts += [plain[0], _jump(draw, depth - 1)]
            case _:
                parts += [plain[0], _masked_loop(draw, turns=False)]
    behind = [_filled(draw, draw(st.sampled_from(STEPS))) for _ in range(2)]
    return "\n".join(["{", ".reg .pred %off;", who[0], over, *parts, "past:", *behind, "}"])


@st.composite
def warp_loop_kernels(draw: st.DrawFn) -> str:
    """Draws a kernel `k(buffer)` that loops over barriers, between which, mostly, the first threads
    access consecutive addresses, with values that are equal or that the warp before has written.
    The buffer is that of `shaped_kernels`."""

    def one(*choices: str) -> str:
        return draw(st.sampled_from(choices))

    type = one("s32", "u32")
    compared = f"setp.{one('ge', 'ge', 'ge', 'gt', 'lt', 'le', 'eq')}.{type} %q, "
    first = one("", f"{compared} %i, {one('64', '128', '200', '300')}; @%q bra none;")
    return f"""
.version 8.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 buffer)
{{
.reg .u32 %r<4>, %i, %n, %c, %x, %words, %block, %spot, %s, %e, %m, %at, %v, %y, %z;
.reg .u64 %base, %wide, %row, %far, %mine;
.reg .pred %q, %w;
.shared .align 8 .b8 block[1024];
ld.param.u64 %base, [buffer];
mov.u32 %x, %tid.x;
mov.u32 %n, %ntid.x;
mov.u32 %c, %ctaid.x;
mad.lo.u32 %i, %c, %n, %x;
mul.wide.{type} %wide, {one("%x", "%i")}, 4;
add.u64 %row, %wide, %base;
shl.b32 %words, %x, 2;
mov.u32 %block, block;
add.u32 %spot, %words, %block;
mov.u32 %s, {one("0", "5", "31", "32", "64", "96", "128", "128", "150")};
mov.u32 %e, %ctaid.x;
mov.u32 %m, 0;
mov.u32 %at, %spot;
mov.u32 %r1, 1; mov.u32 %r2, 2; mov.u32 %r3, 3;
{one("mov.u32 %r0, 5;", "ld.global.u32 %r0, [%row+4];", "mov.u32 %r0, %i;")}
mov.u32 %v, 7;
{first}
{one("ld.global.u32 %v, [%row+8];", "mov.u32 %v, %s;", "add.u32 %v, %x, %s;")}
none:
st.shared.u32 [%spot], {one("%v", "%v", "%i", "%s")};
bar.sync 0;
lap:
{one("", "", "", "add.u32 %e, %e, 1;", "add.u32 %r1, %r1, %e;", "add.u32 %at, %spot, 4;")}
{compared} {one("%x, %s", "%x, %s", "%x, %s", "%i, %s", "%s, %x", "%x, %e")};
@{one("", "", "", "!")}%q bra past;
{one("", "shl.b32 %z, %s, 2; add.u32 %at, %spot, %z;", "add.u32 %at, %spot, 64;")}
ld.shared.u32 %y, [%spot];
ld.{one("shared.u32 %z, [%at]", "shared.u32 %z, [%spot+64]", "global.u32 %z, [%row]")};
{one("add.u32 %y, %y, %z;", "mad.lo.u32 %y, %y, %x, %z;", "xor.b32 %y, %y, %z;")}
st.shared.u32 [{one("%spot", "%spot", "%spot+4", "%at")}], %y;
{one("", "", "", "", "mov.u32 %r2, %y;")}
past:
{one("", "", "", "", "add.u32 %r1, %r1, %s;", "ld.shared.u32 %r3, [%spot+64];")}
bar.sync 0;
{one("shr.u32 %s, %s, 1;", "shr.u32 %s, %s, 1;", "sub.u32 %s, %s, 33;", "")}
add.u32 %m, %m, 1;
setp.lt.u32 %w, %m, 6;
@%w bra lap;
mul.wide.u32 %far, %i, {OUT_BYTES};
add.u64 %mine, %far, %base;
add.u64 %mine, %mine, 4096;
ld.shared.u32 %y, [%spot];
st.global.v4.u32 [%mine], {{%r0, %r1, %r2, %r3}};
st.global.v4.u32 [%mine+16], {{%y, %e, %s, %at}};
ret;
}}
"""


@st.composite
def static_schedule_kernels(draw: st.DrawFn) -> str:
    """Draws a kernel `k(buffer)` whose control flow mostly depends only on the block size:
    iterations of a tree reduction or a scan, or none; then all threads, the first ones or one of
    them store consecutive words. The buffer is that of `shaped_kernels`."""

    def one(*choices: str) -> str:
        return draw(st.sampled_from(choices))

    type = one("s32", "u32")
    compared = f"setp.{one('ge', 'ge', 'ge', 'gt', 'lt', 'ne')}.{type} %q, "
    begin, bound, step = one(
        "%n|setp.gt.u32 %w, %s, 0;|shr.u32 %s, %s, 1;",
        "%n|setp.gt.u32 %w, %s, 3;|shr.u32 %s, %s, 1;",
        "1|setp.lt.u32 %w, %s, %n;|shl.b32 %s, %s, 1;",
        "100|setp.gt.u32 %w, %s, 2;|shr.u32 %s, %s, 1;",
        "96|setp.ne.s32 %w, %s, 0;|sub.s32 %s, %s, 32;",
        "%n|setp.ge.s32 %w, %s, 5;|div.u32 %s, %s, 3;",
        "%c|setp.gt.u32 %w, %s, 0;|shr.u32 %s, %s, 1;",
    ).split("|")
    return f"""
.version 8.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 buffer)
{{
.reg .u32 %i, %n, %c, %x, %words, %block, %spot, %s, %half, %at, %v, %y, %z, %r, %o, %all, %blocks;
.reg .u64 %base, %wide, %row, %far, %mine, %plane, %own;
.reg .pred %q, %w;
.shared .align 128 .b8 block[1024];
ld.param.u64 %base, [buffer];
mov.u32 %x, %tid.x;
mov.u32 %n, %ntid.x;
mov.u32 %c, %ctaid.x;
mad.lo.u32 %i, %c, %n, %x;
mul.wide.{type} %wide, {one("%x", "%i")}, 4;
add.u64 %row, %wide, %base;
shl.b32 %words, %x, 2;
mov.u32 %block, block;
add.u32 %spot, %words, %block;
mov.u32 %r, {one("%x", "%c", "9")};
mov.u32 %v, 7;
{one("", "", f"{compared} %i, {one('64', '128', '512', '640')}; @%q bra none;")}
{one("ld.global.u32 %v, [%row+8];", "mov.u32 %v, %x;", "ld.global.u32 %v, [%row];")}
none:
st.shared.u32 [%spot], %v;
mov.u32 %s, {begin};
{one("", "shr.u32 %s, %s, 1;")}
{one("bar.sync 0;", "bar.sync 0;", "bar.sync 0;", "bar.sync 0;", "bar.sync 0, 64;", "")}
{bound}
@!%w bra last;
lap:
{compared} {one(*["%x, %s"] * 5, "%s, %x", "%x, 0", "%i, %s")};
@{one("", "", "", "", "!")}%q bra past;
shl.b32 %half, %s, 2;
{one("add.u32 %at, %spot, %half;", "add.u32 %at, %spot, 64;", "sub.u32 %at, %spot, %half;")}
ld.shared.u32 %y, [{one("%spot", "%spot", "block", "%spot+4")}];
ld.shared.u32 %z, [%at];
{one("add.u32 %y, %y, %z;", "mad.lo.u32 %y, %y, %x, %z;", "xor.b32 %y, %y, %z;")}
st.shared.u32 [{one("%spot", "%spot", "%at", "block+4")}], %y;
past:
{one("", "", "", "add.u32 %r, %r, %s;", "add.u32 %r, %r, %x;", "ld.shared.u32 %r, [%spot];")}
bar.sync 0;
{step}
{bound}
@%w bra lap;
last:
mov.u32 %blocks, %nctaid.x;
mul.lo.u32 %all, %blocks, %n;
mul.wide.u32 %far, %i, 4;
add.u64 %mine, %base, %far;
{one("", "", f"{compared} %x, {one('0', '0', '1', '40', '64')}; @%q bra over;")}
ld.shared.u32 %o, [{one("%spot", "block", "%spot")}];
st.global.u32 [%mine+4096], %o;
mul.wide.u32 %plane, %all, 4;
add.u64 %own, {one("%mine", "%base")}, %plane;
{one("", "st.global.u32 [%own+4096], %r;")}
over:
ret;
}}
"""


@st.composite
def tiled_kernels(draw: st.DrawFn) -> str:
    """Draws a kernel `k(buffer)` for blocks 16 wide that loads tiles into shared memory by rows,
    reads rows and columns there, and continues with the next tile. The buffer is that of
    `shaped_kernels`."""

    def one(*choices: str) -> str:
        return draw(st.sampled_from(choices))

    pitch = one("16", "16", "32", "32", "8", "5", "0", "0", "-16", "0x4000000")
    wide = f"mul.wide.{one('s32', 'u32')}"
    return f"""
.version 8.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 buffer)
{{
.reg .u32 %r<4>, %x, %y, %n, %i, %z, %c, %t, %w, %m, %at, %row, %spot, %own, %a<4>, %b<4>;
.reg .u32 %sum, %f, %tile<6>;
.reg .u64 %base, %off, %from, %far, %mine;
.reg .pred %p, %q;
.shared .align 16 .b8 tile[2048];
ld.param.u64 %base, [buffer];
mov.u32 %x, %tid.x;
mov.u32 %y, %tid.y;
mov.u32 %c, %ctaid.x;
mov.u32 %n, {pitch};
mad.lo.u32 %i, %y, %n, %x;
{one("", "", "and.b32 %i, %i, 63;", "mul.lo.u32 %t, %y, %y; add.u32 %i, %i, %t;")}
{wide} %off, %i, 4;
add.u64 %from, %base, %off;
mov.u32 %at, tile;
shl.b32 %tile0, %y, {one("6", "6", "6", "5", "7")};
add.u32 %row, %tile0, %at;
shl.b32 %tile1, %x, 2;
add.u32 %own, %row, %tile1;
add.u32 %spot, %at, %tile1;
mov.u32 %sum, {one("0", "%x", "%c")};
mov.u32 %m, 0;
mov.u32 %f, 3;
lap:
ld.global.u32 %a0, [%from];
ld.global.u32 %a1, [%from+{one("64", "4", "128")}];
{one("", "add.u32 %a0, %a0, %m;", "mad.lo.u32 %a1, %a1, %y, %x;", "xor.b32 %f, %f, %a1;")}
st.shared.u32 [{one("%own", "%own", "%spot", "%row")}], %a0;
st.shared.u32 [%own+{one("1024", "64", "512")}], %a1;
{one("bar.sync 0;", "bar.sync 0;", "")}
ld.shared.u32 %b0, [%row+{one("4", "8", "0")}];
ld.shared.{one("u32 %b1", "u32 %b1", "v2.u32 {%b1, %b2}")}, [%row+16];
ld.shared.u32 %b3, [%spot+{one("64", "0", "1024")}];
mad.lo.u32 %sum, %b0, %b3, %sum;
{one("", "add.u32 %sum, %sum, %b1;", "mad.lo.u32 %sum, %b1, %b1, %sum;")}
{one("", "", "mul.wide.u32 %far, %b0, 4;", "st.shared.u32 [%own], %sum;")}
bar.sync 0;
add.u64 %from, %from, {one("64", "4", "128", "32")};
add.u32 %m, %m, 1;
setp.lt.u32 %q, %m, {one("3", "5")};
@%q bra lap;
mov.u32 %t, %ntid.y;
mad.lo.u32 %t, %c, %t, %y;
shl.b32 %t, %t, 4;
add.u32 %t, %t, %x;
mul.wide.u32 %far, %t, {OUT_BYTES};
add.u64 %mine, %far, %base;
add.u64 %mine, %mine, 4096;
st.global.v4.u32 [%mine], {{%sum, %f, %a0, %b3}};
ret;
}}
"""


@st.composite
def shaped_kernels(draw: st.DrawFn, body: st.SearchStrategy[str] | None = None) -> str:
    """Draws a kernel `k(buffer)` with `body`, or with `steps`. The buffer has a page of 4096 bytes
    that is read and never written, then OUT_BYTES for each thread."""
    begin = "\n".join(draw(st.sampled_from(STARTS)).format(d=f"%r{n}") for n in range(WORDS))
    middle = draw(steps(2, True) if body is None else body)
    end = "\n".join(f"st.global.u32 [%mine+{64 + 4 * n}], %r{n};" for n in range(WORDS))
    wide = "\n".join(f"st.global.u64 [%mine+{88 + 8 * n}], %d{n};" for n in range(3))
    return f"""
.version 8.0
.target sm_70
.address_size 64
.const .align 4 .u32 table[4] = {{7, 11, 13, 17}};
.global .align 8 .u32 cells[32];
.visible .entry k(.param .u64 buffer)
{{
.reg .u32 %r<{WORDS}>;
.reg .u64 %d<3>;
.reg .u16 %short;
.reg .pred %p<3>, %lapped;
.reg .u32 %lap<3>, %laps<3>, %i, %n, %j, %t, %x, %words, %block, %spot;
.reg .u32 %u<3>, %rank, %width, %high, %m<16>;
.reg .u64 %base, %mine, %wide, %row, %own;
.shared .align 8 .b8 block[1024];
ld.param.u64 %base, [buffer];
mov.u32 %j, %ctaid.x;
mov.u32 %n, %ntid.x;
mov.u32 %t, %ntid.y;
mul.lo.u32 %n, %n, %t;
mov.u32 %t, %tid.y;
mov.u32 %i, %ntid.x;
mul.lo.u32 %t, %t, %i;
mov.u32 %width, %ntid.x;
mov.u32 %i, %tid.x;
add.u32 %t, %t, %i;
mov.u32 %high, %tid.y;
mov.u32 %x, %tid.x;
mad.lo.u32 %rank, %high, %width, %x;
mad.lo.u32 %i, %j, %n, %t;
mul.wide.u32 %mine, %i, {OUT_BYTES};
add.u64 %mine, %mine, %base;
add.u64 %mine, %mine, 4096;
mov.u64 %own, %mine;
mov.u32 %x, %tid.x;
shl.b32 %words, %x, 2;
mov.u32 %block, block;
add.u32 %spot, %words, %block;
mul.wide.u32 %wide, %x, 4;
add.u64 %row, %wide, %base;
ld.global.u32 %u0, [%base+12];
shl.b32 %u1, %u0, 16;
mov.u32 %u2, %ctaid.x;
{begin}
{middle}
{end}
{wide}
ret;
}}
"""
