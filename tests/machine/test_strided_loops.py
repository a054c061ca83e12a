"""Checks that batches of iterations have the results of single iterations, whichever arrays overlap
or end."""

from __future__ import annotations

from hypothesis import given, settings
from shaped_runs import schedules
from strided_programs import strided_kernels
from strided_runs import Setting, settings_of_launches, strided_run

from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.launch import Schedule
from warploom.machine.reference.machine import ReferenceEngine


def test_machines_agree_on_strided_loops(random_examples: int) -> None:
    @settings(max_examples=random_examples)
    @given(text=strided_kernels(), setting=settings_of_launches(), schedule=schedules())
    def agree(text: str, setting: Setting, schedule: Schedule) -> None:
        expected = strided_run(text, setting, schedule, ReferenceEngine())
        assert strided_run(text, setting, schedule, CompiledEngine()) == expected

    agree()
