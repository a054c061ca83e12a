"""Checks which loops run in batches, by the registers of 32 lanes that are live around them."""

from __future__ import annotations

import pytest

from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.launch import Launch
from warploom.program.build import build
from warploom.program.program import Program
from warploom.ptx.parser import parse

SUMS = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 from, .param .u32 laps)
{{
.reg .u32 %x, %laps; .reg .u64 %from, %at; .reg .{type} %v, %sum<{count}>; .reg .pred %p;
ld.param.u64 %from, [from]; ld.param.u32 %laps, [laps];
mov.u32 %x, %tid.x; mad.wide.u32 %at, %x, 8, %from;
{begin}
again:
ld.global.{type} %v, [%at];
{add}
add.s64 %at, %at, 4096;
sub.u32 %laps, %laps, 1;
setp.ne.u32 %p, %laps, 0;
@%p bra again;
{end}
ret;
}}
"""


def sums(type: str, count: int) -> Program:
    """Returns a kernel with a loop that adds what it loads to several sums."""

    def each(line: str) -> str:
        return "\n".join(line.format(type=type, n=number) for number in range(count))

    begin = each("ld.global.{type} %sum{n}, [%at];")
    add = each("add.{type} %sum{n}, %sum{n}, %v;")
    end = each("st.global.{type} [%at], %sum{n};")
    return build(parse(SUMS.format(type=type, count=count, begin=begin, add=add, end=end)), "k")


@pytest.mark.parametrize(
    ("type", "count", "batched"),
    [
        ("f64", 1, True),
        ("f64", 2, False),  # 2 * 32 * 8 bytes fill 16 registers of 32 bytes.
        ("f32", 3, True),
        ("f32", 4, False),
    ],
)
def test_loops_whose_live_registers_fill_those_of_the_host_have_no_batches(
    type: str, count: int, batched: bool
) -> None:
    ir = CompiledEngine().warp_ir(sums(type, count), Launch((1, 1, 1), (256, 1, 1), b""))
    assert bool(ir.strided_loops) == batched
