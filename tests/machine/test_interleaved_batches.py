"""Checks that loops whose warps are interleaved have the results and counts of warps that run one
after the other."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from agreement import counts
from hypothesis import given, settings
from hypothesis import strategies as st
from interleaved_programs import BODIES, ELEMENTS, LOOPS, interleaved_kernels, kernel_of

from warploom.analysis.linear.thread_order import are_threads_independent
from warploom.core.errors import WarploomError
from warploom.frontends.cuda_cpp import compile_cuda
from warploom.machine.compiled.distribution import DistributedLaunch
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.compiled.proofs import cached_proof
from warploom.machine.launch import Launch, Schedule
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.memory.module_globals import ModuleGlobals
from warploom.machine.reference.machine import ReferenceEngine
from warploom.program.build import build
from warploom.ptx.parser import parse


@pytest.fixture(autouse=True)
def proves_at_once(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Makes each launch find out before it begins whether warps may be interleaved; the answers."""
    answers: list[bool] = []

    def decide(self: DistributedLaunch) -> None:
        """Sets whether warps may be interleaved."""
        given = self.program, self.launch, self.memory
        self.interleaves = cached_proof(*given, are_threads_independent)
        answers.append(self.interleaves)

    monkeypatch.setattr(DistributedLaunch, "_decide_order", decide)
    return answers


def outcome(ptx: str, block: int, blocks: int, n: int, step: int, engine: object) -> object:
    """Returns the memory and the counts after a run, or the type of its error."""
    module, memory = parse(ptx), DeviceMemory(1 << 28)
    program = build(module, "k")
    arrays = [memory.allocate(4 * ELEMENTS, name).address for name in "abc"]
    out = memory.allocate(4 * (1 + block * blocks), "out").address
    numbers = np.random.default_rng(0)
    for array in arrays:
        memory.write(array, numbers.integers(0, 80, ELEMENTS, np.int32).tobytes())
    launch = Launch(
        (blocks, 1, 1),
        (block, 1, 1),
        struct.pack("<QQQQii", *arrays, out, n, step),
        ModuleGlobals(module, memory).addresses(program.globals),
        schedule=Schedule(independent=True),
    )
    try:
        tally = engine.launch(program, launch, memory)  # type: ignore[attr-defined]
    except WarploomError as error:
        return type(error)
    contents = [memory.read(array, 4 * ELEMENTS) for array in arrays]
    return [*contents, memory.read(out, 4 * (1 + block * blocks))], counts(tally)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("body", [BODIES[1], BODIES[5]])
def test_machines_agree_on_a_loop(body: str, loop: str, proves_at_once: list[bool]) -> None:
    """Four warps, of which the last one runs an iteration less. The threads of these kernels are
    independent; of a loop that counts down, the analysis does not find out."""
    ptx = compile_cuda(kernel_of(loop.format(body=body)), "k.cu", (8, 0))
    expected = outcome(ptx, 128, 2, ELEMENTS - 900, 1024, ReferenceEngine())
    assert outcome(ptx, 128, 2, ELEMENTS - 900, 1024, CompiledEngine()) == expected
    assert proves_at_once == ["i >= 0" not in loop]


def test_machines_agree_on_interleaved_warps(random_examples: int) -> None:
    @settings(max_examples=random_examples)
    @given(
        text=interleaved_kernels(),
        block=st.sampled_from([32, 64, 96, 128, 100, 256]),
        blocks=st.integers(1, 3),
        n=st.sampled_from([ELEMENTS, ELEMENTS - 1, ELEMENTS - 3000, ELEMENTS // 2 + 17, 900]),
        step=st.sampled_from([1024, 1024, 1056, 2048, 1030, 768]),
    )
    def agree(text: str, block: int, blocks: int, n: int, step: int) -> None:
        ptx = compile_cuda(text, "k.cu", (8, 0))
        expected = outcome(ptx, block, blocks, n, step, ReferenceEngine())
        assert outcome(ptx, block, blocks, n, step, CompiledEngine()) == expected

    agree()
