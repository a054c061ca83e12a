"""What a block finds when it begins, where another has run in its place: registers hold zeros."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from warploom.analysis.build import build
from warploom.machine.compiled import CompiledEngine
from warploom.machine.launch import Launch, Schedule
from warploom.machine.memory import DeviceMemory
from warploom.machine.reference.machine import ReferenceEngine
from warploom.ptx.parser import parse

BLOCKS, THREADS = 3, 40
KERNEL = """
.version 8.6
.target sm_80
.address_size 64
.visible .entry k(.param .u64 words)
{
.reg .b32 %unwritten, %thread; .reg .b64 %at, %base;
ld.param.u64 %base, [words];
mov.u32 %thread, %tid.x;
mad.wide.u32 %at, %thread, 4, %base;
bar.sync 0;
red.global.add.u32 [%at], %unwritten;
mov.u32 %unwritten, 7;
bar.sync 0;
red.global.add.u32 [%at+256], %unwritten;
ret;
}
"""


@pytest.mark.parametrize("engine", [ReferenceEngine, CompiledEngine])
def test_registers_are_zero_though_a_block_has_run_there(
    engine: type[ReferenceEngine | CompiledEngine],
) -> None:
    memory = DeviceMemory(1 << 30)
    words = memory.allocate(512)
    given = struct.pack("<Q", words.address)
    alone = Schedule(resident_blocks=1)
    launch = Launch((BLOCKS, 1, 1), (THREADS, 1, 1), given, schedule=alone)
    engine().launch(build(parse(KERNEL), "k"), launch, memory)
    found = np.frombuffer(memory.read(words.address, 512), np.uint32)
    assert not found[:THREADS].any()
    assert (found[64 : 64 + THREADS] == 7 * BLOCKS).all()
