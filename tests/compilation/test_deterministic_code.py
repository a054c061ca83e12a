"""Checks that the LLVM IR of a kernel, and its key in the cache on disk, are the same in every
process, for any seed of string hashes
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

KEYS = """
import sys
from dataclasses import replace
from warploom.compilation import jit
from warploom.cost.device_rules import access_rules
from warploom.devices.catalog import find_device
from warploom.ir.options import Pass
from warploom.ir.variant import Debugging, KernelVariant, Observing, Sanitizing
from warploom.isa.instruction import Space
from warploom.llvm.opt_level import Effort
from warploom.program.build import build
from warploom.ptx.parser import parse
from warploom.shapes.warp_layout import warp_layout_of

program = build(parse(sys.stdin.read()), "k")
plain = KernelVariant(
    warp_layout_of((256, 1, 1)), alike=True, size=None, independent=True, interleaves_paths=False,
    shuffles=False, records=False,
)
numbers = frozenset(range(0, 1 << 20, 4099))
sanitized = Sanitizing(frozenset(Space), True, unchecked=numbers, aligned=numbers, written=numbers)
variants = (
    plain,
    replace(plain, records=True),
    replace(plain, sanitizes=sanitized),
    replace(plain, debugging=Debugging(True, True)),
    replace(plain, observes=Observing(True, True)),
    replace(plain, disabled=frozenset(Pass)),
)
for variant in variants:
    for level in Effort:
        print(jit.Compilation(program, access_rules(find_device(), None), variant, level).key)
"""
"""Prints the keys of the kernel's code with each kind of instrumentation and of other options."""


def printed(program: str, seed: int) -> str:
    """Returns what a program about the kernel prints in a process with a seed."""
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        input=KERNEL,
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout


def test_code_does_not_depend_on_the_order_of_sets() -> None:
    first = printed(PROGRAM, 1)
    assert "define" in first
    assert all(printed(PROGRAM, seed) == first for seed in (2, 3))


def test_keys_are_the_same_in_every_process() -> None:
    keys = printed(KEYS, 1).split()
    # Six variants at four levels; baseline code leaves no pass out.
    assert len(set(keys)) == 6 * 4 - 1
    assert all(printed(KEYS, seed).split() == keys for seed in (2, 3))
