"""Barriers in memory (PTX ISA, mbarrier): phases, tokens, transactions."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

ENGINES = ("reference", "compiled")
POLICIES = ("converge", "fair", "random", "adversarial")
WAYS = [("reference", "converge"), *(("compiled", policy) for policy in POLICIES)]

HEADER = """
.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<16>;
    .reg .b64 %d<8>, %s<8>, %g;
    .reg .pred %p<8>;
    .shared .align 8 .b64 bar;
    .shared .align 16 .b32 box[64];
    ld.param.u64 %d1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d2, %r1, 4;
    add.u64 %d1, %d1, %d2;
    setp.eq.u32 %p7, %r1, 0;
    cvta.shared.u64 %g, bar;
"""


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return request.param


def run(body: str, threads: int, engine: str, policy: str = "converge") -> np.ndarray:
    """A word of each thread, which finds its number in %r1 and its word at %d1."""
    gpu = wl.Device("h100", engine=engine, schedule=policy, seed=5)
    out = gpu.zeros(threads, np.uint32)
    gpu.compile(f"{HEADER}{body}\n}}\n", "ptx")["k"][1, threads](out)
    return out.copy_to_host()


@pytest.mark.parametrize(("engine", "policy"), WAYS)
def test_all_threads_meet_phase_by_phase(policy: str, engine: str) -> None:
    """Thread t reads what thread t + 1 wrote before the barrier, three times: 3 (t + 1) + 0+1+2."""
    body = """
    @%p7 mbarrier.init.shared::cta.b64 [bar], 64;
    bar.sync 0;
    mov.u32 %r2, box;
    shl.b32 %r3, %r1, 2;
    add.u32 %r4, %r2, %r3;      // my box
    add.u32 %r5, %r1, 1;
    and.b32 %r5, %r5, 63;
    shl.b32 %r5, %r5, 2;
    add.u32 %r5, %r5, %r2;      // my neighbor's
    mov.u32 %r6, 0;
    mov.u32 %r7, 0;
round:
    add.u32 %r8, %r1, %r7;
    st.shared.u32 [%r4], %r8;
    mbarrier.arrive.shared.b64 %s1, [bar];
first:
    mbarrier.test_wait.shared.b64 %p1, [bar], %s1;
    @!%p1 bra first;
    ld.shared.u32 %r8, [%r5];
    add.u32 %r6, %r6, %r8;
    mbarrier.arrive.release.cta.b64 %s1, [%g];
second:
    mbarrier.try_wait.acquire.cta.shared::cta.b64 %p1, [bar], %s1, 1000;
    @!%p1 bra second;
    add.u32 %r7, %r7, 1;
    setp.lt.u32 %p2, %r7, 3;
    @%p2 bra round;
    st.global.u32 [%d1], %r6;
    ret;
    """
    found = run(body, 64, engine, policy)
    assert found.tolist() == [3 * ((t + 1) % 64) + 3 for t in range(64)]


def test_tokens_counts_and_drops(engine: str) -> None:
    """One thread alone: an mbarrier of 7, by the definition of each operation."""
    body = """
    mov.u32 %r2, 0;
    mbarrier.init.b64 [%g], 7;
    mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %s1, [bar], 3;      // 4 are left
    mbarrier.arrive_drop.noComplete.b64 %s2, [%g], 2;       // 2 left; later phases have 5
    mbarrier.pending_count.b64 %r3, %s1;                    // 7
    mbarrier.pending_count.b64 %r4, %s2;                    // 4
    mbarrier.test_wait.shared.b64 %p1, [bar], %s2;          // not yet
    selp.u32 %r5, 1, 0, %p1;
    mbarrier.arrive.shared::cta.b64 %s3, [bar], 2;          // complete
    mbarrier.test_wait.shared.b64 %p2, [bar], %s3;
    selp.u32 %r6, 1, 0, %p2;
    mbarrier.arrive_drop.shared.b64 %s4, [bar];
    mbarrier.pending_count.b64 %r7, %s4;                    // 5
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [bar], 4;
    mbarrier.arrive.noComplete.b64 %s5, [%g], 1;
    mbarrier.pending_count.b64 %r8, %s5;                    // 4: one has dropped out
    mad.lo.u32 %r2, %r3, 10, %r4;
    mad.lo.u32 %r2, %r2, 10, %r5;
    mad.lo.u32 %r2, %r2, 10, %r6;
    mad.lo.u32 %r2, %r2, 10, %r7;
    mad.lo.u32 %r2, %r2, 10, %r8;
    mbarrier.inval.shared::cta.b64 [bar];
    st.global.u32 [%d1], %r2;
    ret;
    """
    assert run(body, 1, engine)[0] == 740154


def test_parities_and_transactions(engine: str) -> None:
    """A phase is complete when all have arrived and every byte that was expected has come."""
    tests = """
    mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 0;
    mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p2, [bar], 1, %r9;
    selp.u32 %r3, 1, 0, %p1;
    selp.u32 %r4, 2, 0, %p2;
    shl.b32 %r2, %r2, 2;
    or.b32 %r2, %r2, %r3;
    or.b32 %r2, %r2, %r4;
    """
    steps = """
    mbarrier.init.shared.b64 [bar], 2;
    {tests}
    mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %s1, [bar], 96;
    mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 32;
    mbarrier.arrive.b64 _, [%g];
    {tests}
    mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [bar], 100;
    {tests}
    mbarrier.complete_tx.shared::cta.b64 [bar], 28;
    {tests}
    cp.async.mbarrier.arrive.shared.b64 [bar];
    cp.async.mbarrier.arrive.noinc.b64 [%g];
    {tests}
    mbarrier.arrive_drop.expect_tx.shared::cta.relaxed.cta.b64 %s1, [bar], 4;
    mbarrier.complete_tx.b64 [%g], 4;
    {tests}
    st.global.u32 [%d1], %r2;
    ret;
    """
    # In phase 0 a wait for parity 1 finds the phase before it complete; in phase 1, one for 0.
    expected = int("".join(["2", "2", "2", "1", "1", "2"]), 4)
    assert run(steps.format(tests=tests), 1, engine)[0] == expected


def test_bulk_copies_both_ways(engine: str) -> None:
    """Thread 0 fetches 64 bytes of its buffer behind 16 others, an mbarrier completes when they are
    there, and 48 of them go back to the front."""
    body = """
    mov.u32 %r2, 16;
    add.u32 %r3, %r1, 100;
    st.global.u32 [%d1], %r3;
    @%p7 mbarrier.init.shared::cta.b64 [bar], 1;
    fence.mbarrier_init.release.cluster;
    bar.sync 0;
    @!%p7 bra wait;
    mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [bar], 64;
    mov.u32 %r4, 64;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%d1+16], %r4, [bar];
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;
    @!%p1 bra wait;
    mov.u32 %r5, box;
    shl.b32 %r6, %r1, 2;
    add.u32 %r5, %r5, %r6;
    ld.shared.u32 %r6, [%r5];
    add.u32 %r6, %r6, 1000;
    st.shared.u32 [%r5], %r6;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%p7 cp.async.bulk.global.shared::cta.bulk_group [%d1], [box], 48;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
    cp.async.bulk.wait_group 0;
    ret;
    """
    found = run(body, 32, engine)
    assert found[:12].tolist() == [1104 + i for i in range(12)]
    assert found[12:].tolist() == [112 + i for i in range(20)]


@pytest.mark.parametrize(("engine", "policy"), WAYS)
def test_waiting_for_what_nobody_completes_is_a_deadlock(policy: str, engine: str) -> None:
    body = """
    @%p7 mbarrier.init.shared::cta.b64 [bar], 65;
    bar.sync 0;
    mbarrier.arrive.shared.b64 %s1, [bar];
again:
    mbarrier.try_wait.shared::cta.b64 %p1, [bar], %s1;
    @!%p1 bra again;
    ret;
    """
    with pytest.raises(wl.DeadlockError):
        run(body, 64, engine, policy)


def test_an_arrival_is_a_shared_atomic() -> None:
    """64 threads of two warps at one word: two requests of 32 turns each, behind one of one turn
    that initializes it."""
    gpu = wl.Device("h100")
    body = """
    @%p7 mbarrier.init.shared.b64 [bar], 64;
    bar.sync 0;
    mbarrier.arrive.shared.b64 %s1, [bar];
    ret;
    """
    module = gpu.compile(f"{HEADER}{body}\n}}\n", "ptx")
    counters = module["k"][1, 64](gpu.zeros(64, np.uint32)).counters
    assert (counters.atomic_requests, counters.atomic_passes) == (1 + 2, 1 + 64)


ONE_WAITS = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<6>; .reg .b64 %d<3>; .reg .pred %p<4>;
    .shared .align 8 .b64 bar;
    mov.u32 %r1, %tid.x; mov.u32 %r2, bar; ld.param.u64 %d1, [out]; mov.u32 %r3, 0;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra INIT;
    mbarrier.init.shared::cta.b64 [%r2], 32;
INIT:
    bar.sync 0;
    setp.ge.u32 %p2, %r1, 32;
    @%p2 bra ARRIVE;
WAIT:
    add.u32 %r3, %r3, 1;
    mbarrier.OP.parity.shared::cta.b64 %p3, [%r2], 0;
    @!%p3 bra WAIT;
    st.global.u32 [%d1], %r3;
    bra END;
ARRIVE:
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p3, %r3, LAPS;
    @%p3 bra ARRIVE;
    mbarrier.arrive.shared::cta.b64 %d2, [%r2];
END:
    ret;
}
"""


@pytest.mark.parametrize("op", ["try_wait", "test_wait"])
@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_warp_that_waits_in_vain_gives_up_its_turn(engine: str, op: str) -> None:
    """The other warp arrives in its first turn, so the second look finds the phase complete; or, as
    a turn of a warp is 8,192 instructions, in its second turn, and then the third look does. All
    else is 7 + 6 instructions before the first barrier, 2 x 3 from there, 3 and 2 at the ends."""
    gpu = wl.Device("h100", engine=engine)
    for laps, looks in ((1, 2), (3000, 3)):
        source = ONE_WAITS.replace("OP", op).replace("LAPS", str(laps))
        looked = gpu.zeros(1, np.int32)
        run = gpu.compile(source, "ptx")["k"][1, 64](looked)
        assert looked.copy_to_host().tolist() == [looks]
        assert run.counters.warp_instructions == 13 + 6 + 3 * looks + 3 + 3 * laps + 2


def test_an_mbarrier_of_layout_v0_says_so_and_its_phases_complete_in_unison(engine: str) -> None:
    """PTX ISA 9.4, "mbarrier.test_wait": in layout v0 the primary and the conditional phase
    complete together; "mbarrier.check_layout". Bits of the result: layout v0, layout v1,
    conditional phase 0 complete before the arrival and behind it, primary phase 0 behind it."""
    body = """
    mov.u32 %r2, 0;
    mbarrier.init.layout::v0.shared::cta.b64 [bar], 1;
    mbarrier.check_layout.layout::v0.shared::cta.b64 %p1, [bar];
    @%p1 or.b32 %r2, %r2, 1;
    mbarrier.check_layout.layout::v1.shared::cta.b64 %p1, [bar];
    @%p1 or.b32 %r2, %r2, 2;
    mbarrier.test_wait.parity.phase_type::conditional.shared::cta.b64 %p1, [bar], 0;
    @%p1 or.b32 %r2, %r2, 4;
    mbarrier.arrive.shared::cta.b64 %s1, [bar];
    mbarrier.try_wait.parity.phase_type::conditional.relaxed.cta.shared::cta.b64 %p1, [bar], 0;
    @%p1 or.b32 %r2, %r2, 8;
    mbarrier.test_wait.phase_type::primary.shared::cta.b64 %p1, [bar], %s1;
    @%p1 or.b32 %r2, %r2, 16;
    st.global.u32 [%d1], %r2;
    ret;
    """
    gpu = wl.Device("h100", engine=engine)
    out = gpu.zeros(1, np.uint32)
    text = f"{HEADER}{body}\n}}\n".replace(".version 8.6", ".version 9.3")
    gpu.compile(text, "ptx")["k"][1, 1](out)
    assert out.copy_to_host().tolist() == [1 + 8 + 16]


@pytest.mark.parametrize(
    "line",
    [
        "mbarrier.init.layout::v1.shared::cta.b64 [bar], 1;",
        "mbarrier.arrive.release.cluster.shared::cluster.multicast::cluster::32b.b64 _, [bar], 3;",
    ],
)
def test_what_an_mbarrier_cannot_do_here_is_refused_by_name(line: str) -> None:
    """ptxas takes the lines: reports of copies and arrivals at several blocks are not modelled."""
    text = f"{HEADER}{line}\nret;\n}}\n".replace(
        ".version 8.6\n.target sm_90", ".version 9.4\n.target sm_107a"
    )
    with pytest.raises(
        wl.UnsupportedInstruction, match=r"`mbarrier.* is not supported: .*not modelled"
    ):
        wl.Device(cc="10.7").compile(text, "ptx")
