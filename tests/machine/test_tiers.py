"""Checks that baseline code has the results and counts of optimised code, and that a launch may
continue in the other wherever it pauses."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shaped_programs import static_schedule_kernels, warp_loop_kernels
from shaped_runs import outcome_of
from test_machines_agree import agree_on_kernels
from test_pauses import LOOPS, MEETS, assert_every_block_is_run_once

from warploom.compilation.jit import CompiledKernel
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.compiled.tiers import Tiers
from warploom.machine.compiled.work import WorkerLaunch
from warploom.machine.launch import Schedule
from warploom.machine.reference.machine import ReferenceEngine


@pytest.fixture(params=[1, 2, 4])
def handovers(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> list[WorkerLaunch]:
    """Makes launches begin in baseline code, pause as often as they can, and continue in optimised
    code after a number of pauses; returns the launches that did."""
    changed: list[WorkerLaunch] = []
    pauses, run_slice = 0, WorkerLaunch.run_slice

    def begin(tiers: Tiers) -> CompiledKernel:
        nonlocal pauses
        pauses = 0
        return tiers.baseline()

    def optimised_when_due(tiers: Tiers) -> CompiledKernel | None:
        nonlocal pauses
        pauses += 1
        if pauses < request.param:
            return None
        monkeypatch.setattr(Tiers, "kernel", Tiers.optimised)
        return tiers.optimised()

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
    monkeypatch.setattr(Tiers, "optimised_when_due", optimised_when_due)
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
