"""The tool "init" alone, which looks at ranges of shared memory instead of taking every access,
against a set of written bytes; and the tool "sync" alone, which takes barriers only where threads
may skip one.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import warploom as wl
from warploom.analysis.block_uniformity import has_uniform_barriers
from warploom.isa.instruction import Space
from warploom.machine.reference.state import Warp, WarpAccess

SHAPES = ((96, 1), (16, 6), (8, 12), (24, 4), (32, 3))
THREADS, BLOCKS, BYTES = 96, 2, 1 << 13
HEAD = f""".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 result) {{
  .shared .align 16 .b8 tile[{BYTES}];
  .reg .u64 %base, %at, %result; .reg .u32 %x, %y, %tid, %word, %v, %sum;
  .reg .u16 %h; .reg .pred %p;
  ld.param.u64 %result, [result]; cvta.to.global.u64 %result, %result;
  mov.u64 %base, tile; mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; mov.u32 %tid, %ntid.x;
  mad.lo.u32 %tid, %y, %tid, %x; mov.u32 %sum, 0;
"""
TAIL = "st.global.u32 [%result], %sum;\nret; }"
WHO = (
    *("setp.ge.u32 %p, %tid, 0;",) * 4,
    "setp.lt.u32 %p, %tid, 32;",
    "setp.lt.u32 %p, %tid, 40;",
    "setp.gt.u32 %p, %tid, 70;",
    "and.b32 %word, %tid, 1; setp.eq.u32 %p, %word, 0;",
)
ACCESSES = (
    *("st.shared.u32 [%at], %tid;",) * 3,
    "cvt.u16.u32 %h, %tid; @%p st.shared.u8 [%at], %h;",
    "cvt.u16.u32 %h, %tid; @%p st.shared.u16 [%at], %h;",
    "st.shared.v2.u32 [%at], {%tid, %tid};",
    "st.shared.v4.u32 [%at], {%tid, %tid, %tid, %tid};",
    "ld.shared.u32 %v, [%at]; @%p add.u32 %sum, %sum, %v;",
    "ld.shared.u32 %v, [%at]; @%p add.u32 %sum, %sum, %v;",
    "red.shared.add.u32 [%at], 1;",
    "atom.shared.add.u32 %v, [%at], 1; @%p add.u32 %sum, %sum, %v;",
)


SIZES = {".u8": 1, ".u16 [": 2, ".v2.": 8, ".v4.": 16}
"""Bytes of an access, by what stands in its text; others have 4."""


def program(seed: int) -> tuple[str, tuple[int, int]]:
    """Return the PTX of a random program: rows, columns, scattered and single elements of shared
    memory that are stored, loaded and added to, by some threads or all; and the shape of its
    blocks."""
    draw = Random(seed)
    lines, shape = [HEAD], draw.choice(SHAPES)
    for _ in range(draw.randint(6, 20)):
        if draw.random() < 0.2:
            lines.append("bar.sync 0;")
            continue
        access = draw.choice(ACCESSES)
        size = next((n for sign, n in SIZES.items() if sign in access), 4)
        stride, shift = (
            size * draw.choice((0, 1, 1, 1, 3, -1)),
            size * draw.choice((0, 0, 1, 33, 128)),
        )
        lines.append(draw.choice(WHO))
        address = f"mul.lo.s32 %word, %tid, {stride};"
        shift += max(0, -stride * (THREADS - 1))
        if draw.random() < 0.2:
            address = f"mul.lo.u32 %word, %tid, 28; and.b32 %word, %word, {256 - size};"
        elif draw.random() < 0.4:
            pitch = size * (shape[0] + draw.choice((0, 1, 4)))
            address = f"mul.lo.u32 %word, %y, {pitch}; mad.lo.u32 %word, %x, {size}, %word;"
        lines.append(f"{address} add.u32 %word, %word, {shift};")
        lines.append("cvt.u64.u32 %at, %word; add.u64 %at, %at, %base;")
        lines.append(f"@%p {access}")
    return "\n".join([*lines, TAIL]), shape


class WrittenBytes:
    """A listener that keeps which bytes each block has written; `unwritten` are the instructions
    that read others."""

    def __init__(self) -> None:
        self.bytes: set[tuple[int, int]] = set()
        self.unwritten: set[int] = set()

    def issued(self, warp: Warp, instruction: int, mask: int) -> None:
        """Hear of an instruction: nothing to keep."""

    def accessed(self, warp: Warp, access: WarpAccess) -> None:
        if access.space is not Space.SHARED:
            return
        for address in access.addresses:
            accessed = {(warp.block.number, address + byte) for byte in range(access.size)}
            if access.op != "store" and not accessed <= self.bytes:
                self.unwritten.add(access.instruction)
            if access.op != "load":
                self.bytes |= accessed


def check(seed: int, engine: str) -> None:
    (text, shape), result = program(seed), np.zeros(1, np.int32)
    kernel = wl.Device(engine="reference").compile(text, "ptx")["k"]
    listener = WrittenBytes()
    kernel[BLOCKS, shape].watch(listener, result)
    lines = {kernel.program.instructions[index].span.line for index in listener.unwritten}
    run = wl.Device(engine=engine).compile(text, "ptx")["k"][BLOCKS, shape](
        result, sanitize=("init",)
    )
    found = {int(one.line.rpartition(":")[2]) for one in run.findings}
    assert found == lines, f"seed {seed}\n{text}"


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(6, 306, 6))]
)
def test_reads_of_unwritten_bytes_are_found(first: int) -> None:
    for seed in range(first, first + 6):
        check(seed, "compiled")


def test_reads_of_unwritten_bytes_are_found_by_the_reference_machine() -> None:
    for seed in range(6):
        check(seed, "reference")


TOGETHER = """
for (int k = 0; k < n; k++) {
  s[i] += k;
  __syncthreads();
  s[i ^ 1] -= k;
  __syncthreads();
}"""
BY_DATA = """
if (out[0])
  __syncthreads();
else
  __syncthreads();
s[i] += 1;"""
BY_THREAD = BY_DATA.replace("out[0]", "i < 32")


@pytest.mark.parametrize(
    ("body", "together"), [(TOGETHER, True), (BY_DATA, False), (BY_THREAD, False)]
)
def test_barriers_that_all_threads_come_to_in_one_order(body: str, *, together: bool) -> None:
    text = f"""__global__ void k(int *out, int n) {{
      __shared__ int s[64]; int i = threadIdx.x; s[i] = 0;
      {body}
      out[i] = s[i]; }}"""
    kernel = wl.Device().compile(text)["k"]
    assert has_uniform_barriers(kernel.program) == together
    run = kernel[1, 64](np.zeros(64, np.int32), np.int32(3), sanitize=("sync",))
    assert [one.kind for one in run.findings] == ["divergent barrier"] * (body is BY_THREAD)
