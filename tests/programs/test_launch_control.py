"""Work stealing by `clusterlaunchcontrol`: a persistent kernel whose blocks take over the work of
blocks that have not begun."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl
from warploom.core.errors import DeadlockError, MemoryFault

pytestmark = pytest.mark.usefixtures("share_every_launch")

ENGINES = ("reference", "compiled")
POLICIES = ("converge", "fair", "random", "adversarial")

KERNEL = """
.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 done, .param .u64 by)
{
    .reg .b32 %r<9>, %x, %y, %z, %own, %parity, %lane;
    .reg .b64 %done, %by, %at, %state; .reg .b128 %answer; .reg .pred %p, %first;
    .shared .align 16 .b8 answer[16]; .shared .align 8 .b64 bar;
    ld.param.u64 %done, [done]; ld.param.u64 %by, [by];
    mov.u32 %lane, %tid.x; setp.eq.u32 %first, %lane, 0; mov.u32 %parity, 0;
    mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %z, %ctaid.z;
    mov.u32 %r1, %nctaid.x; mov.u32 %r2, %nctaid.y;
    mad.lo.u32 %own, %z, %r2, %y; mad.lo.u32 %own, %own, %r1, %x;
    @%first mbarrier.init.shared.b64 [bar], 1;
    bar.sync 0;
NEXT:
    @!%first bra WAIT;
    mbarrier.arrive.expect_tx.shared::cta.b64 %state, [bar], BYTES;
    fence.proxy.async.shared::cta;
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128
        [answer], [bar];
WAIT:
    mad.lo.u32 %r3, %z, %r2, %y; mad.lo.u32 %r3, %r3, %r1, %x;
    mul.wide.u32 %at, %r3, 4; add.u64 %at, %at, %by;
    @%first st.global.u32 [%at], %own;
    mul.wide.u32 %at, %r3, 4; add.u64 %at, %at, %done;
    red.global.add.u32 [%at], 1;
SPIN:
    LOOK
    ld.shared.b128 %answer, [answer];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p, %answer;
    FIRST
    xor.b32 %parity, %parity, 1;
    bar.sync 0;
    @%p bra NEXT;
    ret;
}
"""
LOOK = "mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], %parity; @!%p bra SPIN;"
VECTOR = "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%x, %y, %z, _}, %answer;"
SINGLE = "\n".join(
    f"clusterlaunchcontrol.query_cancel.get_first_ctaid::{axis}.b32.b128 %{axis}, %answer;"
    for axis in "xyz"
)
THREADS = 64


def text(look: str = LOOK, first: str = VECTOR, bytes: int = 16) -> str:
    return KERNEL.replace("LOOK", look).replace("FIRST", first).replace("BYTES", str(bytes))


def run(gpu: wl.Device, grid: tuple[int, int, int], program: str):
    """How often each block's work was done in every thread, and by which block."""
    done, by = np.zeros((2, int(np.prod(grid))), np.uint32)
    made = gpu.compile(program, "ptx")["k"][grid, THREADS](done, by)
    return done, by, made


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("policy", POLICIES)
def test_all_work_is_done_once(policy: str, engine: str) -> None:
    """PTX ISA, try_cancel: a cancelled cluster never begins, and no other answer names it."""
    gpu = wl.Device("b200", engine=engine, schedule=policy, seed=3, workers=2)
    first = VECTOR if policy == "fair" else SINGLE
    grid = (7, 3, 2) if engine == "compiled" else (2, 1, 3)
    done, by, made = run(gpu, grid, text(first=first))
    assert (done == THREADS).all()
    assert made.workers == 1
    owners = np.unique(by)
    assert all(by[owner] == owner for owner in owners)  # who took over work began itself
    assert (len(owners) < len(by)) == (policy in ("random", "adversarial"))


def test_blocks_that_the_device_holds_begin_before_any_is_cancelled() -> None:
    """As hardware begins them: 148 multiprocessors with 32 blocks each hold 4,736 of 5,000."""
    gpu = wl.Device("b200")
    done, by, _ = run(gpu, (5000, 1, 1), text())
    assert (done == THREADS).all()
    held = wl.occupancy("b200", THREADS).active_blocks * 148
    assert len(np.unique(by)) == held == 4736
    # They give way to each other after each request: no block takes over all that is left.
    assert np.bincount(by).max() < 10


def test_a_request_at_an_odd_address_is_a_fault() -> None:
    gpu = wl.Device("b200")
    with pytest.raises(MemoryFault, match=r"0x[0-9a-f]*8 of shared memory is not a multiple of 16"):
        run(gpu, (3, 1, 1), text().replace("[answer], [bar];", "[answer+8], [bar];"))


def test_without_the_wait_an_old_answer_is_read_where_it_comes_late() -> None:
    gpu = wl.Device("b200", schedule="adversarial")
    done, _, _ = run(gpu, (9, 1, 1), text(look=""))
    assert not (done == THREADS).all()


def test_a_wrong_number_of_bytes_never_comes() -> None:
    gpu = wl.Device("b200")
    with pytest.raises(DeadlockError):
        run(gpu, (3, 1, 1), text(bytes=32))


CLUSTER = text().replace(
    "mbarrier::complete_tx::bytes.b128", "mbarrier::complete_tx::bytes.multicast::cluster::all.b128"
)


WHOLE_SM = 200 << 10
"""So much shared memory that each block takes a multiprocessor: of 154 blocks, 148 fit."""


@pytest.mark.parametrize(
    ("engine", "policy", "blocks"),
    [*(("compiled", policy, 154) for policy in POLICIES), ("reference", "random", 6)],
)
def test_clusters_take_over_clusters(engine: str, policy: str, blocks: int) -> None:
    """One block asks for both; each gets the answer, and adds its rank to the first block's
    index."""
    program = CLUSTER
    for old, new in (
        ("@!%first bra WAIT;", "barrier.cluster.arrive; barrier.cluster.wait; @!%first bra WAIT;"),
        ("fence.proxy.async.shared::cta;",
         "mov.u32 %r5, %cluster_ctarank; setp.ne.u32 %p, %r5, 0; @%p bra WAIT;"),
        (VECTOR, VECTOR + "mov.u32 %r5, %cluster_ctarank; add.u32 %x, %x, %r5;"),
        ("ret;", "barrier.cluster.arrive; barrier.cluster.wait; ret;"),
    ):  # fmt: skip
        program = program.replace(old, new)
    done, by = np.zeros((2, blocks), np.uint32)
    gpu = wl.Device("b200", engine=engine, schedule=policy, seed=5)
    kernel = gpu.compile(program, "ptx")["k"]
    kernel[blocks, THREADS, None, WHOLE_SM](done, by, cluster_dims=2)
    assert (done == THREADS).all()
    assert (by % 2 == np.arange(blocks) % 2).all()  # each rank does its own part
    assert len(np.unique(by)) <= 148


def test_the_race_detector_follows_answers() -> None:
    """The wait orders the read of an answer behind its write; without it they race."""
    for look, races in ((LOOK, False), ("", True)):
        done, by = np.zeros((2, 5), np.uint32)
        kernel = wl.Device("b200").compile(text(look=look), "ptx")["k"]
        run = kernel[5, THREADS](done, by, sanitize=("race", "init"))
        assert bool(run.findings) == races, run.findings
