"""Kernels that mark their places with `mov.u32 %m, PLACE`, and what a trace has of the markers."""

from __future__ import annotations

import warploom as wl

HEAD = """
.version 8.0
.target sm_60
.address_size 64
.visible .entry k()
{
    .reg .pred %p<8>;
    .reg .u32 %l, %i, %m, %t<8>;
    mov.u32 %l, %tid.x;
    mov.u32 %i, 0;
"""

IF_BELOW_32 = """
    setp.lt.u32 %p1, %l, 32;
    @!%p1 bra ELSE;
    mov.u32 %m, 1;
    bra END;
ELSE:
    mov.u32 %m, 2;
END:
    mov.u32 %m, 3;
    ret;
"""
"""Threads below 32 pass 1, others 2, all of them 3."""


def kernel(body: str, gpu: wl.Device) -> wl.Kernel:
    """A kernel whose `%l` is the thread and `%i` is 0."""
    return gpu.compile(HEAD + body + "}", "ptx")["k"]


def traced(body: str, gpu: wl.Device, block: int) -> wl.Trace:
    """The trace of one block of it."""
    return kernel(body, gpu)[1, block].trace()


def places(trace: wl.Trace, warp: int = 0) -> list[tuple[int, int]]:
    """(place, mask) of every marker that a warp passed."""
    texts = [(trace.instructions[s.instruction], s) for s in trace.warp(0, warp).steps]
    marked = [(text, step) for text, step in texts if text.startswith("mov.u32 %m,")]
    return [(int(text.rstrip(";").split()[-1]), step.executing) for text, step in marked]
