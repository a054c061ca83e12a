"""Checks messages of faults: unsigned addresses, nouns for accesses, source lines of the user."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warploom as wl
from warploom.core.source import Location

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
ENTRY = ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .pred %q;\n"
POINTER = "ld.param.u64 %rd1, [p];\ncvta.to.global.u64 %rd2, %rd1;\n"
ENGINES = pytest.mark.parametrize("engine", ["compiled", "reference"])


def message(engine: str, body: str, tail: str = "", head: str = "", **options: Any) -> str:
    """Returns the message that a kernel with that body raises, launched with a buffer of 4
    bytes."""
    gpu = wl.Device("a100", engine=engine)
    text = f"{HEAD}{head}{ENTRY}{POINTER}{body}\nret;\n}}\n{tail}"
    kernel = gpu.compile(text, "ptx", name="k.ptx")["k"]
    with pytest.raises(wl.WarploomError) as caught:
        kernel[1, 32](gpu.zeros(1, np.int32, "x"), **options)
    return str(caught.value)


@ENGINES
def test_addresses_are_unsigned(engine: str) -> None:
    output = message(engine, "mov.b64 %rd3, 0xfffffffffffffff0; st.global.u32 [%rd3], %r1;")
    assert "Address 0xfffffffffffffff0 is" in output
    assert "bytes after the nearest allocation, x" in output


@ENGINES
@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("ld.global.u32 %r1, [%rd2+64];", "Invalid __global__ read"),
        ("st.global.u32 [%rd2+64], %r1;", "Invalid __global__ write"),
        ("atom.global.add.u32 %r1, [%rd2+64], 1;", "Invalid __global__ atomic"),
        ("red.global.add.u32 [%rd2+64], 1;", "Invalid __global__ atomic"),
        (
            "mov.u32 %r1, 4096; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];",
            "Invalid __shared__ read",
        ),
        ("mov.u32 %r1, 4096; mbarrier.init.shared.b64 [%r1], 1;", "Invalid __shared__ mbarrier"),
    ],
)
def test_faults_name_what_the_instruction_does(engine: str, body: str, title: str) -> None:
    assert message(engine, body).startswith(title)


HEADER = "/x/site-packages/nvidia/cu13/include/crt/mma.hpp"
FILES = f'.file 1 "k.cu"\n.file 2 "{HEADER}"\n.file 3 "include/mine.h"\n'
STRINGS = ".section .debug_str\n{\n$L__info:\n.b8 97\n.b8 0\n}\n"


@ENGINES
@pytest.mark.parametrize(
    ("locations", "line"),
    [
        (".loc 1 7 3", "k.cu:7"),
        (".loc 1 7 3\n.loc 1 0 3", "k.cu:7"),  # code without a line of its own
        (".loc 1 8 3\n.loc 2 91 5, function_name $L__info, inlined_at 1 8 3", "k.cu:8"),
        (".loc 1 8 3\n.loc 3 9 5, function_name $L__info, inlined_at 1 8 3", "include/mine.h:9"),
    ],
)
def test_faults_are_at_lines_of_the_user(engine: str, locations: str, line: str) -> None:
    output = message(engine, f"{locations}\nst.global.u32 [%rd2+64], %r1;", FILES + STRINGS)
    header = " (in mma.hpp:91)" if "91" in locations else ""
    assert f"    at {line}{header} in kernel k, by" in output


@pytest.mark.parametrize(
    ("file", "in_toolkit"),
    [
        (HEADER, True),
        ("/usr/local/cuda-12.4/targets/x86_64-linux/include/cooperative_groups.h", True),
        ("/usr/local/cuda/include/cuda_fp16.hpp", True),
        (r"C:\venv\nvidia\cu13\include\mma.h", True),
        ("__nv_nvrtc_builtin_header.h", True),
        ("/home/me/project/include/mine.h", False),
        ("include/cuda/mine.h", False),
        ("k.cu", False),
    ],
)
def test_toolkit_headers_are_recognised(file: str, in_toolkit: bool) -> None:
    assert Location(file, 1).in_toolkit == in_toolkit


@ENGINES
def test_a_limit_names_the_loops(engine: str) -> None:
    body = ".loc 1 5 3\nl: add.u32 %r1, %r1, 1;\nsetp.ne.u32 %q, %r1, 0;\n@%q bra l;"
    output = message(engine, body, FILES, max_instructions=1000)
    assert "did not end within its limit of 1,000 warp instructions" in output
    assert "whether its loop at k.cu:5 can end" in output
    assert "no loop" in message(engine, "add.u32 %r1, %r1, 1;", max_instructions=2)


@ENGINES
def test_an_endless_loop_is_no_wait_for_memory(engine: str) -> None:
    output = message(engine, ".loc 1 5 3\nl: bra l;", FILES)
    assert output.startswith("endless loop in kernel k")
    assert re.search(r"lanes 0 to 31 at k\.cu:5: run a loop that has no exit", output)
    spin = "l: ld.volatile.global.u32 %r1, [%rd2];\nsetp.eq.u32 %q, %r1, 0;\n@%q bra l;"
    output = message(engine, spin)
    assert output.startswith("deadlock in kernel k")
    assert "spin on a value that no runnable thread can change" in output


@ENGINES
def test_printf_reads_its_format(engine: str) -> None:
    head = ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"
    body = """{ .param .b64 a; .param .b64 b; .param .b32 r;
        add.u64 %rd3, %rd1, 64; st.param.b64 [a], %rd3; st.param.b64 [b], %rd1;
        call.uni (r), vprintf, (a, b); }"""
    assert message(engine, body, head=head).startswith("Invalid __global__ read")


LOCK = """
__global__ void count(int *lock)
{
    while (atomicCAS(lock, 0, 1) != 0)
        ;
    atomicExch(lock, 0);
}
"""


@ENGINES
def test_lanes_that_wait_to_reconverge_name_those_that_are_missing(engine: str) -> None:
    """Below 7.0, lane 0 has the lock and waits behind the loop for lanes 1 to 3, which spin."""
    kernel = wl.Device("gtx-1080", engine=engine).compile(LOCK)["count"]
    with pytest.raises(wl.DeadlockError, match="wait for reconvergence with lanes 1 to 3"):
        kernel[1, 4](np.zeros(1, np.int32))


def test_a_program_in_place_of_a_kernel_is_sent_to_run(tmp_path: Path) -> None:
    program = tmp_path / "nb.py"
    program.write_text("print()", "utf-8")
    with pytest.raises(wl.WarploomError, match=r"To run a program: `warploom run nb\.py`"):
        wl.Device().load(program)
