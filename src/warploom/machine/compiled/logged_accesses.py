"""Finds the distinct address patterns of the accesses in a launch's log (`abi.log`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warploom.abi.log import LogAccess, ScatteredRow
from warploom.core.unique_rows import unique_rows
from warploom.machine.compiled.logs import Log
from warploom.machine.launch import WARP_SIZE
from warploom.simt.warp_table import NONE

Words = npt.NDArray[np.int64]


def distinct_accesses(log: Log, rows: Words, bases: Words) -> tuple[Words, Words]:
    """Returns the distinct accesses among rows of the log, and for each row the index of its
    distinct access.

    `bases` has an address for each row, which is left out of the comparison: two accesses are equal
    if they are of one instruction and kind (`abi.access_kinds`), by the same lanes, at the same
    distances from their bases. A distinct access is a row of instruction, kind, lanes, and the
    distance of each of 32 lanes, 0 for inactive ones.
    """
    columns = rows[:, [LogAccess.instruction, LogAccess.kind, LogAccess.lanes, LogAccess.stride]]
    first_offset = rows[:, LogAccess.first_address] - bases
    # Rows are compared before strides are expanded to lanes, while they are short.
    short, _, of_short = unique_rows(
        np.column_stack([columns, first_offset, rows[:, LogAccess.scattered]])
    )
    lanes, stride, first_offset, scattered = short[:, 2:].T
    numbers = np.arange(WARP_SIZE)
    # The lowest active lane, whose address is `first_offset`: its bit is a power of 2.
    leaders = np.log2((lanes & -lanes).astype(np.float64)).astype(np.int64)
    distances = (numbers - leaders[:, None]) * stride[:, None]
    single = scattered != NONE
    region = log.rows(log.head.scattered, ScatteredRow.WORDS)
    distances[single] = region[scattered[single]]
    is_active = (lanes[:, None] >> numbers) & 1
    offsets = np.where(is_active, first_offset[:, None] + distances, 0)
    distinct, _, of_distinct = unique_rows(np.concatenate([short[:, :3], offsets], axis=1))
    return distinct, of_distinct[of_short]
