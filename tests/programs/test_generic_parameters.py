"""Pointers to a kernel's own parameters, on both engines."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

ENGINES = ("reference", "compiled")
GRID_CONSTANT = """
struct Table { int of[8]; };
__device__ __noinline__ int pick(const int *from, int i) { return from[i]; }
extern "C" __global__ void k(const __grid_constant__ Table first,
                             const __grid_constant__ Table last, int *out, int i)
{
    const int *p = last.of + i;
    int told = 100 * __isGridConstant(p) + 1000 * __isGlobal(p) + 10000 * __isGridConstant(out);
    out[threadIdx.x] = pick(p, threadIdx.x & 3) + told;
}
"""
PARAMETERS = """
.version 9.0\n.target sm_90\n.address_size 64
.visible .entry k(.param .u64 out, .param .align 16 .b8 given[16])
{{
    .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %d<6>;
    mov.b64 %d0, given;
    cvta.param::entry.u64 %d1, %d0;
    cvta.to.param.u64 %d2, %d1;
    ld.u32 %r0, [%d1+12];
    ld.param.u32 %r1, [given+4];
    sub.u64 %d3, %d2, %d0;
    isspacep.param::entry %p0, %d1;
    isspacep.param %p1, %d0;
    selp.b32 %r2, 1, 0, %p0;
    selp.b32 %r3, 2, %r2, %p1;
    ld.param.u64 %d4, [out];
    st.global.v4.b32 [%d4], {{%r0, %r1, %r3, %r3}};
    st.global.u64 [%d4+16], %d3;
    {more}
    ret;
}}
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_grid_constants_have_addresses(engine: str) -> None:
    out = np.zeros(32, np.int32)
    tables = [np.arange(8, dtype=np.int32) + start for start in (10, 20)]
    kernel = wl.Device("h100", engine=engine).compile(GRID_CONSTANT)["k"]
    for i in (1, 3):
        kernel[1, 32](*(table.tobytes() for table in tables), out, i)
        assert out.tolist() == [20 + i + lane % 4 + 1100 for lane in range(32)]


@pytest.mark.parametrize("engine", ENGINES)
def test_generic_addresses_of_parameters(engine: str) -> None:
    out = np.zeros(6, np.uint32)
    block = np.array([7, 8, 9, 11], np.uint32)
    kernel = wl.Device("h100", engine=engine).compile(PARAMETERS.format(more=""), "ptx")["k"]
    kernel[1, 1](out, block.tobytes())
    assert out.tolist() == [11, 8, 1, 1, 0, 0]


@pytest.mark.parametrize("engine", ENGINES)
def test_parameters_cannot_be_written(engine: str) -> None:
    more = "st.u32 [%d1], %r0;"
    kernel = wl.Device("h100", engine=engine).compile(PARAMETERS.format(more=more), "ptx")["k"]
    with pytest.raises(wl.MemoryFault, match="read-only memory") as caught:
        kernel[1, 1](np.zeros(6, np.uint32), bytes(16))
    assert "the parameters of the kernel" in str(caught.value)


AGAIN = "{ .param .align 4 .b8 t[8]; .param .b32 u; call (u), f, (t); }"
"""A function that calls itself is not inlined."""


@pytest.mark.parametrize("call", ["", AGAIN])
@pytest.mark.parametrize("taken", ["mov.b64 %d1, s;", "mov.b64 %d1, s+4;"])
def test_the_parameters_of_a_call_have_no_address(taken: str, call: str) -> None:
    text = """
.version 8.0
.target sm_80
.address_size 64
.func (.param .b32 r) f(.param .align 4 .b8 s[8]) {
    .reg .b32 %r1; .reg .b64 %d1;
    TAKEN
    CALL
    ld.param.u32 %r1, [%d1];
    st.param.b32 [r], %r1;
    ret;
}
.visible .entry k() {
    .reg .b32 %r1;
    { .param .align 4 .b8 s[8]; .param .b32 q;
    st.param.b32 [s], 5; st.param.b32 [s+4], 6;
    call (q), f, (s);
    ld.param.b32 %r1, [q]; }
    ret;
}"""
    module = wl.Device("a100").compile(text.replace("TAKEN", taken).replace("CALL", call), "ptx")
    with pytest.raises(wl.UnsupportedInstruction, match=r":7:.*has no address here: copy it"):
        module["k"][1, 32]()
