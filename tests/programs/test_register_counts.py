"""`setmaxnreg`: the registers of the warps of a block against those that it was launched with."""

from __future__ import annotations

import re

import numpy as np
import pytest

import warploom as wl
from warploom.core.errors import DeadlockError, MemoryFault, WarploomError

ENGINES = ("reference", "compiled")

KERNEL = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) DIRECTIVES
{
    .reg .b32 %t, %n; .reg .b64 %out, %at; .reg .pred %p, %q;
    ld.param.u64 %out, [out]; mov.u32 %t, %tid.x;
    setp.lt.u32 %p, %t, 128;
    @%p bra PRODUCER;
    setmaxnreg.inc.sync.aligned.u32 CONSUMER;
    bra.uni JOIN;
PRODUCER:
    setmaxnreg.dec.sync.aligned.u32 RELEASED;
JOIN:
    mul.wide.u32 %at, %t, 4; add.u64 %at, %at, %out; st.global.u32 [%at], %t;
    ret;
}
"""
BOUNDS = ".maxntid 384 .minnctapersm 1"
"""65,536 registers for 384 threads: 168 each, rounded down to a multiple of eight."""


INC = "setmaxnreg.inc.sync.aligned.u32"


def run(engine: str, consumer: int | str, released: int, directives: str) -> None:
    """Runs the kernel in a block of as many threads as its directives allow."""
    threads = int(re.findall(r"ntid (\d+)|$", directives)[0] or 384)
    text = KERNEL.replace("CONSUMER", str(consumer)).replace("RELEASED", str(released))
    out = np.zeros(threads, np.uint32)
    gpu = wl.Device("h100", engine=engine)
    gpu.compile(text.replace("DIRECTIVES", directives), "ptx")["k"][1, threads](out)
    assert np.array_equal(out, np.arange(threads))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("consumer", "released", "directives"),
    [
        (240, 24, BOUNDS),  # 2 * 240 + 24 = 3 * 168: those of FlashAttention-3
        (232, 40, BOUNDS),  # 2 * 232 + 40 = 3 * 168: those of CUTLASS
        (160, 40, BOUNDS),  # launched with 160: nobody asks for more
        (240, 24, ".maxntid 256 .minnctapersm 1"),  # with 240, not the 248 that there would be
        (160, 40, ".maxntid 320 .minnctapersm 1"),
        (256, 40, ".maxntid 384"),  # without .minnctapersm no effect either
        (256, 40, ""),  # the kernel names no number of registers: no effect
        (64, 40, ".maxnreg 128"),
        (160, 40, ".maxnreg 128"),
    ],
)
def test_registers_that_are_there(engine: str, consumer: int, released: int, directives: str):
    run(engine, consumer, released, directives)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("consumer", "released", "directives", "message"),
    [
        (240, 40, BOUNDS, r"wait for 240 registers per thread(.|\n)* 168 registers for each"),
        (184, 24, ".maxnreg 128", r"wait for 184 registers per thread(.|\n)* 128 registers for"),
        (f"240; {INC} 160", 24, BOUNDS, r"setmaxnreg\.inc.* 160 in a warp whose threads have 240"),
        (240, 176, BOUNDS, r"setmaxnreg\.dec.* 176 in a warp whose threads have 168"),
    ],
)
def test_registers_that_are_not(
    engine: str, consumer: int | str, released: int, directives: str, message: str
) -> None:
    """A warp has 32 threads: 4 * 32 * (2 * 240 + 40) registers, where 12 * 32 * 168 are there."""
    with pytest.raises(WarploomError, match=message) as caught:
        run(engine, consumer, released, directives)
    assert 'PTX ISA, "setmaxnreg"' in str(caught.value)
    assert "kernel.ptx:" in str(caught.value)
    assert not isinstance(caught.value, MemoryFault) or caught.value.kind


LATER = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) .maxntid 384 .minnctapersm 1
{
    .reg .b32 %t, %n; .reg .b64 %out, %at; .reg .pred %p;
    ld.param.u64 %out, [out]; mov.u32 %t, %tid.x;
    mov.u32 %n, 0;
    setp.lt.u32 %p, %t, 128;
    @!%p bra OTHERS;
AGAIN:
    setmaxnreg.inc.sync.aligned.u32 256;
    BEFORE
    setmaxnreg.dec.sync.aligned.u32 40;
    bar.sync 0;
    add.u32 %n, %n, 1;
    setp.lt.u32 %p, %n, 3;
    @%p bra AGAIN;
    bra.uni JOIN;
OTHERS:
    BETWEEN
    setmaxnreg.dec.sync.aligned.u32 112;
    bar.sync 0;
    setmaxnreg.inc.sync.aligned.u32 224;
    add.u32 %n, %n, 1;
    setp.lt.u32 %p, %n, 3;
    @%p bra OTHERS;
JOIN:
    mul.wide.u32 %at, %t, 4; add.u64 %at, %at, %out; st.global.u32 [%at], %t;
    ret;
}
"""
"""One group takes registers that two others release, three times: 256 + 2 * 112 and 40 + 2 * 224
are at most 3 * 168."""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("schedule", ["converge", "fair", "random", "adversarial"])
@pytest.mark.parametrize("between", ["", "bar.sync 1, 256;", "nanosleep.u32 100;"])
def test_a_warp_waits_for_registers(engine: str, schedule: str, between: str) -> None:
    """As in Triton's warp specialization: a request may come before the release."""
    text = LATER.replace("BEFORE", "").replace("BETWEEN", between)
    out = np.zeros(384, np.uint32)
    gpu = wl.Device("h100", engine=engine, schedule=schedule, seed=1)
    gpu.compile(text, "ptx")["k"][1, 384](out)
    assert np.array_equal(out, np.arange(384))


@pytest.mark.parametrize("engine", ENGINES)
def test_registers_that_are_released_too_late(engine: str) -> None:
    """The others release theirs behind a barrier at which the waiting group does not arrive."""
    text = LATER.replace("BEFORE", "bar.sync 2;").replace("BETWEEN", "bar.sync 2;")
    gpu = wl.Device("h100", engine=engine)
    kernel = gpu.compile(text, "ptx")["k"]
    with pytest.raises(DeadlockError, match="wait for 256 registers per thread, which other warps"):
        kernel[1, 384](np.zeros(384, np.uint32))
