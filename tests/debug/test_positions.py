"""Compiled code, stopped anywhere, stands where the reference machine does after as many warp
instructions: the same memory, registers and lanes, on random kernels and orders."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import THREAD_BYTES, kernels
from random_schedules import schedules
from targets import target_of

from warploom.debug.checkpoints import Checkpoint
from warploom.debug.engines import BetweenBlocks, TurnEngine
from warploom.debug.stepper import Events, Stepper
from warploom.debug.target import Target
from warploom.debug.transfer import grid_at
from warploom.machine.launch import Schedule
from warploom.machine.memory.snapshots import MemorySnapshots

LIMIT = 3000
"""Warp instructions of a kernel that are compared."""


def state_of(stepper: Stepper) -> dict[Any, Any]:
    """Everything that a thread could see where a launch stands, and who goes next."""
    found: dict[Any, Any] = {"position": stepper.position, "ended": stepper.ended}
    if not stepper.has_warp:
        return found
    found["next"] = (stepper.warp.block.number, stepper.warp.number, stepper.index)
    slots = stepper.grid.run.slots
    for slot, warps in stepper.grid.resident.items():
        for warp in warps if slots[slot] >= 0 else ():
            live = [lane for lane in range(32) if warp.splits.live >> lane & 1]
            name = (warp.block.number, warp.number)
            found["lanes", name] = warp.splits.live
            found["shared", name] = warp.block.shared.tobytes()
            found["local", name] = warp.local[live].tobytes()
            for register, values in warp.registers.items():
                found[register, name] = [int(values[lane]) for lane in live]
    return found


def begin(target: Target, engine: TurnEngine, images: MemorySnapshots) -> Checkpoint:
    """The begin of a launch."""
    counts = np.zeros(1, np.int64)
    return Checkpoint(0, 0, images.capture(), counts, BetweenBlocks(0))


def stepper_at(target: Target, engine: TurnEngine, at: Checkpoint) -> Stepper:
    events = Events()
    return Stepper(grid_at(target, lambda: engine, at, events), events, {})


def compare(target: Target, quanta: list[int]) -> None:
    """Stops compiled code after about so many warp instructions, again and again, and compares."""
    images = MemorySnapshots(target.memory, allocates=False)
    engine = TurnEngine(target)
    start = begin(target, engine, images)
    points = [start]
    engine.load(start.state)
    for quantum in quanta:
        if points[-1].position > LIMIT or not engine.advance(quantum):
            break
        points.append(Checkpoint(engine.executed, 0, images.capture(), start.counts, engine.save()))
    images.restore(start.memory)
    reference = stepper_at(target, engine, start)
    for point in points:
        while reference.position < point.position and not reference.ended:
            reference.step()
        expected, memory = state_of(reference), images.capture()
        images.restore(point.memory)
        assert state_of(stepper_at(target, engine, point)) == expected
        after = images.capture()
        for address, pages in memory.pages.items():
            assert [p.tobytes() for p in pages] == [p.tobytes() for p in after.pages[address]]
        images.restore(memory)


def test_compiled_code_stands_where_the_reference_machine_does(random_examples: int) -> None:
    """`compare` asserts equal states and memory at each position where compiled code pauses."""

    @settings(max_examples=random_examples)
    @given(
        text=kernels(),
        shape=st.sampled_from([(1, 32), (2, 40), (1, 96)]),
        seed=st.integers(0, 1 << 32),
        schedule=schedules(),
        quanta=st.lists(st.integers(1, 400), min_size=3, max_size=12),
    )
    def agree(
        text: str, shape: tuple[int, int], seed: int, schedule: Schedule, quanta: list[int]
    ) -> None:
        size = shape[0] * shape[1] * THREAD_BYTES
        target, _ = target_of(text, shape, size, schedule, seed=seed)
        if target.compiles:
            compare(target, quanta)

    agree()


WAITS = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<4>; .reg .b64 %d<3>; .reg .pred %p<4>;
    .shared .align 8 .b64 bar;
    mov.u32 %r1, %tid.x; mov.u32 %r2, bar; ld.param.u64 %d1, [out]; mov.u32 %r3, 0;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared::cta.b64 [%r2], 32;
    bar.sync 0;
    setp.ge.u32 %p2, %r1, 32;
    @%p2 bra ARRIVE;
WAIT:
    add.u32 %r3, %r3, 1;
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2], 0;
    @!%p3 bra WAIT;
    st.global.u32 [%d1], %r3;
    ret;
ARRIVE:
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p3, %r3, 500;
    @%p3 bra ARRIVE;
    mbarrier.arrive.shared::cta.b64 %d2, [%r2];
    ret;
}
"""


def test_a_turn_that_a_failed_wait_has_ended_does_not_go_on() -> None:
    """Turns of compiled code are run in slices; here the wait fails in the first slice of one."""
    for schedule in (Schedule(), Schedule("fair"), Schedule("random", 3)):
        target, _ = target_of(WAITS, (1, 64), 4, schedule)
        assert target.compiles
        compare(target, [40, 200, 300, 300, 300, 300])
