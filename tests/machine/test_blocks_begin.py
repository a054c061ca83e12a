"""Checks the initial state of a block in a slot that another one has used: registers are zero."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.launch import Launch, Schedule
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.reference.machine import ReferenceEngine
from warploom.program.build import build
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


BESIDE_EACH_OTHER = """
.version 8.6
.target sm_80
.address_size 64
.visible .entry k(.param .u64 words)
{
.reg .b32 %unwritten, %block, %found, %arrived; .reg .b64 %at, %base; .reg .pred %wait;
ld.param.u64 %base, [words];
mov.u32 %block, %ctaid.x;
mad.wide.u32 %at, %block, 4, %base;
atom.global.add.u32 %found, [%base+64], 1;
AGAIN:
ld.volatile.global.u32 %arrived, [%base+64];
setp.lt.u32 %wait, %arrived, 3;
@%wait bra AGAIN;
bar.sync 0;
red.global.add.u32 [%at], %unwritten;
mov.u32 %unwritten, 7;
bar.sync 0;
red.global.add.u32 [%at+32], %unwritten;
ret;
}
"""


def test_reused_buffers_are_cleared_in_every_slot() -> None:
    # Each block awaits the others: all have to be resident at once.
    engine, memory = CompiledEngine(), DeviceMemory(1 << 30)
    program = build(parse(BESIDE_EACH_OTHER), "k")
    counted: list[object] = []
    for _ in range(2):
        words = memory.allocate(128)
        given = struct.pack("<Q", words.address)
        launch = Launch((BLOCKS, 1, 1), (1, 1, 1), given)
        tally = engine.launch(program, launch, memory)
        found = np.frombuffer(memory.read(words.address, 64), np.uint32)
        assert found.tolist() == [0] * 8 + [7] * BLOCKS + [0] * 5
        counted.append((tally.warps.tolist(), tally.records.tolist()))
    assert counted[0] == counted[1]
