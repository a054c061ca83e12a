"""Barriers with numbers and counts: who waits, who only arrives, what counting barriers return."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

ENGINES = ("reference", "compiled")
STACK, INDEPENDENT = "gtx-1080", "a100"
POLICIES = ("converge", "fair", "random", "adversarial")

HEADER = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<16>;
    .reg .b64 %d<8>;
    .reg .pred %p<8>;
    .shared .align 4 .b32 box[64];
    ld.param.u64 %d1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d2, %r1, 4;
    add.u64 %d1, %d1, %d2;
"""


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return request.param


def run(body: str, threads: int, device: str, engine: str, policy: str = "converge") -> np.ndarray:
    """A word of each thread, which finds its number in %r1 and its word at %d1."""
    gpu = wl.Device(device, engine=engine, schedule=policy, seed=3)
    out = gpu.zeros(threads, np.uint32)
    gpu.compile(f"{HEADER}{body}\n}}\n", "ptx")["k"][1, threads](out)
    return out.copy_to_host()


PRODUCER_CONSUMER = """
    .reg .u32 %i;
    mov.u32 %i, 0;
    shl.b32 %r2, %r1, 2;
    and.b32 %r2, %r2, 124;
    mov.u32 %r3, box;
    add.u32 %r2, %r2, %r3;
    setp.ge.u32 %p1, %r1, 32;
    @%p1 bra consumer;
producer:                       // box = i * i + lane, four times
    mad.lo.u32 %r4, %i, %i, %r1;
    st.shared.u32 [%r2], %r4;
    bar.arrive 1, 64;           // it is there
    bar.sync 0, 64;             // it is taken
    add.u32 %i, %i, 1;
    setp.lt.u32 %p2, %i, 4;
    @%p2 bra producer;
    ret;
consumer:
    bar.sync 1, 64;
    ld.shared.u32 %r4, [%r2];
    add.u32 %r5, %r5, %r4;
    barrier.cta.arrive.aligned 0, 64;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p2, %i, 4;
    @%p2 bra consumer;
    st.global.u32 [%d1], %r5;
    ret;
"""


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("device", [STACK, INDEPENDENT])
def test_a_producer_arrives_and_a_consumer_waits(device: str, policy: str, engine: str) -> None:
    """The pattern of the manual (PTX ISA, bar): each of two warps waits for the other only where it
    must. The sum of i * i for i < 4 is 14."""
    found = run(PRODUCER_CONSUMER, 64, device, engine, policy)
    assert found[32:].tolist() == [14 + 4 * lane for lane in range(32)]


COUNTING = """
    and.b32 %r2, %r1, 3;
    setp.eq.u32 %p1, %r2, 0;
    bar.red.popc.u32 %r3, 0, %p1;
    bar.cta.red.and.pred %p2, 1, 96, %p1;
    barrier.cta.red.or.aligned.pred %p3, 1, !%p1;
    setp.lt.u32 %p4, %r1, 1000;
    barrier.red.and.pred %p5, 15, 96, %p4;
    selp.u32 %r4, 100, 0, %p2;
    selp.u32 %r5, 1000, 0, %p3;
    selp.u32 %r6, 10000, 0, %p5;
    add.u32 %r3, %r3, %r4;
    add.u32 %r3, %r3, %r5;
    add.u32 %r3, %r3, %r6;
    st.global.u32 [%d1], %r3;
    ret;
"""


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("device", [STACK, INDEPENDENT])
def test_counting_barriers_return_their_result_to_every_thread(
    device: str, policy: str, engine: str
) -> None:
    """Of 96 threads 24 hold the predicate: not all do, some do not, and all are below 1000."""
    assert set(run(COUNTING, 96, device, engine, policy)) == {24 + 0 + 1000 + 10000}


def test_threads_that_diverged_count_each_for_itself(engine: str) -> None:
    """From 7.0 on half a warp may come by one way and half by another; 40 threads are 32 + 8."""
    body = """
    setp.lt.u32 %p1, %r1, 24;
    setp.lt.u32 %p2, %r1, 40;
    @%p1 bra low;
    barrier.red.popc.u32 %r3, 2, %p2;
    bra both;
low:
    barrier.red.popc.u32 %r3, 2, %p2;
both:
    st.global.u32 [%d1], %r3;
    ret;
    """
    assert set(run(body, 64, INDEPENDENT, engine)) == {40}


def test_a_number_in_a_register_and_pairs_of_warps(engine: str) -> None:
    """Each pair of warps has its own barrier: warp w uses number 1 + w / 2."""
    body = """
    shr.u32 %r2, %r1, 6;
    add.u32 %r2, %r2, 1;
    shl.b32 %r3, %r1, 2;
    and.b32 %r3, %r3, 252;
    mov.u32 %r4, box;
    shr.u32 %r5, %r1, 5;
    shl.b32 %r5, %r5, 2;
    add.u32 %r5, %r5, %r4;
    st.shared.u32 [%r5], %r1;
    mov.u32 %r7, 64;
    barrier.sync %r2, %r7;
    xor.b32 %r6, %r5, 4;
    ld.shared.u32 %r6, [%r6];
    st.global.u32 [%d1], %r6;
    ret;
    """
    found = run(body, 128, INDEPENDENT, engine)
    assert found.tolist() == [32 * (t // 32 ^ 1) + 31 for t in range(128)]


@pytest.mark.parametrize(("number", "count"), [(16, 32), (0, 48), (9, 33)])
def test_a_barrier_that_does_not_exist_is_named(number: int, count: int, engine: str) -> None:
    """In registers: a constant is an error when the module is loaded."""
    body = f"mov.u32 %r8, {number}; mov.u32 %r9, {count}; bar.sync %r8, %r9; ret;"
    with pytest.raises(wl.DeviceTrap, match="multiple of 32"):
        run(body, 64, INDEPENDENT, engine)


@pytest.mark.parametrize("device", [STACK, INDEPENDENT])
def test_a_barrier_that_too_few_execute_says_who_is_missing(device: str, engine: str) -> None:
    """Warp 0 has arrived at barrier 3, warp 1 waits there, warp 2 waits elsewhere: 64 of 96."""
    body = """
    setp.ge.u32 %p1, %r1, 64;
    setp.ge.u32 %p2, %r1, 32;
    @%p1 bra third;
    @%p2 bra second;
    bar.arrive 3, 96;
    ret;
second:
    bar.sync 3, 96;
    ret;
third:
    bar.red.popc.u32 %r3, 5, 64, %p1;
    ret;
    """
    with pytest.raises(wl.DeadlockError) as caught:
        run(body, 96, device, engine)
    text = str(caught.value)
    assert "barrier 3 of block (0, 0, 0): 64 of 96 threads have arrived" in text
    assert "not at the barrier: warp 2 lanes 0 to 31" in text
    assert "barrier 5 of block (0, 0, 0): 32 of 64 threads have arrived" in text
    assert {g.warp for g in caught.value.groups} == {1, 2}
