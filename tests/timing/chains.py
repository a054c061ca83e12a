"""Builds kernels that repeat one instruction: each needs the result of the one before (a chain), or
none needs another (a stream)."""

from __future__ import annotations

from typing import Unpack

import numpy as np

import warploom as wl
from warploom.host.run import TimeOptions
from warploom.timing.result import Timing

HEAD = """.version 7.8
.target {target}
.address_size 64
.visible .entry k(.param .u64 p)
{{
.reg .b16 %h<64>;
.reg .b32 %r<64>;
.reg .f32 %f<64>;
.reg .b64 %d<64>;
.reg .f64 %e<64>;
.reg .pred %p<8>;
.shared .align 16 .b8 s[256];
ld.param.u64 %d1, [p];
cvta.to.global.u64 %d2, %d1;
mov.u32 %r9, s;
"""
TAIL = "ret;\n}\n"
POINTERS = """
extern "C" __global__ void chain(const unsigned *a, unsigned *out, unsigned step, unsigned count)
{
    unsigned at = 0;
    for (unsigned i = 0; i < count; i++)
        at += step + a[at];
    out[0] = at;
}
"""
"""A kernel of dependent loads: each of `count` begins `step` elements after the last one; `a` holds
zeros."""

LINES = 32
"""Lines of 128 bytes in the chain of pointers."""


def module(body: str, cc: str) -> str:
    """A kernel of these lines; %d2 is where its chain of pointers begins."""
    return HEAD.format(target=f"sm_{cc.replace('.', '')}") + body + "\n" + TAIL


def timed(body: str, cc: str, block: int = 32, **options: Unpack[TimeOptions]) -> Timing:
    """The modelled time of a block of these lines, on the first device of a compute capability."""
    gpu = wl.Device(cc=cc, record=True)
    kernel = gpu.compile(module(body, cc), "ptx")["k"]
    buffer = gpu.zeros((LINES, 16), np.int64)
    options.setdefault("code", "ptx")
    buffer.view[:, 0] = buffer.address + 128 * np.roll(np.arange(LINES), -1)
    return kernel[1, block](buffer).time(**options)


def each(line: str, cc: str, *, count: int = 16, block: int = 32) -> float:
    """Cycles that one more of these lines takes, {i} in it a number from 0 to 7, {j} one from 10 to
    63: those of twice `count` less those of `count`, for a kernel
    takes time to begin and to end."""
    times = [
        timed("\n".join(line.format(i=i % 8, j=10 + i % 54) for i in range(n)), cc, block).cycles
        for n in (count, 2 * count)
    ]
    return (times[1] - times[0]) / count
