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
    assert "exclusive-or the number of the 16 bytes" in found.text
    run = gpu.compile(ROWS.replace("PITCH", "144"), "ptx")["k"][1, 32]()
    assert run.counters.shared_store_bank_conflicts == 0
    assert all(each.rule != "bank conflicts" for each in run.summary.advice)
