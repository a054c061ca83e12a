"""Checks sanitized code under several orders: one code of level 0 serves all of them, and has the
findings, memory and counts of the reference machine."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import LIMIT, counts
from hypothesis import given, settings
from hypothesis import strategies as st
from random_programs import THREAD_BYTES, kernels

import warploom as wl
from warploom.compilation import jit
from warploom.core.errors import WarploomError
from warploom.llvm.opt_level import Effort
from warploom.machine.compiled import tiers as tiers_module
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.compiled.work import WorkerLaunch
from warploom.machine.launch import POLICIES, Launch, Schedule
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.memory.module_globals import ModuleGlobals
from warploom.machine.reference.machine import ReferenceEngine
from warploom.program.build import build
from warploom.ptx.parser import parse
from warploom.sanitize.findings import TOOLS
from warploom.sanitize.launching import SanitizedLaunch

DIVERGES = """
__global__ void k(int *out) {
    __shared__ int tile[64];
    int t = threadIdx.x;
    if (t % 3) tile[t] = t; else tile[t] = -t;
    for (int i = 0; i < t; ++i) tile[t] += i;
    out[t] = tile[t ^ 1];  // no barrier: a race between the lanes of a pair
}
"""


def launched(file: Path, schedule: str, engine: str) -> tuple[Any, ...]:
    """Returns what a launch of `DIVERGES` finds, writes and counts."""
    gpu = wl.Device("a100", engine=engine)
    out = gpu.zeros(64, np.int32)
    run = gpu.load(file)["k"][1, 64](out, schedule=schedule, sanitize=TOOLS)
    found = {(one.kind, one.line, one.other_line) for one in run.findings}
    return found, out.copy_to_host().tobytes(), dict(run.counters)


def test_one_code_serves_all_orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", str(tmp_path))
    file = tmp_path / "diverges.cu"
    file.write_text(DIVERGES, "utf-8")
    compiled: list[jit.Compilation] = []
    compile_now = jit._compile

    def noted(wanted: jit.Compilation, lock: Any) -> Any:
        compiled.append(wanted)
        return compile_now(wanted, lock)

    monkeypatch.setattr(jit, "_compile", noted)
    orders = {order: launched(file, order, "compiled") for order in POLICIES}
    assert len(compiled) == 1
    for order, found in orders.items():
        assert {kind for kind, _, _ in found[0]} == {"race"}
        assert found == launched(file, order, "reference"), order


def outcome(text: str, blocks: int, threads: int, schedule: Schedule, engine: Any) -> Any:
    """Returns the findings of a kernel `k` on zeroed memory, the memory and the counts; only the
    type of an error that the detector does not report."""
    module, memory = parse(text), DeviceMemory(1 << 30)
    program, image = build(module, "k"), ModuleGlobals(module, memory)
    size = blocks * threads * THREAD_BYTES
    buffer = memory.allocate(size, "buffer")
    memory.write(buffer.address, bytes(size))
    launch = Launch(
        (blocks, 1, 1),
        (threads, 1, 1),
        struct.pack("<Q", buffer.address),
        image.addresses(program.globals),
        max_instructions=LIMIT,
        schedule=schedule,
    )
    sanitized = SanitizedLaunch(engine, TOOLS, memory.unwritten)
    try:
        tally = sanitized.execute(program, launch, memory, None)()
    except WarploomError as error:
        return type(error)
    found = {(one.tool, one.kind, one.line, one.other_line) for one in sanitized.findings}
    # A launch that ends with an error leaves no counts on the reference machine.
    ended = not any(one.tool in ("mem", "sync") for one in sanitized.findings)
    return found, memory.read(buffer.address, size) if ended else b"", counts(tally) if ended else 0


def agree_on_sanitized_kernels(
    examples: int, policies: tuple[str, ...], shapes: list[tuple[int, int]]
) -> None:
    """Asserts that both machines have the same outcome of random kernels under the detector."""

    @settings(max_examples=examples)
    @given(
        text=kernels(),
        shape=st.sampled_from(shapes),
        policy=st.sampled_from(policies),
        independent=st.booleans(),
    )
    def agree(text: str, shape: tuple[int, int], policy: str, independent: bool) -> None:
        schedule = Schedule(policy, 1, independent, resident_blocks=2)
        expected = outcome(text, *shape, schedule, ReferenceEngine())
        assert outcome(text, *shape, schedule, CompiledEngine()) == expected

    agree()


@pytest.mark.parametrize("level", ["0", "1"])
def test_sanitized_code_agrees(
    level: str, random_examples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPLOOM_OPT_LEVEL", level)
    agree_on_sanitized_kernels(random_examples, POLICIES, [(1, 32), (2, 40), (1, 96)])


def test_sanitized_launches_continue_in_better_code(
    random_examples: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checks launches that begin in code for any order, pause as often as they can, and continue in
    code of level 1, under `converge` in code of another variant."""
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", str(tmp_path))  # without code of level 1
    monkeypatch.delenv("WARPLOOM_OPT_LEVEL", raising=False)
    monkeypatch.setattr(tiers_module, "start_compiling", lambda _: None)
    monkeypatch.setattr(tiers_module, "SECONDS", 0.0)
    monkeypatch.setattr(tiers_module, "SECONDS_AN_INSTRUCTION", 0.0)
    monkeypatch.setattr(tiers_module, "SECONDS_IN", {Effort.LEAST: 1e-9, Effort.LESS: 1e9})
    changed: list[bool] = []
    run_slice = WorkerLaunch.run_slice

    def noted(work: WorkerLaunch) -> int:
        work.launch_template.pace.instructions = 1
        before = work.kernel.variant
        status = run_slice(work)
        changed.append(work.kernel.variant != before)
        return status

    monkeypatch.setattr(WorkerLaunch, "run_slice", noted)
    agree_on_sanitized_kernels(random_examples, ("converge",), [(3, 40), (2, 96)])
    assert any(changed)
