"""`alloca`, `stacksave` and `stackrestore`: memory of the thread that a function's end frees."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

HEAD = """
.version 8.0
.target sm_60
.address_size 64
"""

KERNEL = """
.visible .entry k(.param .u64 out)
{
    .reg .b32 %t, %n, %i, %v, %s;
    .reg .b64 %out, %at, %size, %a, %b, %c, %top;
    .reg .pred %p;
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %at, %t, 4;
    add.u64 %out, %out, %at;
    // A row of tid + 1 words, each its own index; their sum is t * (t + 1) / 2.
    add.u32 %n, %t, 1;
    mul.wide.u32 %size, %n, 4;
    stacksave.u64 %top;
    alloca.u64 %a, %size, 16;
    mov.u32 %i, 0;
FILL:
    mul.wide.u32 %at, %i, 4;
    add.u64 %at, %at, %a;
    st.local.u32 [%at], %i;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, %n;
    @%p bra FILL;
    // Another one stands behind it, and what is in it leaves the first alone.
    alloca.u64 %b, %size;
    mov.u32 %v, 77;
    st.local.u32 [%b], %v;
    mov.u32 %s, 0;
    mov.u32 %i, 0;
ADD:
    mul.wide.u32 %at, %i, 4;
    add.u64 %at, %at, %a;
    ld.local.u32 %v, [%at];
    add.u32 %s, %s, %v;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, %n;
    @%p bra ADD;
    // What is given back is given out again.
    stackrestore.u64 %top;
    alloca.u64 %c, %size, 16;
    setp.ne.u64 %p, %a, %c;
    @%p add.u32 %s, %s, 1000000;
    and.b64 %c, %c, 15;
    setp.ne.u64 %p, %c, 0;
    @%p add.u32 %s, %s, 2000000;
    st.global.u32 [%out], %s;
    ret;
}
"""

TAKER = """
.func take(.param .u64 bytes)
{
    .reg .b64 %a, %n;
    .reg .b32 %v;
    ld.param.u64 %n, [bytes];
    alloca.u64 %a, %n;
    mov.u32 %v, 1;
    st.local.u32 [%a], %v;
    ret;
}
.visible .entry k(.param .u64 out)
{
    .reg .b32 %i;
    .reg .pred %p;
    mov.u32 %i, 0;
AGAIN:
    call take, (BYTES);
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 100;
    @%p bra AGAIN;
    ret;
}
"""


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("name", ["gtx-1080", "a100"])
def test_each_thread_takes_as_much_as_it_wants(name, engine) -> None:
    gpu = wl.Device(name, engine=engine)
    out = gpu.zeros(32, np.uint32)
    gpu.compile(HEAD + KERNEL, "ptx")["k"][1, 32](out)
    assert out.copy_to_host().tolist() == [t * (t + 1) // 2 for t in range(32)]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_the_end_of_a_function_frees_what_it_took(engine) -> None:
    """100 times 1024 bytes fit into 4096, for each call gives them back; 8192 do not."""
    gpu = wl.Device("a100", engine=engine)
    out = gpu.zeros(1, np.uint32)
    gpu.compile(HEAD + TAKER.replace("BYTES", "1024"), "ptx")["k"][1, 32](out)
    with pytest.raises(wl.KernelFault, match="stack_bytes") as caught:
        gpu.compile(HEAD + TAKER.replace("BYTES", "8192"), "ptx")["k"][1, 32](out)
    text = (HEAD + TAKER).splitlines()
    line = next(n for n, one in enumerate(text, 1) if "alloca" in one)
    assert caught.value.line == f"kernel.ptx:{line}"
