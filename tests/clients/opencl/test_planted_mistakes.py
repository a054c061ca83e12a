"""`warploom check` finds mistakes in OpenCL programs at their lines, in words of OpenCL."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from warploom.frontends.opencl_compilers import opencl_is_missing

PROGRAMS = Path(__file__).parent / "programs"

pytestmark = pytest.mark.skipif(bool(opencl_is_missing()), reason=opencl_is_missing())

MISTAKES = {
    "group_race": ["Race", "program_1.cl:2 ", "sums (argument 0 of group_race)", "atomic_add()"],
    "local_race": ["Race", "program_1.cl:6 ", "program_1.cl:7 ", "the work-group's local memory"],
    "variable_race": ["Race", "program_1.cl:12 ", "program_1.cl:13 ", "`part`, byte"],
    "skipped_barrier": ["Skipped barrier: work-items exited", "program_1.cl:17\n", "(10, 0, 0)"],
    "unwritten": ["Uninitialized __global memory read", "never (argument 0 of unwritten)"],
    "beyond": ["Invalid __global write", "0 bytes after", "to (argument 0 of beyond) (512 bytes"],
    "image_race": ["Race", "program_1.cl:27 ", "image (argument 0 of image_race), byte 0"],
    "image_beyond": ["Invalid image access: x = 8 texels, y = 0", "program_1.cl:30 "],
    "below": ["Invalid __global write", "program_1.cl:33 ", "4 bytes before", "(0, 0, 0)"],
    "local_beyond": ["Invalid __local write", "program_1.cl:37 ", "work-item (63, 0, 0)", "0x100"],
    "constant_beyond": ["Invalid __global read", "program_1.cl:42 ", "0 bytes after", "from (arg"],
    "misaligned": ["Misaligned __global write", "program_1.cl:45 ", "multiple of 4"],
    "null": ["Invalid __global write", "0x0 is not in any allocation.", "The pointer is null"],
    "into_input": ["Forbidden __global write", "program_1.cl:51 ", "CL_MEM_READ_ONLY"],
    "loop_barrier": ["Skipped barrier", "program_1.cl:55\n"],
    "unwritten_local": ["Uninitialized __local memory read", "program_1.cl:63 ", "(32, 0, 0)"],
    "copy_without_wait": ["Race", "program_1.cl:77 ", "program_1.cl:78 ", "`part`"],
    "counter_read": ["Race", "program_1.cl:83 ", "Atomic access", "counter (argument 0 of"],
}
"""Parts of the report for each kernel of `planted.py`."""

CUDAS = re.compile(
    r"(?<!-)\b(threads?|blocks?|warps?|grid|__shared__|__syncthreads|atomicAdd)\b", re.IGNORECASE
)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake: str) -> None:
    pytest.importorskip("pyopencl")
    program = [sys.executable, "-W", "ignore", str(PROGRAMS / "planted.py"), mistake]
    ended = subprocess.run(
        [sys.executable, "-m", "warploom.cli", "check", *program],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    found = ended.stdout + ended.stderr
    assert all(part in found for part in MISTAKES[mistake]), found
    # Beside the misaligned writes, the last is out of bounds.
    errors = "2 errors" if mistake == "misaligned" else "1 error,"
    assert f"ERROR SUMMARY: {errors}" in found, found
    assert CUDAS.search(found) is None, found
