"""Checks that loops whose warps are interleaved have the results and counts of warps that run one
after the other."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import pytest
from agreement import counts
from hypothesis import given, settings
from hypothesis import strategies as st
from interleaved_programs import BODIES, ELEMENTS, LOOPS, interleaved_kernels, kernel_of

from warploom.abi.environment import Interleaving
from warploom.core.errors import WarploomError
from warploom.frontends.cuda_cpp import compile_cuda
from warploom.machine.compiled import pace as pace_module
from warploom.machine.compiled.block_times import BlockTimes
from warploom.machine.compiled.distribution import DistributedLaunch
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.compiled.work import WorkerLaunch
from warploom.machine.compiled.workers import BlockDependences
from warploom.machine.launch import Launch, Schedule
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.memory.module_globals import ModuleGlobals
from warploom.machine.reference.machine import ReferenceEngine
from warploom.program.build import build
from warploom.ptx.parser import parse


@pytest.fixture(autouse=True)
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Interleaving]:
    """Makes each launch find out before it begins which warps may be interleaved; the answers."""
    answers: list[Interleaving] = []
    monkeypatch.setattr(BlockTimes, "interleaving_pays", lambda *_: True)

    def decide(self: DistributedLaunch) -> None:
        """Sets which warps may be interleaved."""
        dependences = BlockDependences(self.program, self.launch, self.memory, caches=False)
        self.interleaving = dependences.interleaving(BlockTimes())
        answers.append(self.interleaving)

    monkeypatch.setattr(DistributedLaunch, "_decide_order", decide)
    return answers


@dataclass(frozen=True)
class Grid:
    """A launch: threads of a block, blocks, how many of these can be resident, the loops' bound,
    and their step."""

    block: int
    blocks: int
    resident: int
    n: int
    step: int


def outcome(ptx: str, grid: Grid, engine: object) -> object:
    """Returns the memory and the counts after a run, or the type of its error."""
    module, memory = parse(ptx), DeviceMemory(1 << 28)
    program = build(module, "k")
    arrays = [memory.allocate(4 * ELEMENTS, name).address for name in "abc"]
    threads = grid.block * grid.blocks
    out = memory.allocate(4 * (1 + threads), "out").address
    numbers = np.random.default_rng(0)
    for array in arrays:
        memory.write(array, numbers.integers(0, 80, ELEMENTS, np.int32).tobytes())
    launch = Launch(
        (grid.blocks, 1, 1),
        (grid.block, 1, 1),
        struct.pack("<QQQQii", *arrays, out, grid.n, grid.step),
        ModuleGlobals(module, memory).addresses(program.globals),
        schedule=Schedule(independent=True, resident_blocks=grid.resident),
    )
    try:
        tally = engine.launch(program, launch, memory)  # type: ignore[attr-defined]
    except WarploomError as error:
        return type(error)
    contents = [memory.read(array, 4 * ELEMENTS) for array in arrays]
    return [*contents, memory.read(out, 4 * (1 + threads))], counts(tally)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("body", [BODIES[1], BODIES[5]])
def test_machines_agree_on_a_loop(body: str, loop: str, answers: list[Interleaving]) -> None:
    """Two warps of each of ten blocks, of which the last ones run an iteration less. Threads and
    blocks of these kernels are independent."""
    ptx = compile_cuda(kernel_of(loop.format(body=body)), "k.cu", (8, 0))
    grid = Grid(block=64, blocks=10, resident=1024, n=ELEMENTS - 900, step=1024)
    assert outcome(ptx, grid, CompiledEngine()) == outcome(ptx, grid, ReferenceEngine())
    assert answers == [Interleaving.ACROSS_BLOCKS]


def test_a_warp_continues_alone_whose_block_does_not_meet() -> None:
    """The first warp diverges before the loop (17 of its threads have one more iteration), and so
    runs it alone, to the barrier; the second one waits for it at the loop's header. Both have read
    the pointers before an earlier barrier."""
    text = kernel_of(LOOPS[0].format(body=BODIES[0]))
    grid = Grid(block=64, blocks=1, resident=1024, n=48 * 1024 + 17, step=1024)
    ptx = compile_cuda(text, "k.cu", (8, 0))
    assert outcome(ptx, grid, CompiledEngine()) == outcome(ptx, grid, ReferenceEngine())


def test_blocks_run_in_teams_where_they_are_independent(
    answers: list[Interleaving], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 36 blocks of 8 warps, 32 run the loop together (256 warps), then 4; or 3 at once where
    only 3 can be resident. After the loop, blocks of another kernel store to the same elements, so
    that their order is observable."""
    resident: list[int] = []

    def run_slice(self: WorkerLaunch) -> int:
        """Runs a slice of the launch, and records how many blocks were resident at once."""
        status = original(self)
        resident.append(self.buffers.plan.most_resident)
        return status

    original = WorkerLaunch.run_slice
    monkeypatch.setattr(WorkerLaunch, "run_slice", run_slice)
    own = kernel_of(LOOPS[1].format(body=BODIES[1]))
    common = own.replace("out[1 + at]", "out[1 + threadIdx.x]")
    for text, most in ((own, 1024), (own, 3), (common, 1024)):
        grid = Grid(block=256, blocks=36, resident=most, n=ELEMENTS, step=9216)
        outcome(compile_cuda(text, "k.cu", (8, 0)), grid, CompiledEngine())
    assert resident == [32, 3, 1]
    across, within = Interleaving.ACROSS_BLOCKS, Interleaving.WITHIN_BLOCKS
    assert answers == [across, across, within]


def test_machines_agree_on_interleaved_warps(
    random_examples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    @settings(max_examples=random_examples)
    @given(
        text=interleaved_kernels(),
        grid=st.builds(
            Grid,
            block=st.sampled_from([32, 64, 96, 128, 100, 256]),
            blocks=st.sampled_from([1, 2, 3, 9, 17, 40]),
            resident=st.sampled_from([1024, 1024, 3, 1]),
            n=st.sampled_from([ELEMENTS, ELEMENTS - 1, ELEMENTS - 3000, ELEMENTS // 2 + 17, 900]),
            step=st.sampled_from([1024, 2048, 4096, 1056, 2080, 5120, 10240, 1030, 768]),
        ),
        pace=st.sampled_from([None, 100, 3000]),
    )
    def agree(text: str, grid: Grid, pace: int | None) -> None:
        ptx = compile_cuda(text, "k.cu", (8, 0))
        expected = outcome(ptx, grid, ReferenceEngine())
        with monkeypatch.context() as patched:
            if pace is not None:
                # Launches pause again and again, some while blocks wait for their team.
                patched.setattr(pace_module, "FIRST", pace)
                patched.setattr(pace_module, "SHORTEST", 0.0)
            assert outcome(ptx, grid, CompiledEngine()) == expected

    agree()
