"""Clocks and sleeping: time is a warp's own instructions (docs/model.md)."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

ENGINES = ("reference", "compiled")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return request.param


HEADER = """
.version 8.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<16>;
    .reg .b64 %d<8>;
    .reg .pred %p<8>;
    ld.param.u64 %d1, [out];
"""


def run(body: str, engine: str, threads: int = 32, device: str = "v100") -> np.ndarray:
    gpu = wl.Device(device, engine=engine)
    out = gpu.zeros(8, np.uint64)
    gpu.compile(f"{HEADER}{body}\n}}\n", "ptx")["k"][1, threads](out)
    return out.copy_to_host()


def test_a_clock_counts_the_instructions_between(engine: str) -> None:
    """Five instructions behind the first reading stands the second, and a branch is one of them;
    every form shows the same clock."""
    body = """
    mov.u64 %d2, %clock64;      // the second instruction: one was before it
    add.u32 %r1, %r1, 1;
    add.u32 %r1, %r1, 1;
    bra on;
on:
    add.u32 %r1, %r1, 1;
    mov.u32 %r2, %clock;
    mov.u64 %d3, %globaltimer;
    mov.u32 %r3, %globaltimer_lo;
    mov.u32 %r4, %clock_hi;
    mov.u32 %r5, %globaltimer_hi;
    cvt.u64.u32 %d4, %r2;
    cvt.u64.u32 %d5, %r3;
    or.b32 %r4, %r4, %r5;
    cvt.u64.u32 %d6, %r4;
    st.global.u64 [%d1], %d2;
    st.global.u64 [%d1+8], %d4;
    st.global.u64 [%d1+16], %d3;
    st.global.u64 [%d1+24], %d5;
    st.global.u64 [%d1+32], %d6;
    ret;
    """
    assert run(body, engine)[:5].tolist() == [1, 6, 7, 8, 0]


WAITING = """
    mov.u64 %d2, %clock64;
again:
    mov.u64 %d3, %clock64;
    sub.u64 %d3, %d3, %d2;
    {pause};
    setp.lt.u64 %p1, %d3, 20000;
    @%p1 bra again;
    st.global.u64 [%d1], %d3;
    ret;
"""


@pytest.mark.parametrize(
    ("device", "pause"), [("gtx-1080", "membar.cta"), ("v100", "nanosleep.u32 20")]
)
def test_waiting_for_the_clock_ends(device: str, pause: str, engine: str) -> None:
    """A round has five instructions, the first one's clock is one on: 1 + 5 n >= 20000."""
    assert run(WAITING.format(pause=pause), engine, device=device)[0] == 20001


def test_a_clock_goes_on_over_turns_and_barriers(engine: str) -> None:
    """A turn has 4096 instructions at most, and the loop ends many; the clock never falls back."""
    body = """
    mov.u32 %r1, 0;
    mov.u64 %d2, %clock64;
again:
    mov.u64 %d3, %clock64;
    setp.lt.u64 %p1, %d3, %d2;
    @%p1 trap;
    mov.u64 %d2, %d3;
    bar.sync 0;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 1000;
    @%p1 bra again;
    st.global.u64 [%d1], %d3;
    ret;
    """
    assert run(body, engine, threads=64)[0] == 3 + 999 * 8


def test_a_flag_that_comes_late_and_a_time_out(engine: str) -> None:
    """One warp waits for a flag that the other sets after a while by the clock; then both wait for
    one that nobody sets, and give up after 9000 instructions."""
    source = """
    __device__ bool wait(volatile int *flag, long long most) {
        long long start = clock64();
        while (!*flag) {
            if (clock64() - start > most) return false;
            __nanosleep(100);
        }
        return true;
    }
    extern "C" __global__ void k(volatile int *flags, int *out) {
        if (threadIdx.x < 32) {
            long long start = clock64();
            while (clock64() - start < 30000);
            flags[0] = 1;
        } else if (!wait(flags, 1ll << 60)) {
            out[threadIdx.x] = 5;
        }
        out[threadIdx.x] += wait(flags + 1, 9000) ? 2 : 1;
    }"""
    gpu = wl.Device("v100", engine=engine)
    out = np.zeros(64, np.int32)
    gpu.compile(source)["k"][1, 64](np.zeros(2, np.int32), out)
    assert set(out) == {1}
