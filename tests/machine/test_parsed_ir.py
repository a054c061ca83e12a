"""Checks that a kernel is compiled from the text of its Warp IR alone: what passes begin with is
printed and parsed, passes run on it, and code is emitted from the printed and parsed result."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from shaped_runs import outcome_of, schedules
from test_disabled_passes import KERNELS

from warploom.abi.environment import CountLayout
from warploom.compilation import emission
from warploom.ir.parser import parse_warp_ir
from warploom.ir.text import print_warp_ir
from warploom.ir.variant import KernelVariant
from warploom.ir.warp_ir import WarpIR
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.launch import Schedule
from warploom.machine.reference.machine import ReferenceEngine
from warploom.passes.pipeline import begin, run_passes
from warploom.passes.verifier.kernel import verify


def through_text(ir: WarpIR) -> WarpIR:
    """Returns an IR that was printed, parsed and verified."""
    parsed = parse_warp_ir(print_warp_ir(ir))
    verify(parsed)
    return parsed


def passes_on_text(layout: CountLayout, variant: KernelVariant) -> WarpIR:
    """Returns the IR after all passes, made from nothing but texts."""
    return through_text(run_passes(through_text(begin(layout, variant))))


def test_machines_agree_on_code_from_parsed_ir(
    random_examples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emission, "warp_ir", passes_on_text)

    @settings(max_examples=random_examples)
    @given(drawn=KERNELS, schedule=schedules())
    def agree(drawn: tuple[str, tuple[int, int]], schedule: Schedule) -> None:
        text, block = drawn
        expected = outcome_of(text, block, schedule, ReferenceEngine(), 4)
        assert outcome_of(text, block, schedule, CompiledEngine(), 4) == expected

    agree()
