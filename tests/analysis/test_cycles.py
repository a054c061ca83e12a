"""Tests for blocks and registers outside of cycles, against results worked out by hand."""

from __future__ import annotations

from warploom.analysis.cycles import blocks_outside_cycles, registers_outside_cycles
from warploom.program.build import build
from warploom.ptx.parser import parse

KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u32 count)
{
.reg .pred %p;
.reg .u32 %before, %i, %behind;
ld.param.u32 %before, [count];
mov.u32 %i, 0;
bra TEST;
BODY:
add.u32 %i, %i, 1;
TEST:
setp.lt.u32 %p, %i, 9;
@%p bra BODY;
add.u32 %behind, %before, 1;
ret;
}
"""


def test_blocks_that_no_back_edge_spans_are_outside_cycles() -> None:
    """The loop is entered in the midst: BODY and TEST, the second and the third block, are in a
    cycle. What it counts and tests is used there; what is read before and behind it is not."""
    program = build(parse(KERNEL), "k")
    assert blocks_outside_cycles(program) == {0, 3}
    names = {register.name for register in registers_outside_cycles(program)}
    assert names == {"%before", "%behind"}
