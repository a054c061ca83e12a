"""Draws random schedules of launches."""

from __future__ import annotations

import hypothesis.strategies as st

from warploom.machine.launch import POLICIES, Schedule


def schedules() -> st.SearchStrategy[Schedule]:
    """Draws both control-flow models and every policy."""
    return st.builds(
        Schedule,
        policy=st.sampled_from(POLICIES),
        seed=st.integers(0, 1 << 16),
        independent=st.booleans(),
        resident_blocks=st.integers(1, 3),
    )
