"""Small forms that ptxas accepts and the manual's grammar barely shows: vectors of registers as
parameters, sums of a register and a constant, and variables of the module within functions."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl
from warploom.core.errors import PtxError
from warploom.ptx.parser import parse
from warploom.ptx.printer import print_module

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
KERNEL = """.visible .entry k(.param .u64 out)
{{ .reg .b64 p, l; .reg .b32 a, b, c; .reg .b16 s; .reg .f32 f; .reg .pred q;
ld.param.u64 p, [out]; mov.u32 a, 10; mov.u32 b, 20; mov.u64 l, 7; mov.u16 s, 9;
mov.f32 f, 0f00000000;
{body} ret; }}
"""


def run(text: str) -> list[int]:
    """Returns the first words that a kernel wrote, as it is read and as it is printed and read."""
    results = list[list[int]]()
    for source in (HEAD + text, print_module(parse(HEAD + text))):
        gpu = wl.Device("rtx-4090")
        out = gpu.zeros(4, np.uint32)
        gpu.compile(source, "ptx")["k"][1, 1](out)
        results.append(out.copy_to_host().tolist())
    assert results[0] == results[1]
    return results[0]


def kernel(body: str) -> str:
    return KERNEL.format(body=body)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("st.global.u32 [p], a + 1;", [11]),
        ("st.global.u32 [p], a+-4;", [6]),
        ("st.global.u64 [p], l + 0x100000000;", [7, 1]),
        ("st.global.u16 [p], s + 0xffff;", [8]),
        ("add.u32 c, a + 1, b + 2; st.global.u32 [p], c;", [33]),
        ("setp.eq.u32 q, a + 1, 11; @q st.global.u32 [p], a;", [10]),
        ("setp.eq.u32 q, a, 11; @q st.global.u32 [p], a + 1; st.global.u32 [p+4], b;", [0, 20]),
        ("mov.u64 l, p + 4; st.global.u32 [l], a;", [0, 10]),
        (
            "st.global.u32 [p], b; atom.global.add.u32 c, [p], a + 5; st.global.u32 [p+4], c;",
            [35, 20],
        ),
    ],
)
def test_a_source_may_be_a_register_and_a_constant(body: str, words: list[int]) -> None:
    assert run(kernel(body))[: len(words)] == words


def test_a_sum_is_an_instruction_of_its_own() -> None:
    """ptxas emits an IADD3 for it."""
    gpu = wl.Device("rtx-4090")
    out = gpu.zeros(4, np.uint32)
    sums, plain = (
        gpu.compile(HEAD + kernel(body), "ptx")["k"][1, 1](out).counters.warp_instructions
        for body in ("st.global.u32 [p], a + 1;", "st.global.u32 [p], a;")
    )
    assert sums == plain + 1


@pytest.mark.parametrize(
    "body",
    [
        "st.global.u32 [p], a - 1;",
        "st.global.u32 [p], a + b;",
        "add.u32 c + 1, a, b;",
        "st.global.f32 [p], f + 1;",
        "st.global.v2.u32 [p], {a + 1, b};",
        "selp.u32 c, a, b, q + 1;",
    ],
)
def test_other_sums_are_refused(body: str) -> None:
    """ptxas refuses all but that of a float, for which it emits nothing."""
    with pytest.raises(PtxError):
        parse(HEAD + kernel(body))


def test_vectors_of_registers_are_parameters_and_results() -> None:
    swap = """.func (.reg .v4 .u16 o, .reg .u32 n) swap(.reg .v4 .u16 i, .reg .u32 m)
    { mov.u16 o.x, i.w; mov.u16 o.y, i.z; mov.u16 o.z, i.y; mov.u16 o.w, i.x;
    add.u32 n, m, 1; ret; }
    """
    body = """.reg .v4 .u16 v, w; mov.u16 v.x, 1; mov.u16 v.y, 2; mov.u16 v.z, 3; mov.u16 v.w, 4;
    call (w, c), swap, (v, a); st.global.u16 [p], w.x; st.global.u16 [p+4], w.y;
    st.global.u16 [p+8], w.w; st.global.u32 [p+12], c;"""
    assert run(swap + kernel(body)) == [4, 3, 1, 11]


def test_a_vector_argument_needs_as_many_parts() -> None:
    pair = ".func pair(.reg .v2 .u32 i) { ret; }\n"
    text = HEAD + pair + kernel(".reg .v4 .u32 v; call pair, (v);")
    with pytest.raises(PtxError, match="2 arguments, but the call has 4"):
        wl.Device("rtx-4090").compile(text, "ptx")["k"][1, 1](0)


def test_functions_declare_variables_of_the_module() -> None:
    """Each scope has its own, and a variable keeps its value from call to call."""
    count = """.func (.reg .u32 o) count() { .global .u32 n = 5;
    ld.global.u32 o, [n]; add.u32 o, o, 1; st.global.u32 [n], o; ret; }
    """
    body = """.global .u32 n = 1; call (a), count; call (b), count;
    { .const .u32 n[2] = {8, 9}; ld.const.u32 c, [n+4]; st.global.u32 [p+8], c; }
    ld.global.u32 c, [n]; st.global.u32 [p], a; st.global.u32 [p+4], b; st.global.u32 [p+12], c;"""
    assert run(count + kernel(body)) == [6, 7, 9, 1]
