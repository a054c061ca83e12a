"""Checks that pauses of a launch change neither results nor counts."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shaped_programs import static_schedule_kernels, warp_loop_kernels
from shaped_runs import outcome_of
from test_machines_agree import agree_on_kernels

from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.compiled.pace import Pace
from warploom.machine.compiled.work import WorkerLaunch
from warploom.machine.launch import Launch, Schedule
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.reference.machine import ReferenceEngine
from warploom.program.build import build
from warploom.ptx.parser import parse

BLOCKS = 5


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns the status of each call of machine code, which pauses as often as it can."""
    answers: list[int] = []
    run_slice = WorkerLaunch.run_slice

    def noted(work: WorkerLaunch) -> int:
        work.launch_template.pace.instructions = 1
        answers.append(run_slice(work))
        return answers[-1]

    monkeypatch.setattr(WorkerLaunch, "run_slice", noted)
    return answers


PLAIN = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 words)
{
.reg .b32 %r<4>; .reg .b64 %d<3>;
ld.param.u64 %d0, [words];
mov.u32 %r0, %ctaid.x;
mov.u32 %r1, %ntid.x;
mov.u32 %r2, %tid.x;
mad.lo.u32 %r3, %r0, %r1, %r2;
mad.wide.u32 %d1, %r3, 4, %d0;
@GUARD
st.global.u32 [%d1], %r3;
ret;
}
"""
LOOPS = PLAIN.replace("@GUARD", "mov.u32 %r1, 3; L: sub.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0;"
                      " @%p bra L;").replace(".reg .b64", ".reg .pred %p; .reg .b64")  # fmt: skip
MEETS = PLAIN.replace("@GUARD", "bar.sync 0;")


@pytest.mark.parametrize("text", [PLAIN.replace("@GUARD", ""), LOOPS, MEETS])
@pytest.mark.parametrize("threads", [32, 96, 100])
def test_every_block_is_run_once(text: str, threads: int, pauses: list[int]) -> None:
    assert_every_block_is_run_once(text, threads)
    assert len(pauses) >= BLOCKS


def assert_every_block_is_run_once(text: str, threads: int) -> None:
    """Launches a kernel that writes each thread's number, and checks these and its counts."""
    memory = DeviceMemory(1 << 30)
    words = memory.allocate(4 * BLOCKS * threads)
    given = struct.pack("<Q", words.address)
    launch = Launch((BLOCKS, 1, 1), (threads, 1, 1), given)
    tally = CompiledEngine().launch(build(parse(text), "k"), launch, memory)
    found = np.frombuffer(memory.read(words.address, 4 * BLOCKS * threads), np.uint32)
    assert (found == np.arange(BLOCKS * threads)).all()
    assert tally.warps[0] == BLOCKS * -(-threads // 32)


@pytest.mark.usefixtures("pauses")
def test_pauses_change_nothing(random_examples: int) -> None:
    """Checks every policy, with several resident blocks."""
    agree_on_kernels(random_examples // 4, [(3, 40)])


@pytest.mark.usefixtures("pauses")
def test_pauses_change_nothing_in_warp_loops(random_examples: int) -> None:
    """Checks barrier regions that run as loops over warps, and whole blocks with a static
    schedule."""

    @settings(
        max_examples=random_examples // 4,
    )
    @given(
        text=st.one_of(warp_loop_kernels(), static_schedule_kernels()),
        threads=st.sampled_from([100, 128]),
    )
    def agree(text: str, threads: int) -> None:
        alone = Schedule(resident_blocks=1)
        expected = outcome_of(text, (threads, 1), alone, ReferenceEngine(), 3)
        assert outcome_of(text, (threads, 1), alone, CompiledEngine(), 3) == expected

    agree()


def test_the_pace_adapts() -> None:
    """Expects as many instructions as run for 0.03 to 0.1 s, here at 10 ns each, and then at 1
    us."""
    pace = Pace()
    for nanoseconds in (10, 1000):
        for _ in range(20):
            pace.adjust(pace.instructions * nanoseconds * 1e-9)
        assert 0.03 <= pace.instructions * nanoseconds * 1e-9 <= 0.1
