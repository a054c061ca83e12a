"""Tests the static schedules of kernels whose control flow depends on the size of the block."""

from __future__ import annotations

import pytest

from warploom.analysis.static_schedule import size_for_static_schedule, static_schedule_of
from warploom.analysis.uniformity import shapes_of
from warploom.program.build import build
from warploom.program.program import Program
from warploom.ptx.parser import parse
from warploom.shapes.warp_layout import WarpLayout, warp_layout_of

BEGIN = """
.version 8.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 buffer, .param .u32 laps)
{
.reg .u32 %x, %n, %words, %block, %spot, %far, %s, %half, %k, %y, %z, %sum;
.reg .u64 %base;
.reg .pred %p, %q;
.shared .align 128 .b8 block[8192];
ld.param.u64 %base, [buffer];
mov.u32 %x, %tid.x;
shl.b32 %words, %x, 2;
mov.u32 %block, block;
add.u32 %spot, %words, %block;
st.shared.u32 [%spot], %x;
bar.sync 0;
"""
END = """
setp.ne.u32 %q, %x, 0;
@%q bra over;
ld.shared.u32 %z, [block];
st.global.u32 [%base], %z;
over:
ret;
}
"""
HALVES = """
mov.u32 %n, %ntid.x;
shr.u32 %s, %n, 1;
setp.eq.u32 %p, %s, 0;
@%p bra last;
lap:
setp.ge.u32 %q, %x, %s;
@%q bra past;
shl.b32 %half, %s, 2;
add.u32 %far, %spot, %half;
ld.shared.u32 %y, [%far];
st.shared.u32 [%spot], %y;
past:
bar.sync 0;
shr.u32 %s, %s, 1;
setp.ne.u32 %p, %s, 0;
@%p bra lap;
last:
"""
"""The loop `for (s = blockDim.x / 2; s > 0; s /= 2)`."""

LAPS = """
ld.param.u32 %n, [laps];
mov.u32 %k, 0;
lap:
ld.shared.u32 %y, [%spot];
st.shared.u32 [%spot], %y;
bar.sync 0;
add.u32 %k, %k, 1;
setp.lt.u32 %p, %k, %n;
@%p bra lap;
"""
"""The loop `for (k = 0; k < laps; k++)`."""


def program(body: str) -> Program:
    return build(parse(BEGIN + body + END), "k")


def lengths(body: str, size: tuple[int, int, int] | None) -> int:
    made, warp_layout = program(body), WarpLayout.LINE
    return len(static_schedule_of(made, warp_layout, shapes_of(made, warp_layout), size))


@pytest.mark.parametrize(("threads", "barriers"), [(32, 6), (64, 7), (256, 9), (1024, 11), (96, 7)])
def test_halving_loops_are_unrolled(threads: int, barriers: int) -> None:
    """There is a barrier for each bit of the number of threads but the lowest: 96 threads go
    through s = 48, 24, 12, 6, 3 and 1. One barrier comes before; after the last one the kernel
    ends."""
    assert lengths(HALVES, (threads, 1, 1)) == barriers + 1


def test_no_schedule_without_the_size() -> None:
    assert lengths(HALVES, None) == 0


def test_no_schedule_for_loop_bounds_from_parameters() -> None:
    assert lengths(LAPS, (64, 1, 1)) == 0
    assert size_for_static_schedule(program(LAPS), (64, 1, 1)) is None


def test_a_schedule_for_all_sizes_needs_no_size() -> None:
    assert lengths("", None) == 2
    assert size_for_static_schedule(program(""), (64, 1, 1)) is None


def test_the_size_is_returned_where_it_is_needed() -> None:
    assert size_for_static_schedule(program(HALVES), (64, 1, 1)) == (64, 1, 1)


@pytest.mark.parametrize("size", [(40, 1, 1), (32, 2, 1), (64, 1, 2)])
def test_other_layouts_have_no_schedule(size: tuple[int, int, int]) -> None:
    """The last warp is not full, or not all threads are along x."""
    assert warp_layout_of(size) is not WarpLayout.ROWS
    assert size_for_static_schedule(program(HALVES), size) is None


def test_no_schedule_for_too_many_barriers() -> None:
    steps = "bar.sync 0;\n" * 30
    assert lengths(steps, None) == 0
