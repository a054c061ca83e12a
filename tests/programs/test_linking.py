"""Linking (PTX ISA, "Linking Directives"): what one source declares, another defines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warploom as wl
from warploom.ptx.parser import parse

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
ENGINES = pytest.mark.parametrize("engine", ["compiled", "reference"])

KERNEL = """
.visible .entry k(.param .u64 out) {
    .reg .u64 %at; .reg .u32 %v, %w;
    ld.param.u64 %at, [out];
"""
END = """
    st.global.u32 [%at], %v;
    ret;
}
"""


def linked(engine: str, *texts: str) -> int:
    """The first word that kernel `k` of the linked texts writes."""
    gpu = wl.Device("a100", engine=engine)
    out = gpu.zeros(4, np.uint32)
    gpu.link([HEADER + text for text in texts])["k"][1, 1](out)
    return int(out.copy_to_host()[0])


def refused(*texts: str) -> str:
    with pytest.raises(wl.LinkError) as caught:
        wl.Device("a100").link([HEADER + text for text in texts], names=["a.ptx", "b.ptx"])
    return str(caught.value)


CALLS = KERNEL + "call (%v), scale, (20);" + END
SCALE = ".func (.reg .u32 r) scale(.reg .u32 a)"


@ENGINES
def test_a_function_of_another_module_is_called(engine: str) -> None:
    body = f".visible {SCALE} {{ mul.lo.u32 r, a, 3; ret; }}"
    assert linked(engine, f".extern {SCALE};" + CALLS, body) == 60
    assert linked(engine, body, f".extern {SCALE};" + CALLS) == 60


@ENGINES
def test_a_variable_of_another_module_is_read(engine: str) -> None:
    reads = ".extern .global .u32 x[];" + KERNEL + "ld.global.u32 %v, [x+4];" + END
    assert linked(engine, reads, ".visible .global .u32 x[2] = {7, 9};") == 9


@ENGINES
def test_a_pointer_to_a_variable_that_comes_later(engine: str) -> None:
    """Each module begins a variable with the address of the other's."""
    first = (
        ".extern .global .u64 back; .visible .global .u64 there = back;"
        + KERNEL
        + """ld.global.u64 %at, [there]; ld.global.u64 %at, [%at]; mov.u32 %v, 5;
             st.global.u32 [%at], %v; ld.global.u32 %v, [value]; ld.param.u64 %at, [out];"""
        + END
    )
    first = ".extern .global .u32 value;" + first
    second = ".visible .global .u32 value; .visible .global .u64 back = value;"
    assert linked(engine, first, second) == 5


@ENGINES
def test_names_that_are_not_visible_stay_different(engine: str) -> None:
    """Both modules have a function, a constant and a shared variable of their own, of one name."""
    own = """
    .const .u32 c = {0};
    .shared .u32 s;
    .func (.reg .u32 r) helper(.reg .u32 a) {{
        .reg .u32 t;
        ld.const.u32 t, [c];
        st.shared.u32 [s], t;
        mad.lo.u32 r, t, {1}, a;
        ret;
    }}
    """
    first = own.format(100, 1) + ".extern .func (.reg .u32 r) other(.reg .u32 a);"
    second = (
        own.format(7, 2)
        + """
    .visible .func (.reg .u32 r) other(.reg .u32 a) { call (r), helper, (a); ret; }
    """
    )
    body = "call (%v), helper, (1000); call (%v), other, (%v); ld.shared.u32 %w, [s];"
    kernel = first + KERNEL + body + "add.u32 %v, %v, %w;" + END
    # 1000 + 100 * 1, then + 7 * 2; the kernel's own s still holds 100.
    assert linked(engine, kernel, second) == 1000 + 100 + 14 + 100


@ENGINES
def test_names_within_a_function_are_not_those_of_another_module(engine: str) -> None:
    """The other module has an `out`, a `there` and a `buffer` of its own."""
    body = """
    .local .u32 buffer[2];
    mov.u32 %w, 6; st.local.u32 [buffer+4], %w;
    bra there;
    mov.u32 %w, 1;
there:
    ld.local.u32 %v, [buffer+4];
    """
    other = ".visible .global .u32 out = 1; .visible .global .u32 buffer; .global .u32 there;"
    assert linked(engine, KERNEL + body + END, other) == 6
    assert linked(engine, other, KERNEL + body + END) == 6


@ENGINES
def test_weak_gives_way(engine: str) -> None:
    weak = f".weak {SCALE} {{ mov.u32 r, 1; ret; }}"
    strong = f".visible {SCALE} {{ mov.u32 r, 2; ret; }}"
    assert linked(engine, weak + CALLS, strong) == 2
    assert linked(engine, strong, weak + CALLS) == 2
    # Among equals the first one stays.
    assert linked(engine, weak + CALLS, weak.replace("r, 1", "r, 3")) == 1


@ENGINES
def test_common_is_as_large_as_the_largest(engine: str) -> None:
    small = ".common .global .u32 x[1];"
    large = ".common .global .u32 x[8];"
    body = "mov.u32 %w, 4; st.global.u32 [x+28], %w; ld.global.u32 %v, [x+28];"
    assert linked(engine, small + KERNEL + body + END, large) == 4
    begun = ".common .global .u32 x[8] = {1, 2, 3};"
    assert linked(engine, begun + KERNEL + "ld.global.u32 %v, [x+8];" + END, small) == 3
    assert "has an initial value here" in refused(small.replace(";", " = {5};"), large)


@ENGINES
def test_dynamic_shared_memory_is_one(engine: str) -> None:
    part = ".extern .shared .align {0} .b8 memory[];"
    writes = part.format(4) + ".visible .func put() { .reg .u32 t; mov.u32 t, 8;"
    writes += " st.shared.u32 [memory+4], t; ret; }"
    reads = ".shared .u32 own;" + part.format(64) + ".extern .func put();" + KERNEL
    reads += "call put; ld.shared.u32 %v, [memory+4]; mov.u32 %w, memory; st.shared.u32 [own], %w;"
    reads += "and.b32 %w, %w, 63; add.u32 %v, %v, %w;" + END
    gpu = wl.Device("a100", engine=engine)
    out = gpu.zeros(1, np.uint32)
    gpu.link([HEADER + reads, HEADER + writes])["k"][1, 1, 0, 16](out)
    assert out.copy_to_host()[0] == 8


def test_two_definitions_name_both_places() -> None:
    message = refused(".visible .global .u32 x;", "\n\n.visible .global .u32 x;")
    assert "a.ptx:4" in message
    assert "b.ptx:6" in message
    both = f".visible {SCALE} {{ ret; }}"
    assert "`scale` is defined here (b.ptx:4) and in a.ptx:4" in refused(both, both)
    kernel = ".entry k() { ret; }"
    assert "`k` is defined here" in refused(kernel, kernel)


def test_declarations_that_say_something_else() -> None:
    assert "differs from its definition" in refused(
        ".extern .global .u32 x;", ".visible .global .u64 x;"
    )
    assert "differs from its definition" in refused(
        ".extern .global .u32 x;", ".visible .const .u32 x;"
    )
    assert "differs from its definition" in refused(
        ".extern .func x();", ".visible .global .u64 x;"
    )
    fewer = ".visible .func (.reg .u32 r) scale() { ret; }"
    assert "differs from its definition" in refused(f".extern {SCALE};", fewer)


def test_addresses_of_two_sizes_do_not_link() -> None:
    with pytest.raises(wl.LinkError, match=r"part 2:1:1: addresses have 32 bits here but 64 in"):
        wl.Device("a100").link([HEADER, HEADER.replace("64", "32")])


def test_what_nobody_defines() -> None:
    message = refused(".extern .global .u32 x;", "")
    assert message.startswith("a.ptx:4:22: no linked module defines `x`")
    module = wl.Device("a100").link([HEADER + f".extern {SCALE};" + CALLS, HEADER])
    with pytest.raises(wl.UnsupportedInstruction, match=r"`scale` has no body.*gpu\.link"):
        module["k"][1, 1](0)


def test_services_need_no_definition() -> None:
    prints = """
    .extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
    .global .b8 text[] = {104, 105, 0};
    .visible .entry k() {
        .param .b32 r0; .param .b64 p0; .param .b64 p1; .reg .u64 t;
        mov.u64 t, text; st.param.b64 [p0], t; st.param.b64 [p1], 0;
        call (r0), vprintf, (p0, p1);
        ret;
    }
    """
    texts: list[str] = []
    gpu = wl.Device("a100", output=texts.append)
    gpu.link([HEADER + prints, HEADER + ".global .u32 text;"])["k"][1, 2]()
    assert "".join(texts) == "hihi"


def test_lines_are_those_of_the_part() -> None:
    """A bad access names the text and the line in it, whichever part it stands in."""
    bad = "\n.visible .func bad() { .reg .u32 t;\n ld.global.u32 t, [0];\n ret; }"
    kernel = ".extern .func bad(); .visible .entry k() { call bad; ret; }"
    gpu = wl.Device("a100")
    with pytest.raises(wl.MemoryFault) as caught:
        gpu.link([HEADER + kernel, HEADER + bad], names=["a.ptx", "b.ptx"])["k"][1, 1]()
    assert caught.value.line == "b.ptx:6"


def test_the_text_of_a_linked_module_is_ptx() -> None:
    first = f".extern {SCALE}; .global .u32 own = 1;" + CALLS
    second = f".global .u32 own = 2; .visible {SCALE} {{ ld.global.u32 r, [own]; ret; }}"
    module = wl.Device("a100").link([HEADER + first, HEADER.replace("80", "90") + second])
    assert module.ir.target == ("sm_90",)
    assert parse(module.ptx) == module.ir


MAIN_CU = """
extern __device__ int factor;
extern __device__ int scaled(int);
static __device__ __noinline__ int helper(int x) { return x + 1; }
__constant__ int table[2] = {10, 20};
extern "C" __global__ void k(int* out) {
    int t = threadIdx.x;
    out[t] = scaled(helper(t)) + factor + table[t & 1];
}
"""
PART_CU = """
__device__ int factor = 1000;
static __device__ __noinline__ int helper(int x) { return x * 5; }
__device__ int scaled(int x) { return helper(x); }
"""


@ENGINES
def test_cuda_sources_are_compiled_separately(engine: str, tmp_path: Path) -> None:
    (tmp_path / "main.cu").write_text(MAIN_CU, "utf-8")
    (tmp_path / "part.cu").write_text(PART_CU, "utf-8")
    gpu = wl.Device("a100", engine=engine)
    out = gpu.zeros(32, np.int32)
    run = gpu.link([tmp_path / "main.cu", str(tmp_path / "part.cu")])["k"][1, 32](out)
    lanes = np.arange(32)
    assert np.array_equal(out.copy_to_host(), (lanes + 1) * 5 + 1000 + 10 * (1 + lanes % 2))
    files = {line.rpartition("/")[2].partition(":")[0] for line in run.counters.by_line()}
    assert files == {"main.cu", "part.cu"}
