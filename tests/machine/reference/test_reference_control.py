"""Checks control flow of whole kernels: masks and counts by hand, barriers, deadlocks and
limits."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runs import run

from warploom.core.errors import DeadlockError, DeviceTrap, InstructionLimit


def test_if_else_runs_both_sides_and_reconverges() -> None:
    done = run("""
        and.b32 %r1, %t, 3;
        setp.eq.u32 %p1, %r1, 0;
        @%p1 bra THEN;
        mov.u32 %v, 10;
        bra.uni END;
    THEN:
        mov.u32 %v, 20;
    END:
        activemask.b32 %r2;
        st.global.u32 [%mine], %v;
        st.global.u32 [%mine+128], %r2;
        ret;
    """)
    lanes = np.arange(32)
    assert done.words[:32].tolist() == np.where(lanes % 4 == 0, 20, 10).tolist()
    assert set(done.words[32:64].tolist()) == {0xFFFFFFFF}
    branch = done.of("bra")
    assert done.tally.divergent[branch] == 1
    assert done.tally.reconvergences[branch] == 1
    assert done.tally.threads[branch] == 32
    assert done.tally.threads_on[branch] == 8
    assert done.tally.threads[done.of("bra.uni")] == 24
    assert done.tally.threads[done.of("activemask.b32")] == 32
    assert done.tally.divergent.sum() == 1


def test_a_loop_with_a_different_count_in_each_lane() -> None:
    """Iterates l % 4 + 1 times in lane l: iterations of 32, 24, 16 and 8 lanes; the loop's branch
    diverges in the first three, and all lanes reconverge once."""
    done = run("""
        and.b32 %r1, %t, 3;
        mov.u32 %r2, 0;
    LOOP:
        add.u32 %r2, %r2, 1;
        setp.le.u32 %p1, %r2, %r1;
        @%p1 bra LOOP;
        st.global.u32 [%mine], %r2;
        ret;
    """)
    assert done.words[:32].tolist() == [lane % 4 + 1 for lane in range(32)]
    body, branch = done.of("add.u32"), done.of("bra")
    assert (done.tally.warps[body], done.tally.threads[body]) == (4, 32 + 24 + 16 + 8)
    assert done.tally.threads_on[branch] == 24 + 16 + 8
    assert done.tally.divergent[branch] == 3
    assert done.tally.reconvergences[branch] == 1
    assert done.tally.warps[done.of("st.global.u32")] == 1


def test_nested_branches_run_the_side_that_falls_through_first() -> None:
    """Stores in every lane the value of a counter in memory; lanes 0-7, 8-15, 16-31 diverge."""
    done = run("""
        setp.lt.u32 %p1, %t, 16;
        @%p1 bra LOW;
        atom.global.add.u32 %r1, [%out+512], 1;
        bra.uni END;
    LOW:
        setp.lt.u32 %p2, %t, 8;
        @%p2 bra LOWEST;
        atom.global.add.u32 %r1, [%out+512], 1;
        bra.uni END;
    LOWEST:
        atom.global.add.u32 %r1, [%out+512], 1;
    END:
        st.global.u32 [%mine], %r1;
        ret;
    """)
    order = [*range(16, 32), *range(8, 16), *range(8)]
    assert np.argsort(done.words[:32]).tolist() == order
    assert done.tally.divergent.sum() == 2
    assert done.tally.reconvergences.sum() == 2
    assert done.tally.warps[done.of("st.global.u32")] == 1


def test_lanes_that_exit_execute_nothing_more() -> None:
    done = run("""
        setp.lt.u32 %p1, %t, 5;
        @%p1 exit;
        activemask.b32 %r1;
        st.global.u32 [%mine], %r1;
        ret;
    """)
    assert done.words[:32].tolist() == [0] * 5 + [0xFFFFFFE0] * 27
    leave = done.of("exit")
    assert (done.tally.threads[leave], done.tally.threads_on[leave]) == (32, 5)
    assert done.tally.divergent[leave] == 0
    assert done.tally.threads[done.of("ret")] == 27


def test_exits_on_one_side_of_a_branch_leave_the_other_to_go_on() -> None:
    done = run("""
        setp.lt.u32 %p1, %t, 16;
        setp.lt.u32 %p2, %t, 4;
        @%p1 bra LOW;
        st.global.u32 [%mine], 1;
        ret;
    LOW:
        @%p2 ret;
        st.global.u32 [%mine], 2;
        ret;
    """)
    assert done.words[:32].tolist() == [0] * 4 + [2] * 12 + [1] * 16
    assert done.tally.divergent.sum() == 1
    assert done.tally.reconvergences.sum() == 0  # they meet nowhere but at the end


def test_a_partial_warp_starts_with_the_lanes_that_exist() -> None:
    done = run("activemask.b32 %r1; st.global.u32 [%mine], %r1; ret;", block=40)
    assert done.words[:41].tolist() == [0xFFFFFFFF] * 32 + [0xFF] * 8 + [0]
    assert done.tally.launched_warps == 2
    assert done.tally.threads[0] == 40


def test_calls_run_in_place() -> None:
    done = run(
        """
        setp.lt.u32 %p1, %t, 2;
        {
            .param .b32 given;
            .param .b32 taken;
            st.param.b32 [given], %t;
            @%p1 call.uni (taken), twice, (given);
            ld.param.b32 %r1, [taken];
        }
        st.global.u32 [%mine], %r1;
        ret;
        """,
        module="""
        .func (.param .b32 out) twice(.param .b32 in)
        {
            .reg .b32 %r<4>;
            ld.param.b32 %r1, [in];
            add.u32 %r1, %r1, %r1;
            add.u32 %r1, %r1, 100;
            st.param.b32 [out], %r1;
            ret;
        }
        """,
    )
    assert done.words[:32].tolist() == [100, 102] + [0] * 30
    assert done.tally.threads[done.of("call.uni")] == 2


def test_a_barrier_holds_warps_until_all_have_arrived() -> None:
    """Writes in warp 1 the value that warp 0 reads after the barrier, though warp 0 runs first."""
    done = run(
        """
        .shared .align 4 .b32 cell;
        mov.u32 %r1, %warpid;
        setp.eq.u32 %p1, %r1, 1;
        @%p1 st.shared.u32 [cell], 77;
        bar.sync 0;
        ld.shared.u32 %v, [cell];
        st.global.u32 [%mine], %v;
        ret;
        """,
        block=64,
    )
    assert set(done.words[:64].tolist()) == {77}
    assert done.tally.warps[done.of("bar.sync")] == 2


def test_a_barrier_awaits_only_warps_that_have_not_ended() -> None:
    done = run(
        """
        setp.lt.u32 %p1, %t, 32;
        @%p1 ret;
        bar.sync 0;
        st.global.u32 [%mine], 5;
        ret;
        """,
        block=96,
    )
    assert done.words[:96].tolist() == [0] * 32 + [5] * 64


def test_barriers_with_a_count_pair_up_warps() -> None:
    """Pairs warps 0 and 2 at barrier 1, and warps 1 and 3 at barrier 2, 64 threads each."""
    done = run(
        """
        mov.u32 %r1, %warpid;
        and.b32 %r2, %r1, 1;
        add.u32 %r2, %r2, 1;
        barrier.sync %r2, 64;
        st.global.u32 [%mine], %r2;
        ret;
        """,
        block=128,
    )
    assert done.words[:128].tolist() == [1] * 32 + [2] * 32 + [1] * 32 + [2] * 32


def test_a_barrier_as_the_last_instruction_still_waits() -> None:
    done = run("bar.sync 0;", block=64)
    assert done.tally.warps[done.of("bar.sync")] == 2


def test_warps_at_different_barriers_are_a_deadlock() -> None:
    with pytest.raises(DeadlockError) as caught:
        run(
            """
            setp.lt.u32 %p1, %t, 32;
            @%p1 bra FIRST;
            bar.sync 1;
            ret;
        FIRST:
            bar.sync 0;
            ret;
            """,
            block=64,
        )
    first, second = caught.value.groups
    assert (first.warp, second.warp) == (0, 1)
    assert first.lanes == tuple(range(32))
    assert "barrier 0" in first.waits_for
    assert "barrier 1" in second.waits_for
    assert first.line != second.line
    assert first.line in str(caught.value)


def test_a_lane_that_waits_for_another_of_its_warp_never_ends() -> None:
    """Takes a lock in one lane while others of its warp spin, which deadlocks before independent
    thread scheduling."""
    with pytest.raises(InstructionLimit):
        run(
            """
        SPIN:
            atom.global.cas.b32 %r1, [%out], 0, 1;
            setp.ne.u32 %p1, %r1, 0;
            @%p1 bra SPIN;
            st.global.u32 [%out], 0;
            ret;
            """,
            limit=2000,
        )


def test_the_limit_is_the_number_of_warp_instructions() -> None:
    used = int(run("ret;").tally.warps.sum())
    assert used == 5
    run("ret;", limit=used)
    with pytest.raises(InstructionLimit):
        run("ret;", limit=used - 1)


def test_a_trap_names_its_thread() -> None:
    with pytest.raises(DeviceTrap) as caught:
        run("setp.gt.u32 %p1, %t, 40; @%p1 trap; ret;", block=64)
    assert caught.value.thread == (41, 0, 0)
    run("setp.gt.u32 %p1, %t, 40; @%p1 trap; ret;", block=32)


def test_special_registers_of_a_launch_in_three_dimensions() -> None:
    """Expects thread (x, y, z) to have number x + 4y + 12z; block (i, j) of a 2 x 2 grid writes 24
    words."""
    done = run(
        """
        mov.u32 %r1, %tid.x;
        mov.u32 %r2, %tid.y;
        mov.u32 %r3, %tid.z;
        mov.u32 %r4, %ntid.x;
        mov.u32 %r5, %ntid.y;
        mad.lo.u32 %r6, %r3, %r5, %r2;
        mad.lo.u32 %r6, %r6, %r4, %r1;
        mov.u32 %r7, %ctaid.x;
        mov.u32 %r8, %ctaid.y;
        mov.u32 %r9, %nctaid.x;
        mad.lo.u32 %r7, %r8, %r9, %r7;
        mad.lo.u32 %r8, %r7, 24, %r6;
        mul.wide.u32 %d1, %r8, 4;
        add.u64 %d1, %d1, %out;
        mad.lo.u32 %v, %r2, 100, %r1;
        mad.lo.u32 %v, %r3, 10000, %v;
        mad.lo.u32 %v, %r7, 1000000, %v;
        st.global.u32 [%d1], %v;
        ret;
        """,
        block=(4, 3, 2),
        grid=(2, 2, 1),
    )
    indices = [(b, z, y, x) for b in range(4) for z in range(2) for y in range(3) for x in range(4)]
    wanted = [b * 1000000 + z * 10000 + y * 100 + x for b, z, y, x in indices]
    assert done.words[:96].tolist() == wanted


def test_lane_masks() -> None:
    masks = ("eq", "lt", "le", "gt", "ge")
    body = "".join(
        f"mov.u32 %r1, %lanemask_{name}; st.global.u32 [%mine+{128 * i}], %r1;"
        for i, name in enumerate(masks)
    )
    words = run(body + "ret;").words[: 32 * 5].reshape(5, 32)
    for lane in range(32):
        below, own = (1 << lane) - 1, 1 << lane
        above = 0xFFFFFFFF - below - own
        assert words[:, lane].tolist() == [own, below, below | own, above, above | own]
