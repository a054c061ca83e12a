"""Races with strong accesses of which the detector retains only some: relaxed accesses that are
not morally strong with the access that they race with (PTX ISA, "Data races")."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import warploom as wl
from warploom.detector import accesses

HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 buffer) {
  .reg .u64 %x; .reg .u32 %tid, %r; .reg .pred %t0, %t1, %t2, %t32;
  ld.param.u64 %x, [buffer]; cvta.to.global.u64 %x, %x; mov.u32 %tid, %tid.x;
  setp.eq.u32 %t0, %tid, 0; setp.eq.u32 %t1, %tid, 1; setp.eq.u32 %t2, %tid, 2;
  setp.eq.u32 %t32, %tid, 32;
"""
RACES = {
    "store_behind_a_load": """@%t0 st.relaxed.gpu.global.u32 [%x], 1;
        @%t0 ld.relaxed.gpu.global.u32 %r, [%x];
        @%t32 st.relaxed.gpu.global.u32 [%x], 2;
        @%t32 ld.global.u32 %r, [%x];""",
    "store_of_the_same_warp": """@%t0 st.relaxed.gpu.global.u32 [%x], 1;
        @%t1 st.relaxed.gpu.global.u32 [%x], 2;
        @%t0 ld.global.u32 %r, [%x];""",
    "store_of_another_byte": """@%t0 st.relaxed.cta.global.u8 [%x], 1;
        @%t1 st.relaxed.cta.global.u8 [%x+1], 2;
        @%t0 ld.global.u8 %r, [%x+1];""",
    "weak_read_after_a_narrow_one": """@%t0 red.relaxed.gpu.global.add.u32 [%x+64], 1;
        @%t0 ld.relaxed.cta.global.u32 %r, [%x];
        @%t1 ld.global.u32 %r, [%x];
        @%t2 ld.global.u32 %r, [%x];
        @%t1 st.relaxed.cta.global.u32 [%x], 1;""",
}


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("name", RACES)
def test_race_with_one_of_several_accesses_is_found(name: str, engine: str) -> None:
    """The last access and one strong access, or one weak read, before it are by different threads
    that nothing orders, one of the two writes, and not both are strong."""
    gpu = wl.Device(cc="9.0", engine=engine)
    kernel = gpu.compile(HEAD + RACES[name] + "\nret; }", "ptx")["k"]
    found = kernel[1, 64](gpu.zeros(64, np.uint32), sanitize=("race",)).findings
    assert [one.kind for one in found] == ["race"]


def test_compare_and_swap_finds_what_the_last_lane_before_it_stored() -> None:
    """Lanes 31, 30 and 29 change 0 to 1, 1 to 2 and 2 to 3, in falling order."""
    falling, operands = 31 + 32 * 31, np.zeros(64, np.uint32)
    operands[[31, 30, 29]], operands[[63, 62, 61]] = (0, 1, 2), (1, 2, 3)
    event: Any = SimpleNamespace(size=4)
    addresses, swapped = np.zeros(32, np.uint64), 1 << 31 | 1 << 30
    data, memory = operands.view(np.uint8), np.zeros(4, np.uint8)
    assert accesses.compare_succeeds(event, memory, 0, addresses, data, 29, swapped, falling)
