"""Checks baseline code: one copy of each basic block, in which most instructions are calls of
functions that kernels share, on registers in a warp's context."""

from __future__ import annotations

import re
import statistics
from itertools import pairwise

import llvmlite.binding as llvm
import pytest
from build_helpers import RULES, VARIANT
from families import CASES
from hypothesis import given, settings
from random_programs import kernels

import warploom as wl
from warploom.abi.context_layout import context_layout
from warploom.abi.environment import CountLayout
from warploom.compilation.emission import KernelIR, emit_ir
from warploom.compilation.jit import Compilation, compile_kernel, find_kernel
from warploom.isa.instruction import Register
from warploom.llvm import disk_cache
from warploom.llvm.lanes import LANES
from warploom.llvm.opt_level import Effort
from warploom.lower.access import shared_functions
from warploom.program.build import build
from warploom.program.program import Program
from warploom.program.uses import reads, writes
from warploom.ptx.parser import parse
from warploom.shapes.operand_shapes import NO_SHAPES

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
AXPY = (
    HEAD
    + """
.visible .entry k(.param .u64 words, .param .f32 a)
{
.reg .pred %p; .reg .b32 %r<2>; .reg .f32 %f<3>; .reg .b64 %d<3>;
ld.param.u64 %d0, [words];
ld.param.f32 %f0, [a];
mov.u32 %r0, %tid.x;
mad.wide.u32 %d1, %r0, 4, %d0;
ld.global.f32 %f1, [%d1+8];
setp.lt.f32 %p, %f1, 0f00000000;
@!%p fma.rn.f32 %f2, %f0, %f1, 0f3F800000;
st.global.f32 [%d1], %f2;
ret;
}
"""
)


def emitted(text: str) -> KernelIR:
    return emit_ir(CountLayout(build(parse(text), "k"), RULES), VARIANT)


def called_by(kernel: KernelIR) -> list[str]:
    """Returns the functions that a kernel calls, by number, without the names of access rules."""
    [array] = re.findall(r'@"functions" = .* constant \[\d+ x ptr\] \[(.*)\]', kernel.text)
    return [re.sub(r"\.\w{16}$", "", name) for name in re.findall(r'ptr @"([^"]*)"', array)]


def test_instructions_are_calls_on_slots_of_registers() -> None:
    """A function's name has its operation and the forms of its operands: registers by their bits
    (predicates have 1), numbers as `n`."""
    assert set(called_by(emitted(AXPY))) == {
        "parameter.u64(r64)",
        "parameter.f32(r32)",
        "operation.mov.u32(32,=,r32)",
        "operation.mad.wide.u32(64,=,r32,n,r64)",
        "access.load.global.f32x1.[r64](r32)",
        "operation.setp.lt.f32(1,=,r32,n)",
        "operation.fma.rn.f32(32,=,r32,r32,n)",
        "access.store.global.f32x1.[r64](r32)",
        "guard(!r1)",
        "end",
    }


def test_instructions_of_a_block_are_a_call_table() -> None:
    """The whole basic block is data: slots in the context, offsets, numbers. A guard runs the calls
    up to the next `end`."""
    kernel = emitted(AXPY)
    [array] = re.findall(r'@"calls" = .* constant \[\d+ x i64\] \[(.*)\]', kernel.text)
    words = [int(word) for word in re.findall(r"i64 (-?\d+)", array)]
    numbers = {name: number for number, name in enumerate(called_by(kernel))}
    program = build(parse(AXPY), "k")
    slots = context_layout(program, NO_SHAPES, (), 0, baseline=True).by_lane
    by_name = {register.name: at for register, at in slots.items()}
    f0, f1, f2, p = (by_name[name] for name in ("%f0", "%f1", "%f2", "%p"))
    fma = [numbers["operation.fma.rn.f32(32,=,r32,r32,n)"], f2, f0, f1, 0x3F800000, numbers["end"]]
    count = CountLayout(program, RULES).guarded[6]
    guarded = [numbers["guard(!r1)"], 6, p, count, len(fma), *fma]
    assert any(words[at : at + len(guarded)] == guarded for at in range(len(words)))
    assert words[-1] == numbers["end"]


def test_kernels_share_functions() -> None:
    """An edit of a kernel that uses no new form of an instruction needs no new function."""
    edited = AXPY.replace("st.global", "add.s64 %d1, %d1, %d0;\nst.global")
    functions = emitted(edited).functions.keys() - emitted(AXPY).functions.keys()
    assert functions == {"operation.add.s64(64,=,r64,r64)"}


def test_a_kernel_whose_functions_are_missing_is_compiled_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = build(parse(AXPY.replace("fma.rn", "fma.rz")), "k")
    wanted = Compilation(program, RULES, VARIANT, Effort.NONE)
    compile_kernel(wanted)
    find = disk_cache.find
    monkeypatch.setattr(
        disk_cache, "find", lambda kind, key: find(kind, key) if kind != "function" else None
    )
    loaded: dict[str, llvm.ExecutionEngine] = {}
    monkeypatch.setattr(shared_functions, "_loaded", loaded)
    monkeypatch.setattr(shared_functions, "_shipped", dict[str, bytes])
    assert find_kernel(wanted) is None
    assert compile_kernel(wanted).baseline
    monkeypatch.undo()
    shared_functions._loaded.update(loaded)  # whose code is what later kernels call


def test_registers_that_are_live_at_once_have_disjoint_slots() -> None:
    """The slot of a register overlaps no other's between its first and last use in a basic
    block."""

    @settings(max_examples=15)
    @given(text=kernels())
    def check(text: str) -> None:
        program = build(parse(text), "k")
        slots = context_layout(program, NO_SHAPES, (), 0, baseline=True).by_lane
        for block in program.blocks:
            live: dict[Register, set[int]] = {}
            for at in range(block.start, block.stop):
                for register in (
                    *reads(program.instructions[at]),
                    *writes(program.instructions[at]),
                ):
                    live.setdefault(register, set()).add(at)
            for at in range(block.start, block.stop):
                here = [r for r, used in live.items() if min(used) <= at <= max(used)]
                spans = sorted((slots[r], slots[r] + LANES * r.type.bits // 8) for r in here)
                assert all(one[1] <= two[0] for one, two in pairwise(spans))

    check()


def test_there_are_few_llvm_instructions_for_an_instruction_of_ptx() -> None:
    """The median is at most 30, over every third kernel of the benchmarks."""
    gpu, cases = wl.Device(), CASES[::3]
    modules = {path: gpu.load(path) for path in {case.path for case in cases}}
    programs = [modules[case.path][case.kernel].program for case in cases]
    assert statistics.median(map(density, programs)) <= 30


def test_code_is_emitted_for_basic_blocks_not_for_their_instructions() -> None:
    """A basic block with ten times the instructions has as many LLVM instructions."""
    more = AXPY.replace(
        "st.global", 9 * "add.f32 %f2, %f2, %f1;\nst.global.f32 [%d1+4], %f2;\n" + "st.global"
    )
    assert lines_of(emitted(more)) == lines_of(emitted(AXPY))


def density(program: Program) -> float:
    """Returns the number of LLVM instructions for each PTX instruction."""
    return lines_of(emit_ir(CountLayout(program, RULES), VARIANT)) / len(program.instructions)


def lines_of(kernel: KernelIR) -> int:
    return sum(line.startswith("  ") for line in kernel.text.split("\n"))
