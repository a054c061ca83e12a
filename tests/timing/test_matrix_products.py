"""What matrix instructions cost a tensor core: as many multiply-adds of 16 bits as take as long."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl
from warploom.isa.spec import decode
from warploom.ptx.ir import Instruction
from warploom.timing.classes import class_of
from warploom.timing.work import products_of

SCALED = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"


@pytest.mark.parametrize(
    ("opcode", "products"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 16 * 8 * 16),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 16 * 8 * 8 * 2),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", 16 * 8 * 32 // 2),
        ("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32", 16 * 8 * 32 // 2),
        (SCALED, 16 * 8 * 64 // 4),
        ("wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e5m2", 64 * 64 * 32 // 2),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", 16 * 16 * 16),
    ],
)
def test_products_by_their_width(opcode: str, products: int) -> None:
    """8 bits take half as long as 16, 4 bits a quarter (NVIDIA's data sheets of H100 and B200)."""
    assert products_of(Instruction(decode(opcode), (), None)) == products


@pytest.mark.parametrize(
    ("opcode", "wanted"),
    [
        ("tcgen05.mma.cta_group::1.kind::f16", "tensor"),
        ("tcgen05.ld.sync.aligned.32x32b.x1.b32", "control"),
        ("tcgen05.wait::ld.sync.aligned", "control"),
        ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8", "memory"),
    ],
)
def test_what_works_for_tensor_memory(opcode: str, wanted: str) -> None:
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


def test_launches_with_narrow_products_have_a_time() -> None:
    gpu = wl.Device("rtx-5090", record=True)
    narrow = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
    scales = ", %r1, {0, 0}, %r1, {0, 0}"
    for opcode, tail in ((narrow, ""), (SCALED, scales)):
        text = KERNEL.replace("OPCODE", opcode).replace("SCALES", tail)
        run = gpu.compile(text, "ptx")["k"][1, 32](np.zeros(4, np.float32))
        assert run.time().cycles > 64
