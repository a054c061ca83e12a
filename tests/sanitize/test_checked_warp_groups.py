"""Products of warp groups under the race detector: they read memory until they are awaited."""

from __future__ import annotations

import numpy as np
import pytest

import warploom as wl

KERNEL = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<8>; .reg .b64 %d<4>; .reg .f32 %f<4>; .reg .pred %p<2>; .reg .b16 %h<2>;
  .shared .align 128 .b8 tile[256];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, tile;
  and.b32 %r2, %r0, 127;
  shl.b32 %r2, %r2, 1;
  add.u32 %r3, %r1, %r2;
  setp.ge.u32 %p0, %r0, 128;
  mov.b16 %h0, 0x3c00;
  @!%p0 st.shared.b16 [%r3], %h0;  // first write
  fence.proxy.async;
  MEET
  @%p0 bra producer;
  mov.b32 %r4, 0x3c003c00;
  shr.u32 %r5, %r1, 4;
  cvt.u64.u32 %d0, %r5;
  or.b64 %d0, %d0, 0x0000000800080000;
  mov.f32 %f0, 0f00000000;
  mov.f32 %f1, %f0;
  mov.f32 %f2, %f0;
  mov.f32 %f3, %f0;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, {%r4, %r4, %r4, %r4}, %d0, 1, 1, 1, 0;
  wgmma.commit_group.sync.aligned;
  EARLY
  wgmma.wait_group.sync.aligned 0;
  LATE
  ld.param.u64 %d1, [out];
  mul.wide.u32 %d2, %r0, 4;
  add.u64 %d1, %d1, %d2;
  st.global.f32 [%d1], %f0;
  ret;
producer:
  WAIT
  mov.b16 %h1, 0;
  st.shared.b16 [%r3], %h1;  // second write
  ret;
}
"""  # noqa: E501

RELEASE, WAIT, ALL = "bar.arrive 1, 160;", "bar.sync 1, 160;", "bar.sync 0;"
WRITE = f"{ALL} mov.b16 %h1, 0; st.shared.b16 [%r3], %h1;  // second write"
TWINS = {
    "right": {"MEET": ALL, "EARLY": "", "LATE": RELEASE, "WAIT": WAIT},
    "released too early": {"MEET": ALL, "EARLY": RELEASE, "LATE": "", "WAIT": WAIT},
    "read too early": {"MEET": "", "EARLY": "", "LATE": RELEASE, "WAIT": WAIT},
    "right, of one group": {"MEET": ALL, "EARLY": "", "LATE": WRITE, "WAIT": WAIT},
    "written too early, of one group": {"MEET": ALL, "EARLY": WRITE, "LATE": "", "WAIT": WAIT},
}
PAIRS = {
    "right": set[frozenset[str]](),
    "released too early": {frozenset(("wgmma.mma_async", "second write"))},
    "read too early": {frozenset(("wgmma.mma_async", "first write"))},
    "right, of one group": set[frozenset[str]](),
    "written too early, of one group": {frozenset(("wgmma.mma_async", "second write"))},
}
"""Of each twin, the lines of its races under two orders: in the second, products are late."""


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("name", TWINS)
def test_a_product_reads_from_its_issue_to_its_wait(name: str, engine: str) -> None:
    text = KERNEL
    for word, line in TWINS[name].items():
        text = text.replace(word, line)
    gpu = wl.Device("h100", engine=engine)
    kernel = gpu.compile(text, "ptx")["k"]
    found = set[frozenset[str]]()
    for schedule in ("converge", "adversarial"):
        out = gpu.to_device(np.zeros(160, np.float32))
        threads = 128 if name.endswith("of one group") else 160
        run = kernel[1, threads](out, sanitize=("race",), schedule=schedule)
        for one in run.findings:
            assert one.kind == "race"
            found.add(frozenset(_part(text, line) for line in (one.line, one.other_line)))
    assert found == PAIRS[name]


def _part(text: str, place: str) -> str:
    """Return which of the lines that races may have a place is."""
    line = text.splitlines()[int(place.rpartition(":")[2]) - 1]
    return next(p for p in ("wgmma.mma_async", "first write", "second write") if p in line)
