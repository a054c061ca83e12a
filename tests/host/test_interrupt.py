"""A kernel that never ends answers to Ctrl-C, and the device stays usable."""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import warploom as wl

ENDLESS = """
.version 8.0
.target sm_70
.address_size 64
.visible .entry endless(.param .u64 out)
{
    .reg .b64 %d<3>;
    .reg .b32 %r<2>;
    .reg .pred %p;
    ld.param.u64 %d1, [out];
    mov.u64 %d2, 1;
AGAIN:
    add.u64 %d2, %d2, 2;
    setp.ne.u64 %p, %d2, 0;
    @%p bra AGAIN;
    ret;
}
.visible .entry seven(.param .u64 out)
{
    .reg .b64 %d;
    ld.param.u64 %d, [out];
    st.global.u32 [%d], 7;
    ret;
}
"""


LONG = 1 << 36
"""Warp instructions: some ten seconds, so that a lost interrupt fails the test and no more."""


@pytest.fixture
def default_handler() -> Iterator[None]:
    """Python's own answer to Ctrl-C, whatever other tests have put in its place."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


PRINTS = """
extern "C" __global__ void endless(unsigned* out) {
    for (unsigned n = 1; n; n += 2) if (n % 4096 == 1) printf("%u\\n", n);
    *out = 1;
}
extern "C" __global__ void seven(unsigned* out) { *out = 7; }
"""


@pytest.mark.usefixtures("default_handler")
@pytest.mark.parametrize(
    ("text", "language"), [(ENDLESS, "ptx"), (PRINTS, "cuda")], ids=["alone", "calling the host"]
)
def test_an_interrupt_stops_a_kernel(text: str, language: str) -> None:
    gpu = wl.Device("v100", output=lambda _: None)
    module, out = gpu.compile(text, language), gpu.zeros(1, np.uint32)
    module["seven"][1, 1](out)
    # Compiled beforehand: an interrupt that comes while LLVM calls back would be lost.
    with pytest.raises(wl.InstructionLimit):
        module["endless"][1, 32](out, max_instructions=1)
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        module["endless"][1, 32](out, max_instructions=LONG)
    out = gpu.zeros(1, np.uint32)
    module["seven"][1, 1](out)
    assert out.copy_to_host()[0] == 7


@pytest.mark.usefixtures("default_handler", "share_every_launch")
def test_an_interrupt_stops_all_workers() -> None:
    gpu = wl.Device("v100", workers=2)
    # Some ten seconds, and no limit, for that lets one worker alone.
    module = gpu.compile(ENDLESS.replace("%d2, 0", "%d2, 10000000001"), language="ptx")
    out, turns = gpu.zeros(1, np.uint32), [0]

    def note(done: int, blocks: int) -> None:
        assert done <= blocks == 2
        turns[0] += 1
        if turns[0] == 3:
            _thread.interrupt_main()

    with pytest.raises(KeyboardInterrupt):
        module["endless"][2, 32](out, progress=note)
    module["seven"][1, 1](out)
    assert out.copy_to_host()[0] == 7
