"""Checks that launches leave the same whatever number of workers shares their blocks, and that
blocks which are found independent are so."""

from __future__ import annotations

from collections import Counter

import pytest
from block_programs import (
    BlockLaunch,
    Prepared,
    block_kernels,
    block_launches,
    in_order,
    with_workers,
)
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.usefixtures("share_every_launch")
def test_workers_leave_what_one_leaves(random_examples: int) -> None:
    """Kernels whose blocks are disjoint, meet, or update the same words by atomics. At least a
    tenth of the launches must be shared, for the test to say something."""
    shared = Counter[bool]()

    @settings(max_examples=random_examples)
    @given(block_kernels(), block_launches(), st.sampled_from((2, 3, 8)))
    def same(text: str, launch: BlockLaunch, workers: int) -> None:
        expected, *_ = with_workers(text, launch, 1)
        found, threads, _ = with_workers(text, launch, workers)
        assert found == expected
        shared[threads > 1] += 1

    same()
    assert 10 * shared[True] >= shared.total()


def test_independent_blocks_may_run_in_any_order(random_examples: int) -> None:
    """What the proof calls independent leaves the same when the last block runs first, or any
    other."""

    @settings(max_examples=random_examples)
    @given(block_kernels(), block_launches(), st.randoms(use_true_random=False))
    def same(text: str, launch: BlockLaunch, random: object) -> None:
        if Prepared.of(text, launch).reason():
            return
        order = list(range(launch.blocks))
        expected = in_order(text, launch, order)
        random.shuffle(order)  # type: ignore[attr-defined]
        found = in_order(text, launch, order)
        if expected is not None and found is not None:
            assert found == expected

    same()
