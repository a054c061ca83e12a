"""Draws small PTX modules from the manual's grammar of declarations and operands, right and wrong.

Left out is what is taken here and not by ptxas (`[a - 4]`, constant addresses), and what ptxas
takes and is an error here on purpose: numbers that do not fit, which it cuts, 16-bit addresses.

Source: PTX ISA, "State Spaces, Types, and Variables" and "Instruction Operands"."""

from __future__ import annotations

import random


def split(text: str) -> tuple[str, ...]:
    """Returns what stands between semicolons, with one blank between words."""
    return tuple(" ".join(part.split()) for part in text.split(";"))


TYPES = ("b8", "u8", "s16", "u16", "b32", "u32", "s32", "f32", "b64", "u64", "f64", "pred", "f16")
SPACES = ("global", "global", "const", "shared", "shared", "local", "param", "reg")
LINKAGES = ("", "", "", "", ".visible ", ".extern ", ".weak ")
ALIGNMENTS = ("", "", "", ".align 4 ", ".align 16 ", ".align 3 ")
VECTORS = ("", "", "", ".v2 ", ".v4 ", ".v3 ")
SHAPES = ("", "", "[4]", "[2][3]", "[]", "[0]")
VALUES = (
    *("", "", "", "", " = 7", " = {1, 2}", " = {{1, 2}, {3}}", " = 1.5", " = 0f3F800000"),
    *(" = -1", " = 300", " = {1, 2, 3, 4, 5, 6, 7}", " = cell", " = {cell, cell + 4}"),
    *(" = generic(cell)", " = 2 * 3 + 1", " = !0", " = (1 << 4) | 2", " = 5 > 3 ? 1 : 2"),
)
REGISTERS = """.reg .pred p, q; .reg .b16 h, i; .reg .u32 r, s; .reg .b32 b; .reg .u64 a, c;
.reg .f32 f, g; .reg .f64 d; .reg .v2 .u32 v; .reg .v4 .f32 w; .reg .v4 .b16 n; .reg .b32 t<3>;"""
OUTSIDE = """.global .align 16 .u32 cell; .const .u32 table[4] = {1, 2, 3, 4};
.shared .align 16 .b8 block[64]; .global .align 8 .b64 wide[3];"""
INSIDE = ".local .align 16 .b8 own[32]; .shared .f32 mine;"

WORDS = (
    *("r", "s", "b", "f", "h", "a", "d", "q", "v.x", "w.y", "n.z", "v", "t1", "t3", "7", "-7"),
    *("0x1F", "1.5", "0f3F800000", "0d3FF0000000000000", "WARP_SZ", "r + 1", "cell"),
    *("cell + 4", "table", "block", "own", "{r, s}", "_", "!q", "-r", "(1 + 2) * 3"),
    *("1U", "'a'", "table[1]", "block[2]", "out", "4 == 4", "-1.5"),
    *("0b101", "017", "1e3", "mine", "undeclared"),
)
PLACES = split(
    """[a]; [a + 4]; [a + -4]; [cell]; [cell + 4]; [table + 4]; [block]; [block + r]; [own]; [f];
[table[1]]; a; [out]; []; cell; table[2]; [wide + 8]; [mine]; [v]; [a + 4 + 4]; [a + 2 * 4]"""
)
INSTRUCTIONS = split(
    """mov.u32 r, {0}; mov.b32 b, {0}; mov.f32 f, {0}; mov.u64 a, {0}; mov.pred p, {0};
mov.b64 a, {{r, {0}}}; mov.b64 {{r, b}}, {0}; mov.b16 h, {0}; add.u32 r, s, {0};
add.f32 f, g, {0}; add.s64 a, c, {0}; mul.lo.u16 h, i, {0}; and.b32 b, r, {0};
setp.lt.u32 p, r, {0}; selp.b32 r, s, {0}, q; and.pred p, q, {0}; selp.f32 f, {0}, g, q;
cvt.u64.u32 a, {0}; cvt.u32.u16 r, {0}; cvt.rn.f32.s32 f, {0}; shl.b32 b, r, {0};
mad.lo.u32 r, s, {0}, s; fma.rn.f32 f, g, {0}, f; not.b32 b, {0}; st.global.u32 [a], {0};
st.global.f32 [a], {0}; st.global.v2.u32 [a], {0}; neg.f32 f, {0}; st.global.u8 [a], {0};
st.shared.b64 [block], {0}; mov.u32 {0}, s; add.f32 {0}, f, g; ld.global.u32 r, {1};
ld.global.v2.u32 {{r, s}}, {1}; ld.const.u32 r, {1}; ld.u32 r, {1}; ld.shared.f32 f, {1};
st.shared.u32 {1}, r; st.global.u32 {1}, r; ld.local.u8 r, {1}; st.local.v4.f32 {1}, w;
ld.param.u64 a, {1}; atom.global.add.u32 r, {1}, s; red.shared.add.u32 {1}, {0};
ld.global.u64 r, {1}; ld.global.u16 h, {1}; st.f64 {1}, d"""
)
PARAMETERS = split(
    """.param .u32 x; .reg .u32 x; .param .align 8 .b8 x[12]; .reg .v2 .u32 x; .reg .pred x;
.param .b8 x; .param .v2 .f32 x; .param .u64 .ptr .global .align 4 x; .reg .u32 x[2];
.param .pred x; .shared .u32 x; .param .b8 x[]; .param .f16 x; .reg .b8 x; .u32 x;
.reg .v4 .b16 x; .param .u32 x = 1; .param .align 3 .b32 x; .reg .f64 x"""
)


def module(outside: str = "", inside: str = "") -> str:
    """Returns a module with a kernel `k(out)`, declarations and statements in both places."""
    return f""".version 8.0
.target sm_80
.address_size 64
{OUTSIDE}
{outside}
.visible .entry k(.param .u64 out)
{{
{REGISTERS}
{INSIDE}
ld.param.u64 a, [out];
{inside}
ret;
}}
"""


def declared(rng: random.Random) -> str:
    """Draws a declaration of a variable or a register."""
    space = rng.choice(SPACES)
    name = rng.choice(("x", "x", "x", "%x", "_x", "$x", "x, y", "x<3>", "x.y", "3x", "cell"))
    front = f"{rng.choice(LINKAGES)}.{space} {rng.choice(ALIGNMENTS)}{rng.choice(VECTORS)}"
    return f"{front}.{rng.choice(TYPES)} {name}{rng.choice(SHAPES)}{rng.choice(VALUES)};"


def drawn(rng: random.Random) -> tuple[str, str]:
    """Draws what stands outside and inside of the kernel of a module, and may be wrong."""
    kind = rng.randrange(8)
    if kind == 0:
        return declared(rng), ""
    if kind == 1:
        return "", declared(rng)
    if kind == 2:
        first, second = rng.choice(PARAMETERS), rng.choice(PARAMETERS)
        results = rng.choice(("", f"({first.replace('x', 'y')}) "))
        return f".func {results}f ({second}) {{ ret; }}", ""
    return "", instruction(rng) + ";"


def instruction(rng: random.Random) -> str:
    """Draws an instruction with an operand of any form, perhaps behind a guard."""
    guard = rng.choice(("", "", "", "", "@q ", "@!q ", "@r ", "@!%undeclared "))
    return guard + rng.choice(INSTRUCTIONS).format(rng.choice(WORDS), rng.choice(PLACES))
