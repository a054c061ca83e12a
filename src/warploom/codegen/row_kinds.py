"""Learning of which kind (`rules.rows`) the accesses by rows of a row are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.codegen.environment import (
    KINDS_AT,
    KINDS_SEEN,
    MEMO_KIND,
    MEMO_LEADER,
    MEMO_PASSES,
    MEMO_TAKEN,
)
from warploom.rules.rows import KINDS, kind_of


def learn_row(first: int, second: int, consecutive: int, passes: int, leader: int, row: Any) -> int:
    """Note the kind of an access by rows, from the addresses of their first lanes; whether its row
    had one of that kind before.

    `passes` is how often the load's group has come again, by the row with the number `leader`:
    those since the last time were of the kind that the load has had.
    """
    row[KINDS_AT + row[MEMO_KIND]] += passes - row[MEMO_TAKEN]
    row[MEMO_TAKEN] = passes
    row[MEMO_LEADER] = leader + 1
    kind = kind_of(first, second, consecutive)
    seen = (row[KINDS_SEEN] >> kind) & 1
    row[KINDS_SEEN] |= 1 << kind
    row[MEMO_KIND] = kind
    return seen


def knows_row(first: int, second: int, consecutive: int, row: Any) -> int:
    """Whether a row had an access by rows of that kind before."""
    return (row[KINDS_SEEN] >> kind_of(first, second, consecutive)) & 1


def kinds_of(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How often loads of each kind came again, shape (parts, rows, KINDS), from access rows of
    shape (parts, rows, ROW_WIDTH): what was counted of each, and the passes of its group that have
    not come to it."""
    leaders = rows[:, :, MEMO_LEADER]
    passes = np.take_along_axis(rows[:, :, MEMO_PASSES], np.maximum(leaders - 1, 0), axis=1)
    left = np.where(leaders > 0, passes - rows[:, :, MEMO_TAKEN], 0)
    is_kind = rows[:, :, MEMO_KIND, None] == np.arange(KINDS)
    return rows[:, :, KINDS_AT : KINDS_AT + KINDS] + left[..., None] * is_kind
