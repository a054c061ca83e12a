"""Checks shuffles, votes and vector moves."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runs import run

ALL = 0xFFFFFFFF


def shuffled(
    mode: str, amount: int, control: int, *, before: str = ""
) -> tuple[list[int], list[int]]:
    """Returns the value that each lane received, of lane numbers plus 100, and its predicate."""
    done = run(f"""
        add.u32 %r1, %t, 100;
        {before}
        shfl.sync.{mode}.b32 %v|%p1, %r1, {amount}, {control}, -1;
        selp.u32 %r2, 1, 0, %p1;
        st.global.u32 [%mine], %v;
        st.global.u32 [%mine+128], %r2;
        ret;
    """)
    return (done.words[:32] - 100).tolist(), done.words[32:64].tolist()


def test_shuffles_over_the_whole_warp() -> None:
    lanes = range(32)
    got, inside = shuffled("up", 3, 0)
    assert got == [max(lane - 3, lane if lane < 3 else 0) for lane in lanes]
    assert inside == [int(lane >= 3) for lane in lanes]
    got, inside = shuffled("down", 3, 31)
    assert got == [lane + 3 if lane + 3 < 32 else lane for lane in lanes]
    assert inside == [int(lane + 3 < 32) for lane in lanes]
    assert shuffled("bfly", 5, 31) == ([lane ^ 5 for lane in lanes], [1] * 32)
    assert shuffled("idx", 7, 31) == ([7] * 32, [1] * 32)


def test_shuffles_in_segments_of_eight() -> None:
    """Uses the operand of CUDA's __shfl_*_sync(..., width = 8): c holds 0b11000, the bits that
    select the segment, above the last lane 31, of which only the other bits count."""
    lanes = range(32)
    got, inside = shuffled("down", 2, 0x181F)
    assert got == [lane + 2 if lane % 8 < 6 else lane for lane in lanes]
    assert inside == [int(lane % 8 < 6) for lane in lanes]
    got, _ = shuffled("up", 2, 0x1800)
    assert got == [lane - 2 if lane % 8 >= 2 else lane for lane in lanes]
    assert shuffled("idx", 11, 0x181F)[0] == [lane // 8 * 8 + 3 for lane in lanes]


def test_a_lane_that_takes_no_part_gives_the_reader_its_own_value() -> None:
    done = run("""
        and.b32 %r2, %t, 1;
        setp.eq.u32 %p2, %r2, 0;
        @!%p2 bra END;
        shfl.sync.down.b32 %v, %t, 1, 31, -1;
        st.global.u32 [%mine], %v;
        shfl.sync.down.b32 %v, %t, 2, 31, -1;
        st.global.u32 [%mine+128], %v;
    END:
        ret;
    """)
    even = np.arange(0, 32, 2)
    assert done.words[:32:2].tolist() == even.tolist()
    assert done.words[32:64:2].tolist() == [*range(2, 32, 2), 30]


@pytest.mark.parametrize(
    ("holds", "answers"),
    [(0, (0, 0, 1, 0)), (5, (0, 1, 0, 0x1F)), (32, (1, 1, 1, ALL))],
)
def test_votes(holds: int, answers: tuple[int, int, int, int]) -> None:
    """Sets the predicate in lanes below `holds`: all, any, uni, and the ballot."""
    done = run(f"""
        setp.lt.u32 %p1, %t, {holds};
        vote.sync.all.pred %p2, %p1, -1;
        vote.sync.any.pred %p3, %p1, -1;
        vote.uni.pred %p4, %p1;
        vote.sync.ballot.b32 %r4, %p1, -1;
        selp.u32 %r1, 1, 0, %p2;
        selp.u32 %r2, 1, 0, %p3;
        selp.u32 %r3, 1, 0, %p4;
        st.global.v4.u32 [%out], {{%r1, %r2, %r3, %r4}};
        ret;
    """)
    assert tuple(done.words[:4].tolist()) == answers


def test_votes_include_only_lanes_that_execute_them() -> None:
    done = run("""
        setp.ge.u32 %p1, %t, 4;
        @%p1 bra END;
        vote.sync.ballot.b32 %r1, !%p1, -1;
        vote.all.pred %p2, !%p1;
        selp.u32 %r2, 1, 0, %p2;
        st.global.v2.u32 [%out], {%r1, %r2};
    END:
        ret;
    """)
    assert done.words[:2].tolist() == [0xF, 1]


def test_moves_pack_and_unpack_lowest_part_first() -> None:
    done = run("""
        mov.u32 %r1, 0x11112222;
        mov.u32 %r2, 0x33334444;
        mov.b64 %d1, {%r1, %r2};
        mov.b64 {%h1, _, %h2, %h3}, %d1;
        mov.b32 %r3, {%h3, %h1};
        mov.b64 {_, %r4}, %d1;
        st.global.u64 [%out], %d1;
        st.global.u32 [%out+8], %r3;
        st.global.u32 [%out+12], %r4;
        ret;
    """)
    assert done.words[:4].tolist() == [0x11112222, 0x33334444, 0x22223333, 0x33334444]


def test_results_extend_into_wider_registers() -> None:
    done = run("""
        mov.u32 %r1, 0x80;
        cvt.s8.s32 %r2, %r1;
        cvt.u8.u32 %r3, 0x1ff;
        cvt.s16.s32 %d1, -2;
        st.global.v2.u32 [%out], {%r2, %r3};
        st.global.u64 [%out+8], %d1;
        ret;
    """)
    assert done.words[:4].tolist() == [0xFFFFFF80, 0xFF, 0xFFFFFFFE, 0xFFFFFFFF]


def test_pairs_of_predicates_and_negated_operands() -> None:
    done = run("""
        setp.lt.u32 %p1|%p2, %t, 8;
        setp.lt.and.u32 %p3|_, %t, 16, !%p1;
        selp.u32 %r1, 1, 0, %p1;
        selp.u32 %r2, 2, 0, %p2;
        selp.u32 %r3, 4, 0, %p3;
        add.u32 %v, %r1, %r2;
        add.u32 %v, %v, %r3;
        st.global.u32 [%mine], %v;
        ret;
    """)
    assert done.words[:32].tolist() == [1] * 8 + [6] * 8 + [2] * 16


def test_float_literals_take_the_width_of_the_instruction() -> None:
    done = run("""
        mov.f32 %r1, 0d3FF8000000000000;
        add.f32 %r2, %r1, 0f3F800000;
        mov.f64 %d1, 0f3F800000;
        mov.f32 %r3, 0d3FB999999999999A; // 0.1, which rounds up
        st.global.v2.u32 [%out], {%r1, %r2};
        st.global.u64 [%out+8], %d1;
        st.global.u32 [%out+16], %r3;
        ret;
    """)
    floats = done.words[:2].view(np.float32).tolist()
    assert floats == [1.5, 2.5]
    assert done.words[2:4].view(np.float64).tolist() == [1.0]
    assert done.words[4] == 0x3DCCCCCD
