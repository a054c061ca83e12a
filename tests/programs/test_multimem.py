"""`multimem` on one device, where a multicast address stands for one place: `ld_reduce` gives what
is there, `st` and `red` change it alone; values by NumPy, on both engines.

Source: PTX ISA, "multimem.ld_reduce, multimem.st, multimem.red".
"""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

LANES, WORDS = 32, 8
"""Threads, and the words that each has for a case."""

NUMBERS = np.arange(4 * LANES, dtype=np.uint32).reshape(LANES, 4)
INTEGERS = NUMBERS * 977 + 1
SINGLES = (NUMBERS.astype(np.float32) - 7.5).view(np.uint32)
HALVES = np.repeat((NUMBERS.astype(np.float16) - 3).view(np.uint16), 2, axis=1).view(np.uint32)
THREADS = np.arange(LANES, dtype=np.uint32)[:, None]
"""Words that a thread has in memory and in its registers, and its number."""

LOADS = (
    ("ld_reduce.global.add.u32 %d0, [%at]", INTEGERS, 1),
    ("ld_reduce.relaxed.gpu.global.min.s32 %d0, [%at+4]", INTEGERS[:, 1:], 1),
    ("ld_reduce.weak.global.xor.b32 %d0, [%at]", INTEGERS, 1),
    ("ld_reduce.add.u32 %d0, [%at]", INTEGERS, 1),
    ("ld_reduce.acquire.sys.global.add.v4.f32 {%d0, %d1, %d2, %d3}, [%at]", SINGLES, 4),
    ("ld_reduce.global.max.v2.bf16x2 {%d0, %d1}, [%at]", HALVES, 2),
    ("ld_reduce.global.add.acc::f32.f16x2 %d0, [%at]", HALVES, 1),
)
"""Instructions, the words at the address, and how many of them are the result."""


def doubled(words: np.ndarray, type: type) -> np.ndarray:
    values = np.ascontiguousarray(words).view(type)
    return (values + values).view(np.uint32)


CHANGES = (
    ("st.global.u32 [%at], %t", INTEGERS, THREADS),
    ("st.release.sys.global.v4.f32 [%at], {%r3, %r2, %r1, %r0}", SINGLES, SINGLES[:, ::-1]),
    ("red.global.add.u32 [%at], %r0", INTEGERS, doubled(INTEGERS[:, :1], np.uint32)),
    ("red.relaxed.gpu.global.xor.b32 [%at], %r0", INTEGERS, 0 * THREADS),
    ("red.global.min.s32 [%at], %t", INTEGERS, THREADS),
    ("red.max.u32 [%at], %t", INTEGERS, INTEGERS[:, :1]),
    ("red.global.add.v4.f32 [%at], {%r0, %r1, %r2, %r3}", SINGLES, doubled(SINGLES, np.float32)),
    (
        "red.release.cluster.global.add.v2.f16x2 [%at], {%r0, %r1}",
        HALVES,
        doubled(HALVES[:, :2], np.float16),
    ),
)
"""Instructions, the words at the address, and those that are there instead afterwards."""


def kernel() -> str:
    """Execute all of them, each at WORDS words of its own for each thread."""
    body = ""
    for line, *_ in (*LOADS, *CHANGES):
        body += "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%at];"
        body += "".join(f"mov.u32 %d{n}, 0;" for n in range(4))
        body += f"\nmultimem.{line};\nst.global.v4.u32 [%to], {{%d0, %d1, %d2, %d3}};"
        body += f"\nadd.u64 %at, %at, {4 * WORDS * LANES}; add.u64 %to, %to, {16 * LANES};\n"
    return f"""
.version 8.8\n.target sm_100a\n.address_size 64
.visible .entry k(.param .u64 data, .param .u64 results)
{{
    .reg .b32 %t, %r<4>, %d<4>; .reg .b64 %at, %to;
    mov.u32 %t, %tid.x;
    ld.param.u64 %at, [data]; mad.wide.u32 %at, %t, {4 * WORDS}, %at;
    ld.param.u64 %to, [results]; mad.wide.u32 %to, %t, 16, %to;
    {body}
    ret;
}}
"""


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_one_device_is_one_place(engine: str) -> None:
    cases = len(LOADS) + len(CHANGES)
    data = np.full((cases, LANES, WORDS), 0xABCD, np.uint32)
    loaded = np.zeros((cases, LANES, 4), np.uint32)
    for case, (line, words, _) in enumerate((*LOADS, *CHANGES)):
        first = "[%at+4]" in line
        data[case, :, first : first + words.shape[1]] = words
    expected, results = data.copy(), loaded.copy()
    for case, (_, words, count) in enumerate(LOADS):
        loaded[case, :, :count] = words[:, :count]
    for case, (_, _, after) in enumerate(CHANGES, len(LOADS)):
        expected[case, :, : after.shape[1]] = after
    wl.Device(cc="10.0", engine=engine).compile(kernel(), "ptx")["k"][1, LANES](data, results)
    for case, (line, *_) in enumerate((*LOADS, *CHANGES)):
        assert np.array_equal(data[case], expected[case]), line
        assert np.array_equal(results[case], loaded[case]), line
