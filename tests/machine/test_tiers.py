"""Checks that baseline code has the results and counts of optimized code, and that a launch may
continue in the other wherever it pauses."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shaped_programs import static_schedule_kernels, warp_loop_kernels
from shaped_runs import outcome_of
from test_machines_agree import agree_on_kernels
from test_pauses import LOOPS, MEETS, assert_every_block_is_run_once

import warploom as wl
from warploom.compilation import jit
from warploom.compilation.jit import CompiledKernel
from warploom.core.errors import CompileError
from warploom.llvm.opt_level import Effort
from warploom.machine.compiled import tiers as tiers_module
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.compiled.tiers import Tiers
from warploom.machine.compiled.work import WorkerLaunch
from warploom.machine.launch import Launch, Schedule
from warploom.machine.reference.machine import ReferenceEngine
from warploom.program.build import build
from warploom.ptx.parser import parse
from warploom.sanitize.findings import TOOLS


@pytest.fixture(params=[1, 2, 4])
def handovers(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> list[WorkerLaunch]:
    """Makes launches begin in baseline code, pause as often as they can, and continue in optimized
    code after a number of pauses; returns the launches that did."""
    changed: list[WorkerLaunch] = []
    pauses, run_slice = 0, WorkerLaunch.run_slice

    def begin(tiers: Tiers) -> CompiledKernel:
        nonlocal pauses
        pauses = 0
        return tiers.baseline()

    def improve_when_due(_: Tiers) -> None:
        nonlocal pauses
        pauses += 1
        if pauses >= request.param:
            monkeypatch.setattr(Tiers, "kernel", Tiers.optimised)

    def current(tiers: Tiers) -> CompiledKernel | None:
        return tiers.optimised() if pauses >= request.param else None

    def noted(work: WorkerLaunch) -> int:
        work.launch_template.pace.instructions = 1
        before = work.kernel
        status = run_slice(work)
        if work.kernel is not before:
            changed.append(work)
            monkeypatch.setattr(Tiers, "kernel", begin)
        return status

    monkeypatch.setattr(WorkerLaunch, "run_slice", noted)
    monkeypatch.setattr(Tiers, "kernel", begin)
    monkeypatch.setattr(Tiers, "improve_when_due", improve_when_due)
    monkeypatch.setattr(Tiers, "current", property(current))
    return changed


@pytest.mark.parametrize("text", [LOOPS, MEETS])
@pytest.mark.parametrize("threads", [96, 100])
def test_every_block_is_run_once(text: str, threads: int, handovers: list[WorkerLaunch]) -> None:
    """Uses the kernels of test_pauses, which write their thread's number."""
    assert_every_block_is_run_once(text, threads)
    assert handovers


@pytest.mark.usefixtures("handovers")
def test_launches_continue_in_optimised_code(random_examples: int) -> None:
    agree_on_kernels(random_examples, [(3, 40), (2, 96)])


@pytest.mark.usefixtures("handovers")
def test_launches_go_on_behind_barriers(random_examples: int) -> None:
    """Checks launches that pause after barriers, where code has saved each warp's registers to its
    context and warps run one after the other."""

    @settings(max_examples=random_examples // 2)
    @given(
        text=st.one_of(warp_loop_kernels(), static_schedule_kernels()),
        threads=st.sampled_from([100, 128]),
    )
    def agree(text: str, threads: int) -> None:
        alone = Schedule(resident_blocks=1)
        expected = outcome_of(text, (threads, 1), alone, ReferenceEngine(), 3)
        assert outcome_of(text, (threads, 1), alone, CompiledEngine(), 3) == expected

    agree()


def test_baseline_code_agrees(random_examples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPLOOM_OPT_LEVEL", "baseline")
    agree_on_kernels(2 * random_examples, [(1, 32), (2, 40), (1, 96)])


COPIES = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n) {
  .reg .b64 %rd<3>; .reg .b32 %r<5>; .reg .pred %p;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd1, %rd1, %rd2;
  mov.u32 %r3, 0;
LOOP:
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p, %r3, %r1;
  @%p bra LOOP;
  st.global.u32 [%rd1], %r3;
  ret;
}
"""


@pytest.fixture
def tiers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Tiers]]:
    """Returns what makes the tiers of a kernel as a new process would, over an empty cache, while
    no level is set and two cores are free."""
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("WARPLOOM_OPT_LEVEL", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    made: list[Tiers] = []

    def make() -> Tiers:
        engine, launch = CompiledEngine(), Launch((1, 1, 1), (32, 1, 1), bytes(12))
        made.append(engine.tiers(build(parse(COPIES), "k"), launch))
        return made[-1]

    yield make
    for each in made:
        while each.is_compiling:
            each.improve_when_due()
            time.sleep(0.01)


def improved(tiers: Tiers, before: CompiledKernel) -> CompiledKernel:
    """Returns the code that launches begin in once it is no longer `before`."""
    end = time.monotonic() + 60
    while (kernel := tiers.kernel()) is before:
        assert time.monotonic() < end
        time.sleep(0.01)
    return kernel


def test_better_code_is_compiled_beside_launches(tiers: Callable[[], Tiers]) -> None:
    one = tiers()
    baseline = one.kernel()
    assert baseline.baseline
    one.add_seconds(baseline, 0.04)
    assert not one.is_compiling
    one.add_seconds(baseline, 0.02)
    assert one.kernel() is baseline
    assert one.is_compiling
    assert one.reserves_core
    less = improved(one, baseline)
    assert less.effort is Effort.LESS
    # A process that begins now finds it in the cache; so do those after the next level.
    assert tiers().kernel().effort is Effort.LESS
    one.add_seconds(baseline, 5.0)  # of a launch that began before
    assert one.kernel() is less
    assert not one.is_compiling
    one.add_seconds(less, 1.1)
    assert one.kernel() is less
    assert one.is_compiling
    assert not one.reserves_core
    full = improved(one, less)
    assert full.effort is Effort.FULL
    one.add_seconds(full, 5.0)
    assert one.kernel() is full
    assert tiers().kernel().effort is Effort.FULL


def test_seconds_are_kept_across_processes(tiers: Callable[[], Tiers]) -> None:
    """The kernel has 11 instructions: compiling is expected to take 0.05 + 11 * 0.0025 s."""
    for _ in range(3):
        one = tiers()
        baseline = one.kernel()
        assert baseline.baseline
        one.add_seconds(baseline, 0.026)
    assert tiers().kernel().effort is Effort.LESS


@pytest.mark.parametrize("cores", [1, 2])
def test_without_a_process_launches_wait_for_the_compiler(
    cores: int, tiers: Callable[[], Tiers], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    if cores == 2:
        monkeypatch.setattr(os, "fork", Mock(side_effect=BlockingIOError))
    one = tiers()
    baseline = one.kernel()
    one.add_seconds(baseline, 0.06)
    assert one.kernel() is baseline
    one.add_seconds(baseline, 0.03)
    assert one.kernel().effort is Effort.LESS


def test_no_compiler_is_forked_while_a_thread_imports(
    tiers: Callable[[], Tiers], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, begun, end = tiers(), threading.Event(), threading.Event()
    baseline = one.kernel()

    class Slow:
        """Finds no module, but only once it may."""

        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            if name == "warploom.timing.policies":
                begun.set()
                end.wait(30)

    monkeypatch.setattr(sys, "meta_path", [Slow, *sys.meta_path])
    monkeypatch.delitem(sys.modules, "warploom.timing.policies", raising=False)
    thread = threading.Thread(target=lambda: vars(wl)["__getattr__"]("prefetcher"))
    thread.start()
    assert begun.wait(30)
    one.add_seconds(baseline, 0.06)
    assert one.kernel() is baseline
    assert not one.is_compiling
    end.set()
    thread.join()
    assert one.kernel() is baseline
    assert one.is_compiling


def test_a_compiler_that_fails_is_not_started_again(
    tiers: Callable[[], Tiers], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = tiers()
    baseline = one.kernel()
    monkeypatch.setattr(jit, "_compile", Mock(side_effect=CompileError("too long")))
    one.add_seconds(baseline, 1.0)
    one.kernel()
    while one.is_compiling:
        assert one.kernel() is baseline
    one.add_seconds(baseline, 1.0)
    assert one.kernel() is baseline
    assert not one.is_compiling


def test_a_run_says_in_which_code_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", str(tmp_path))
    file = tmp_path / "copies.ptx"
    file.write_text(COPIES, "utf-8")

    def run(engine: str) -> wl.Run:
        gpu = wl.Device("a100", engine=engine)
        return gpu.load(file)["k"][1, 32](gpu.zeros(32, np.uint32), 5)

    monkeypatch.delenv("WARPLOOM_OPT_LEVEL", raising=False)
    assert run("reference").tier == ""
    assert run("compiled").tier == "baseline"
    assert "in baseline code" in run("compiled").report().replace("\n", " ")
    monkeypatch.setenv("WARPLOOM_OPT_LEVEL", "1")
    assert run("compiled").tier == "level 1"
    assert "in baseline code" not in run("compiled").report()


@pytest.mark.parametrize("watch", ["sanitized", "recorded", "not watched"])
def test_a_running_launch_goes_on_in_better_code(
    watch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compares launches that pause as often as they can, and change over at two pauses, with one
    that has the best code from the beginning."""
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", str(tmp_path))
    file = tmp_path / "copies.ptx"
    file.write_text(COPIES, "utf-8")
    efforts: list[str] = []
    run_slice = WorkerLaunch.run_slice

    def noted(work: WorkerLaunch) -> int:
        work.launch_template.pace.instructions = 1
        efforts.append(work.kernel.tier)
        return run_slice(work)

    def left() -> tuple[object, ...]:
        gpu = wl.Device("a100", record=watch == "recorded")
        out = gpu.zeros(32, np.uint32)  # block 1 writes what block 0 has written: a race
        sanitize = TOOLS if watch == "sanitized" else ()
        run = gpu.load(file)["k"][2, 32](out, 9, sanitize=sanitize)
        found = [(one.kind, one.line) for one in run.findings] if sanitize else []
        times = run.time().cycles if watch == "recorded" else 0
        return out.copy_to_host().tobytes(), dict(run.counters), found, times

    monkeypatch.setenv("WARPLOOM_OPT_LEVEL", "3")
    expected = left()
    assert expected[2] or watch != "sanitized"
    file.write_text(COPIES + "// another program, which has no code yet\n", "utf-8")
    monkeypatch.delenv("WARPLOOM_OPT_LEVEL")
    monkeypatch.setenv("WARPLOOM_CACHE_DIR", str(tmp_path / "empty"))
    monkeypatch.setattr(WorkerLaunch, "run_slice", noted)
    monkeypatch.setattr(tiers_module, "start_compiling", lambda _: None)
    monkeypatch.setattr(tiers_module, "SECONDS", 0.0)
    monkeypatch.setattr(tiers_module, "SECONDS_AN_INSTRUCTION", 0.0)
    monkeypatch.setattr(tiers_module, "SECONDS_IN", dict.fromkeys(Effort, 1e-9))
    assert left() == expected
    lowest = "level 0" if watch == "sanitized" else "baseline"
    assert [*dict.fromkeys(efforts)] == [lowest, "level 1", "level 3"]


def test_a_program_that_is_forked_compiles_anew(tiers: Callable[[], Tiers]) -> None:
    one = tiers()
    baseline = one.kernel()
    one.add_seconds(baseline, 0.06)
    one.kernel()
    assert one.is_compiling
    child = os.fork()
    if child == 0:
        one.kernel()  # forgets the task
        os._exit(0 if improved(one, baseline).effort is Effort.LESS else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert improved(one, baseline).effort is Effort.LESS
