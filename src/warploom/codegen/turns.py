"""The schedule as compiled code calls it: `rules.scheduling` over plain pointers, for Numba."""

from __future__ import annotations

from typing import Any

from numba import carray

from warploom.codegen.lanes import LANES
from warploom.rules import plan_words, scheduling
from warploom.rules.convergence import table_words
from warploom.rules.plan_words import (
    SLOTS,
    STATE_WORDS,
    WARPS,
)

_SLOTS, _WARPS, _TABLE_WORDS = SLOTS, WARPS, table_words(LANES)


def begin_launch(plan: Any, slots: Any) -> int:
    """Nothing is resident yet."""
    scheduling.start_blocks(plan, slots)
    return 0


def choose_warp(plan: Any, slots: Any, states: Any, contexts: Any, stride: int) -> int:
    """`next_warp` over contexts that are `stride` words apart."""
    count = plan[_SLOTS] * plan[_WARPS]
    rows = carray(states, (count, STATE_WORDS))
    tables = carray(contexts, (count, stride))
    return scheduling.next_warp(plan, slots, rows, tables)


def end_turn(plan: Any, state: Any, context: Any, status: int, stride: int) -> int:
    """`after_run`; the registers' digest is taken only where it is asked for."""
    digest = 0
    if status == plan_words.TURN_END:
        for word in range(_TABLE_WORDS, stride):
            digest = (digest ^ context[word]) * 1099511628211
    scheduling.after_run(plan, state, context, status, digest)
    return 0
