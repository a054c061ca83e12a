"""Accesses in rows of lanes, whole and with lanes missing: compiled code takes most of them in few
steps, the reference machine none, and both find the same."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import warploom as wl

THREADS, BLOCKS, CAPACITY = 64, 2, 4096
SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "v4.u32": 16}
"""Bytes that a lane reaches, by the types of accesses."""

PLACES = {
    "a row": "mov.u32 %n, %t;",
    "a row in each block": "mad.lo.u32 %n, %c, 64, %t;",
    "two rows in a warp": "and.b32 %m, %t, 16; mad.lo.u32 %n, %m, 3, %t;",
    "one place": "mov.u32 %n, 5;",
    "one place in a warp": "shr.u32 %n, %t, 5;",
    "backwards": "sub.u32 %n, 63, %t;",
    "pairs": "xor.b32 %n, %t, 1;",
    "every other": "shl.b32 %n, %t, 1;",
}
MASKS = (0xFFFFFFFF, 0xFFFFFFFE, 0x0000FFFF, 0x55555555, 0x80000001, 0)
HEAD = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry rows(.param .u64 p)
{
 .reg .pred %p; .reg .b32 %n, %m, %l, %t, %c, %v<4>; .reg .b64 %a, %b, %w; .reg .b16 %h;
 .shared .align 16 .b8 s[4096];
 ld.param.u64 %b, [p];
 mov.u32 %l, %laneid; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x;
"""
VALUES = {"u8": "%h", "u16": "%h", "u32": "%v0", "u64": "%w", "v4.u32": "{%v0, %v1, %v2, %v3}"}


def access(draw: Random) -> str:
    """Return the text of a random access."""
    kind, mask = (
        draw.choice(list(SIZES)),
        draw.choice((MASKS[0], draw.choice(MASKS), draw.getrandbits(32))),
    )
    shared, offset = draw.random() < 0.5, SIZES[kind] * draw.randrange(0, 24)
    base = "mov.u64 %w, s; add.u64 %a, %a, %w;" if shared else "add.u64 %a, %a, %b;"
    space, place = "shared" if shared else "global", f"[%a + {offset}]"
    made = f"ld.{space}.{kind} {VALUES[kind]}, {place};"
    if draw.random() < 0.4:
        made = f"st.{space}.{kind} {place}, {VALUES[kind]};"
    return f"""
 {PLACES[draw.choice(list(PLACES))]}
 mul.wide.u32 %a, %n, {SIZES[kind]}; {base}
 shr.u32 %m, {mask}, %l; and.b32 %m, %m, 1; setp.ne.u32 %p, %m, 0;
 @%p {made}
 {"bar.sync 0;" if draw.random() < 0.3 else ""}"""


def program(seed: int) -> str:
    """Return the text of a random kernel."""
    draw = Random(seed)
    zeros = "".join(f"mov.u32 %v{n}, 0; " for n in range(4)) + "mov.u16 %h, 0; "
    return HEAD + zeros + "".join(access(draw) for _ in range(draw.randint(3, 9))) + "\n ret;\n}\n"


def found(engine: str, text: str) -> list[tuple[object, ...]]:
    """Return what the race detector finds in a kernel: kinds, instructions, counts, the first
    thread and the first byte. Which of several threads is named as the other one may differ:
    compiled code leaves out reads that nothing can be in conflict with (decision 39), and what is
    kept of the others stands in another order then."""
    kernel = wl.Device(engine=engine).compile(text, "ptx")["rows"]
    findings = kernel[BLOCKS, THREADS](np.zeros(CAPACITY, np.uint8), sanitize=("race",)).findings
    return [(one.kind, one.instructions, one.count, one.threads[0], one.offset) for one in findings]


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(4, 400, 4))]
)
def test_both_machines_find_the_same_in_rows_of_lanes(first: int) -> None:
    for seed in range(first, first + 4):
        text = program(seed)
        assert found("compiled", text) == found("reference", text), text
