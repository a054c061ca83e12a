"""Advice about matrices in shared memory: rows at which lanes point that meet in banks."""

from __future__ import annotations

import warploom as wl

ROWS = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{
    .reg .b32 %at, %r<5>; .shared .align 128 .b8 rows[4608];
    mov.u32 %at, %tid.x; mov.u32 %r1, rows;
    mad.lo.u32 %at, %at, PITCH, %r1;
    stmatrix.sync.aligned.m8n8.x4.shared.b16 [%at], {%r1, %r1, %r1, %r1};
    ret;
}
"""


def test_rows_that_meet_in_banks() -> None:
    """32 rows of 128 bytes: all of them begin in bank 0, so that the eight rows of a matrix need
    eight wavefronts; 16 bytes more a row, and they need one."""
    gpu = wl.Device("h100")
    run = gpu.compile(ROWS.replace("PITCH", "128"), "ptx")["k"][1, 32]()
    assert run.counters.shared_store_bank_conflicts == 4 * 7
    (found,) = [each for each in run.summary.advice if each.rule == "bank conflicts"]
    assert "XOR the index of the 16-byte chunk" in found.text
    run = gpu.compile(ROWS.replace("PITCH", "144"), "ptx")["k"][1, 32]()
    assert run.counters.shared_store_bank_conflicts == 0
    assert all(each.rule != "bank conflicts" for each in run.summary.advice)


OPERAND = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k()
{
    .reg .b32 %t, %row, %part, %at, %r<2>; .reg .b64 %m; .reg .f32 %d<4>;
    .shared .align 1024 .b8 a[8192];
    mov.u32 %t, %tid.x; mov.u32 %r1, a;
    shr.u32 %row, %t, 3; and.b32 %part, %t, 7;
    LAYOUT
    add.u32 %at, %at, %r1;
    st.shared.v4.b32 [%at], {%t, %t, %t, %t};
    fence.proxy.async; bar.sync 0;
    shr.u32 %r1, %r1, 4; cvt.u64.u32 %m, %r1; or.b64 %m, %m, DESCRIPTOR;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %m, %m, 0, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
    ret;
}
"""
PLAIN = "shl.b32 %at, %part, 10; shl.b32 %row, %row, 4; or.b32 %at, %at, %row;"
SWIZZLED = """and.b32 %at, %row, 7; xor.b32 %at, %at, %part; shl.b32 %at, %at, 4;
    shl.b32 %row, %row, 7; or.b32 %at, %at, %row;"""


def operand(layout: str, descriptor: int) -> wl.Run:
    gpu = wl.Device("h100")
    text = OPERAND.replace("LAYOUT", layout).replace("DESCRIPTOR", str(descriptor))
    return gpu.compile(text, "ptx")["k"][1, 128]()


def test_matrices_of_warp_groups_without_a_swizzle() -> None:
    """Eight threads write a row of 128 bytes, 16 bytes each, and are served together. Without a
    swizzle the parts of a row have a stride of 1,024 bytes, in the same banks: a warp, which writes
    four rows, needs 32 wavefronts where 4 would do. With the swizzle a row is in all banks."""
    plain = operand(PLAIN, 1024 >> 4 << 16 | 128 >> 4 << 32)
    assert plain.counters.shared_store_bank_conflicts == 4 * (32 - 4)
    (found,) = [each for each in plain.summary.advice if each.rule == "bank conflicts"]
    assert "128-byte swizzle" in found.text
    assert "matrix descriptor" in found.text
    swizzled = operand(SWIZZLED, 1024 >> 4 << 32 | 1 << 62)
    assert swizzled.counters.shared_store_bank_conflicts == 0
    assert all(each.rule != "bank conflicts" for each in swizzled.summary.advice)
