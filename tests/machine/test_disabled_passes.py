"""Checks that both machines agree whichever passes of the compiler are disabled."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shaped_programs import (
    empty_warp_laps,
    jumps,
    masked_loops,
    predicated_blocks,
    shaped_kernels,
    static_schedule_kernels,
    strided_chains,
    tiled_kernels,
    warp_loop_kernels,
)
from shaped_runs import BLOCKS, LONG_BLOCKS, WIDE, outcome_of, schedules
from test_machines_agree import agree_on_kernels

import warploom as wl
from warploom.ir.options import ALL, DESCRIPTIONS, VARIABLE, Pass
from warploom.machine.compiled.engine import CompiledEngine
from warploom.machine.launch import Schedule
from warploom.machine.reference.machine import ReferenceEngine

SETS = [*Pass, ALL]

IN_ANY_BLOCKS = st.one_of(
    shaped_kernels(),
    *(
        shaped_kernels(body())
        for body in (strided_chains, predicated_blocks, jumps, masked_loops, empty_warp_laps)
    ),
)
KERNELS = st.one_of(
    st.tuples(IN_ANY_BLOCKS, st.sampled_from(BLOCKS)),
    st.tuples(
        st.one_of(warp_loop_kernels(), static_schedule_kernels()), st.sampled_from(LONG_BLOCKS)
    ),
    st.tuples(tiled_kernels(), st.sampled_from(WIDE)),
)
"""Kernels that passes were made for, and blocks to launch: index arithmetic, tiles, pointers that
walk, sides of branches, loops that lanes leave, and barriers."""


@pytest.mark.parametrize("name", SETS)
def test_machines_agree_without_a_pass(
    name: str, random_examples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, name)
    agree_on_kernels(max(1, random_examples // 20), [(2, 40), (1, 96)])


@pytest.mark.parametrize("name", SETS)
def test_machines_agree_on_what_passes_are_for_without_a_pass(
    name: str, random_examples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, name)

    @settings(max_examples=max(2, random_examples // 4))
    @given(drawn=KERNELS, schedule=schedules())
    def agree(drawn: tuple[str, tuple[int, int]], schedule: Schedule) -> None:
        text, block = drawn
        expected = outcome_of(text, block, schedule, ReferenceEngine(), 4)
        assert outcome_of(text, block, schedule, CompiledEngine(), 4) == expected

    agree()


def test_a_name_that_is_no_pass_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "groups, warp-loop")
    with pytest.raises(wl.WarploomError, match=r"WARPLOOM_DISABLE=warp-loop.*warp-loops.*and all"):
        CompiledEngine()


def test_each_pass_is_described() -> None:
    assert DESCRIPTIONS.keys() == set(Pass)
