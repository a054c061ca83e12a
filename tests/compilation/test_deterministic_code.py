"""Checks that the LLVM IR of a kernel is the same in every process, for any seed of string hashes
(Python, "Command line and environment", PYTHONHASHSEED)."""

from __future__ import annotations

import os
import subprocess
import sys

KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b16 %h<3>; .reg .b32 %r<4>; .reg .b64 %d<5>; .reg .pred %p<3>;
    ld.param.u64 %d1, [out];
again:
    add.u16 %h1, %h1, 1;
    add.u32 %r1, %r1, 2;
    add.u64 %d2, %d2, 3;
    add.u16 %h2, %h2, %h1;
    add.u32 %r2, %r2, %r1;
    add.u64 %d3, %d3, %d2;
    setp.lt.u32 %p1, %r1, 100;
    @%p1 bra again;
    cvt.u64.u16 %d4, %h2;
    add.u64 %d3, %d3, %d4;
    cvt.u64.u32 %d4, %r2;
    add.u64 %d3, %d3, %d4;
    st.global.u64 [%d1], %d3;
    ret;
}
"""
"""A kernel of which six registers, of three sizes, are read before any instruction writes them."""

PROGRAM = """
import sys
from warploom.program.build import build
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.launch import Launch
from warploom.ptx.parser import parse

program = build(parse(sys.stdin.read()), "k")
print(CompiledEngine().llvm_ir(program, Launch((1, 1, 1), (256, 1, 1), b""), baseline=False))
"""


def emitted(seed: int) -> str:
    """Returns the LLVM IR of the kernel, emitted in a process with a seed."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        input=KERNEL,
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout


def test_code_does_not_depend_on_the_order_of_sets() -> None:
    first = emitted(1)
    assert "define" in first
    assert all(emitted(seed) == first for seed in (2, 3))
