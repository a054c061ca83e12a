"""Finds the shapes of registers again, of which code for lanes that have parted kept every lane."""

from __future__ import annotations

from typing import Any

LANES_AT, LANE_BITS, SIZE, SHAPED_AT, STEP_BITS, WRITTEN_BITS, RUNS, STRIDE = range(8)
"""The words of an entry: where in the context lanes stand, how far from each other, and the bits of
a value; where the values of the shape go, how far from each other, and in how many bits; the runs
of lanes, and by how much lanes of a run follow each other. Places are in bits."""

ENTRY_WORDS = STRIDE + 1

_LANES = 32


def reshape_registers(context: Any, table: Any, count: int, active: int) -> int:
    """Puts the first values of each run where code for all lanes together reads a register by its
    shape, for `count` entries of `table`, by the `active` lanes of each run.

    Returns 1 where all active lanes are as the shapes say.
    """
    holds = 1
    for entry in range(count):
        at = entry * ENTRY_WORDS
        size, length = table[at + SIZE], _LANES // table[at + RUNS]
        wanted = -1 if size == 64 else (1 << size) - 1
        for run in range(table[at + RUNS]):
            first = 0
            found = False
            for step in range(length):
                lane = run * length + step
                if (active >> lane) & 1 == 0:
                    continue
                bit = table[at + LANES_AT] + lane * table[at + LANE_BITS]
                value = (context[bit >> 6] >> (bit & 63)) - step * table[at + STRIDE]
                if not found:
                    first, found = value & wanted, True
                elif (value ^ first) & wanted != 0:
                    holds = 0
            bit = table[at + SHAPED_AT] + run * table[at + STEP_BITS]
            written = table[at + WRITTEN_BITS]
            kept = -1 if written == 64 else (1 << written) - 1
            others = context[bit >> 6] & ~(kept << (bit & 63))
            context[bit >> 6] = others | ((first & kept) << (bit & 63))
    return holds
