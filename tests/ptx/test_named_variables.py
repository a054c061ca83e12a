"""Accesses without a state space at the name of a variable. The manual knows only generic addresses
there; ptxas 13.5 makes of them accesses to the variable's own space (`LDS`, `STL`)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from needs import NEEDS_PTXAS
from taken_modules import is_taken

import warploom as wl
from warploom.core.errors import PtxSyntaxError
from warploom.host.programs.ptxas import find_tool
from warploom.ptx.parser import parse
from warploom.ptx.verify import verify

MODULE = """.version 8.5
.target sm_90
.address_size 64
.const .align 16 .b32 c[4] = {1, 2, 3, 4};
.global .align 16 .b32 g[4] = {5, 6, 7, 8};
.func (.reg .u32 r) kept_on_stack(.reg .u32 a)
{ .local .align 8 .b32 own[2]; st.u32 [own+4], a; ld.u32 r, [own+4]; ret; }
.visible .entry k(.param .u64 out)
{ .shared .align 16 .b32 s[4]; .local .align 16 .b32 l[4];
.reg .b32 a, b, t; .reg .b64 p; .reg .pred q;
ld.param.u64 p, [out]; mov.u32 t, %tid.x; mov.u32 a, 10;
LINE
st.global.u32 [p], b; ret; }
"""


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("st.u32 [s+4], a; ld.shared.u32 b, [s+4];", 10),
        ("st.shared.u32 [s+8], a; ld.u32 b, [s+8];", 10),
        ("st.u32 [l+4], a; ld.local.u32 b, [l+4];", 10),
        ("st.v2.u32 [s], {a, 3}; ld.v2.u32 {a, b}, [s];", 3),
        ("st.u32 [s], a; atom.add.u32 b, [s], 5; ld.volatile.u32 b, [s];", 15),
        ("st.u32 [s], a; red.max.u32 [s], 12; ld.acquire.gpu.u32 b, [s];", 12),
        ("ld.u32 b, [g+4];", 6),
        ("call (b), kept_on_stack, (a);", 10),
    ],
)
def test_an_access_at_a_name_is_one_to_that_variable(line: str, word: int, engine: str) -> None:
    gpu = wl.Device("h100", engine=engine)
    out = gpu.zeros(1, np.uint32)
    gpu.compile(MODULE.replace("LINE", line), "ptx")["k"][1, 1](out)
    assert out.copy_to_host()[0] == word


FORMS = (
    "ld.u32 b, [V];",
    "ld.v2.u32 {a, b}, [V];",
    "ld.acquire.gpu.u32 b, [V];",
    "st.u32 [V], a;",
    "atom.add.u32 b, [V], 1;",
    "atom.cas.b32 b, [V], 1, 2;",
    "prefetch.L1 [V];",
    "mbarrier.init.b64 [V], 1;",
)

MORE_THAN_THE_MANUAL = ("ld.acquire.gpu.u32 b, [l];",)
"""Accepted by ptxas, though neither is a generic address nor has the instruction a form for local
memory."""


@NEEDS_PTXAS
@pytest.mark.parametrize("form", FORMS)
def test_such_accesses_are_accepted_as_by_ptxas(form: str, tmp_path: Path) -> None:
    ptxas, file = find_tool("ptxas"), tmp_path / "named.ptx"
    assert ptxas is not None
    for variable in ("s", "l", "c", "g", "s+4"):
        line = form.replace("V", variable)
        file.write_text(MODULE.replace("LINE", line), encoding="utf-8")
        command = [ptxas, "-arch", "sm_90", file, "-o", tmp_path / "out"]
        done = subprocess.run(command, capture_output=True, check=False)
        accepted = is_taken(file.read_text("utf-8"))
        assert accepted == (done.returncode == 0) or line in MORE_THAN_THE_MANUAL, line


def test_a_barrier_in_global_memory_is_an_error() -> None:
    text = MODULE.replace("LINE", "mbarrier.init.b64 [g], 1;")
    with pytest.raises(PtxSyntaxError, match=r"`g` is in \.global memory"):
        verify(parse(text))


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_result_can_be_discarded(engine: str) -> None:
    """PTX ISA, "call": `_` stands for a result that is not needed."""
    text = MODULE.replace(
        ".visible .entry",
        """.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 hi[3] = {104, 105, 0};
.func (.param .u32 r) stores(.param .u64 p) { .reg .u64 p_; ld.param.u64 p_, [p];
st.global.u32 [p_+4], 3; ret; }
.visible .entry""",
    )
    calls = """{ .param .u64 x, y; st.param.u64 [x], p; call.uni (_), stores, (x);
call (_), kept_on_stack, (a); mov.u64 p, hi; st.param.b64 [x], p; st.param.b64 [y], 0;
call (_), vprintf, (x, y); ld.param.u64 p, [out]; mov.u32 b, 1; }"""
    printed = list[str]()
    gpu = wl.Device("h100", engine=engine, output=printed.append)
    out = gpu.zeros(2, np.uint32)
    gpu.compile(text.replace("LINE", calls), "ptx")["k"][1, 1](out)
    assert out.copy_to_host().tolist() == [1, 3]
    assert "".join(printed) == "hi"
