"""Tests the cost of matrix instructions for a tensor core: as many multiply-adds of 16 bits as take
equally long."""

from __future__ import annotations

import numpy as np
import pytest
from needs import NEEDS_PTXAS

import warploom as wl
from warploom.devices.timing import find_timing
from warploom.isa.instruction import Instruction
from warploom.isa.spec import decode
from warploom.timing.work.classes import class_of
from warploom.timing.work.operands import products_of

SCALED = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"


@pytest.mark.parametrize(
    ("opcode", "products"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 16 * 8 * 16),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 16 * 8 * 8 * 2),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", 16 * 8 * 32 // 2),
        ("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32", 16 * 8 * 32 // 2),
        (SCALED, 16 * 8 * 64 // 4),
        ("wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e5m2", 16 * 64 * 32 // 2),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", 16 * 16 * 16),
    ],
)
def test_multiply_adds_by_element_width(opcode: str, products: int) -> None:
    """8 bits take half as long as 16, 4 bits a quarter (NVIDIA's data sheets of H100 and B200). A
    warp of a warp group has a quarter of its product's rows, on a tensor core of its own."""
    assert products_of(Instruction(decode(opcode), (), None)) == products


@pytest.mark.parametrize(
    ("opcode", "wanted"),
    [
        ("tcgen05.mma.cta_group::1.kind::f16", "tensor"),
        ("tcgen05.ld.sync.aligned.32x32b.x1.b32", "tensor_memory"),
        ("tcgen05.cp.cta_group::1.128x256b", "tensor_memory"),
        ("tcgen05.wait::ld.sync.aligned", "control"),
        ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8", "memory"),
    ],
)
def test_classes_of_tensor_memory_instructions(opcode: str, wanted: str) -> None:
    assert class_of(Instruction(decode(opcode), (), None)) == wanted


KERNEL = """
.version 9.0
.target sm_120a
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .f32 %f<5>; .reg .b32 %r<3>; .reg .b64 %at; .reg .pred %p;
    ld.param.u64 %at, [out]; mov.b32 %r1, 0; mov.f32 %f1, 0f00000000; mov.u32 %r2, 0;
LOOP:
    OPCODE {%f1, %f1, %f1, %f1}, {%r1, %r1, %r1, %r1}, {%r1, %r1}, {%f1, %f1, %f1, %f1}SCALES;
    add.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, 64; @%p bra LOOP;
    st.global.f32 [%at], %f1; ret;
}
"""


def test_narrow_products_are_timed() -> None:
    gpu = wl.Device("rtx-5090", record=True)
    narrow = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
    scales = ", %r1, {0, 0}, %r1, {0, 0}"
    for opcode, tail in ((narrow, ""), (SCALED, scales)):
        text = KERNEL.replace("OPCODE", opcode).replace("SCALES", tail)
        run = gpu.compile(text, "ptx")["k"][1, 32](np.zeros(4, np.float32))
        assert run.time().cycles > 64


GROUP_KERNEL = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .f32 %f<33>; .reg .b32 %r<4>; .reg .b64 %at; .reg .b64 %d<3>; .reg .pred %p;
    .shared .align 128 .b8 room[8192];
    ld.param.u64 %at, [out]; mov.u32 %r1, room; mov.u32 %r2, 0;
    mov.b64 %d1, DESCRIPTOR; mov.b64 %d2, DESCRIPTOR;
LOOP:
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {REGISTERS}, %d1, %d2, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    add.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, TURNS; @%p bra LOOP;
    st.global.f32 [%at], %f1; ret;
}
"""


@pytest.mark.parametrize("code", ["ptx", pytest.param("machine", marks=NEEDS_PTXAS)])
def test_warp_group_uses_all_tensor_cores(code: str) -> None:
    """64x64x16 multiply-adds at 2,048 a cycle of an H100's SM are 32 cycles, in each of which an SM
    with two warp groups has work: 64 products take 64 x 32 cycles of its tensor cores."""
    registers = ", ".join(f"%f{n}" for n in range(1, 33))
    # Stretches of 128 and 256 bytes, no swizzle (PTX ISA, "Matrix Descriptor Format").
    descriptor = (128 >> 4) << 16 | (256 >> 4) << 32
    text = GROUP_KERNEL.replace("REGISTERS", registers).replace("DESCRIPTOR", str(descriptor))
    # Sums of undefined registers would be undefined, so that ptxas leaves products out.
    values = "".join(f"    mov.b32 %f{n}, %r3;\n" for n in range(1, 33))
    values = "    mov.u32 %r3, %tid.x;\n" + values
    text = text.replace("LOOP:", values + "LOOP:", 1)
    gpu = wl.Device("h100", record=True)
    took: list[float] = []
    for turns in (32, 64):
        kernel = gpu.compile(text.replace("TURNS", str(turns)), "ptx")["k"]
        timing = kernel[1, 128](gpu.zeros(1, np.float32)).time(code=code)
        assert timing.basis.code == ("ptx" if code == "ptx" else "machine code")
        took.append(timing.unit_use["tensor"] * timing.sample_cycles)
    assert took[1] - took[0] == pytest.approx(32 * 32, rel=0.01)


def test_grouped_products_wait_for_tensor_core_only() -> None:
    """16 products of a group, on the same registers: the tensor core is the bound, at 32 cycles
    each; awaited one by one, each adds its latency."""
    registers = ", ".join(f"%f{n}" for n in range(1, 33))
    descriptor = (128 >> 4) << 16 | (256 >> 4) << 32
    text = GROUP_KERNEL.replace("REGISTERS", registers).replace("DESCRIPTOR", str(descriptor))
    product = next(line for line in text.splitlines() if "mma_async" in line)
    gpu = wl.Device("h100", record=True)

    def cycles(lines: str) -> int:
        kernel = gpu.compile(text.replace(product, lines).replace("TURNS", "1"), "ptx")["k"]
        return kernel[1, 128](gpu.zeros(1, np.float32)).time(code="ptx").cycles

    waited_for = product + "\n wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n"
    assert cycles(product * 17) - cycles(product) == pytest.approx(16 * 32, abs=8)
    latency = find_timing(gpu.spec).latency_tensor
    waited = cycles(waited_for * 17) - cycles(waited_for)
    assert waited == pytest.approx(16 * (32 + latency), rel=0.15)


TENSOR_MEMORY = """
.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %v<33>, %base, %slot, %i, %t; .reg .b64 %at, %m; .reg .pred %p, %one;
    .shared .align 1024 .b8 room[8192]; .shared .align 4 .b32 slot;
    ld.param.u64 %at, [out]; mov.u32 %slot, room; mov.u32 %slot, slot;
    mov.u32 %i, 0; mov.b64 %m, MATRIX; mov.u32 %t, %tid.x; setp.eq.u32 %one, %t, 0;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%slot], 64;
    bar.sync 0; ld.shared.b32 %base, [%slot];
LOOP:
    ACCESS
    add.u32 %i, %i, 1; setp.lt.u32 %p, %i, TURNS; @%p bra LOOP;
    tcgen05.wait::ld.sync.aligned; tcgen05.wait::st.sync.aligned;
    st.global.b32 [%at], %v1;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %base, 64;
    ret;
}
"""
REGISTERS = ", ".join(f"%v{n}" for n in range(1, 33))
LEADING = 128 >> 4 << 16 | 256 >> 4 << 32 | 1 << 46
"""A matrix without a swizzle (PTX ISA, "Shared Memory Descriptor")."""


def busy(access: str, turns: int) -> float:
    """Returns the cycles of a sub-partition in which it moves words of tensor memory, for one
    warp."""
    gpu = wl.Device("b200", record=True)
    text = TENSOR_MEMORY.replace("MATRIX", str(LEADING)).replace("TURNS", str(turns))
    run = gpu.compile(text.replace("ACCESS", access), "ptx")["k"][1, 32](gpu.zeros(1, np.int32))
    timing = run.time(code="ptx")
    return timing.unit_use["tensor_memory"] * timing.sample_cycles * timing.spec.schedulers


@pytest.mark.parametrize(
    ("access", "cycles"),
    [
        (f"tcgen05.ld.sync.aligned.32x32b.x32.b32 {{{REGISTERS}}}, [%base];", 32),
        (f"tcgen05.st.sync.aligned.32x32b.x32.b32 [%base], {{{REGISTERS}}};", 32),
        ("@%one tcgen05.cp.cta_group::1.128x256b [%base], %m;", 32),
    ],
)
def test_tensor_memory_access_takes_cycle_per_word(access: str, cycles: int) -> None:
    """32 registers of 32 lanes, at 32 words a cycle; a copy of 128 x 256 bits reads 1,024 words of
    shared memory, 32 a cycle. 16 iterations more are 16 times as many."""
    assert busy(access, 24) - busy(access, 8) == pytest.approx(16 * cycles, rel=0.01)
