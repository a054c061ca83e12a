"""Checks both machines on random kernels: registers, memory, counts and errors are equal."""

from __future__ import annotations

from agreement import check_agreement, outcome
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_programs import kernels
from random_schedules import schedules

from warploom.machine.launch import Schedule
from warploom.machine.reference.machine import ReferenceEngine


def agree_on_kernels(examples: int, shapes: list[tuple[int, int]]) -> None:
    """Checks random kernels, in random numbers of blocks and threads."""

    @settings(max_examples=examples)
    @given(
        text=kernels(),
        shape=st.sampled_from(shapes),
        seed=st.integers(0, 1 << 32),
        schedule=schedules(),
    )
    def agree(text: str, shape: tuple[int, int], seed: int, schedule: Schedule) -> None:
        check_agreement(text, shape, seed, schedule)

    agree()


def test_machines_agree(random_examples: int) -> None:
    agree_on_kernels(random_examples, [(1, 32), (1, 20), (2, 40), (1, 96)])


def test_wavefronts_do_what_warps_do(random_examples: int) -> None:
    """Checks that kernels with independent threads have the same results whatever the warp size;
    their costs differ."""

    @settings(
        max_examples=random_examples // 2,
    )
    @given(
        text=kernels(alone=True),
        shape=st.sampled_from([(1, 64), (2, 100)]),
        seed=st.integers(0, 1 << 32),
        schedule=schedules(),
    )
    def agree(text: str, shape: tuple[int, int], seed: int, schedule: Schedule) -> None:
        narrow = outcome(text, shape, seed, schedule, ReferenceEngine())
        wide = outcome(text, shape, seed, schedule, ReferenceEngine(), 64)
        # Which of several errors comes first is a matter of order.
        assume(isinstance(narrow, tuple) and isinstance(wide, tuple))
        assert wide[0] == narrow[0]

    agree()
