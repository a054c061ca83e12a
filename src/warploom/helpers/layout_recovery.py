"""Recovers the affine form of registers (first values and a stride) from their 32 lanes, after
diverged lanes have reconverged.

Code for diverged lanes stores registers lane by lane; convergent code reads the first value of each
run and a constant stride. A helper verifies at run time that the lanes still have the stride, and
writes the first values:

    32 lanes 8, 12, 16, ..   runs 1, stride 4   ->   first value 8, returns 1
    32 lanes 8, 12, 12, ..   runs 1, stride 4   ->   returns 0: code stays in the divergent copy"""

from __future__ import annotations

from typing import Any

LANES_AT, LANE_BITS, SIZE, SHAPED_AT, STEP_BITS, WRITTEN_BITS, RUNS, STRIDE = range(8)
"""The words of a table entry, one for each register. Offsets are in bits from the context's begin.

LANES_AT, LANE_BITS: the offset of lane 0 and the distance of two lanes; SIZE: the bits of a value.
SHAPED_AT, STEP_BITS: the offset of the first run's value and the distance of two runs' values;
WRITTEN_BITS: the bits to write for each. RUNS: the number of runs of lanes; STRIDE: the difference
of two lanes of a run."""

ENTRY_WORDS = STRIDE + 1

_LANES = 32
_WORD_SHIFT, _BIT_IN_WORD = 6, 63
"""A bit's number as that of its 64-bit word, and its place in that."""


def reshape_registers(context: Any, table: Any, count: int, active: int) -> int:
    """Writes the first value of each run of `count` registers to the slots of `context` that
    convergent code reads, computed from the run's lowest lane among the bits of `active`; 0 for a
    run without active lanes.

    Returns 1 if all active lanes have the registers' strides, else 0; the values are written in
    either case. `table` has an entry for each register (LANES_AT)."""
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
                # No value crosses a word: sizes are powers of two, and offsets multiples of them.
                bit = table[at + LANES_AT] + lane * table[at + LANE_BITS]
                distance = step * table[at + STRIDE]
                value = (context[bit >> _WORD_SHIFT] >> (bit & _BIT_IN_WORD)) - distance
                if not found:
                    first, found = value & wanted, True
                elif (value ^ first) & wanted != 0:
                    holds = 0
            bit = table[at + SHAPED_AT] + run * table[at + STEP_BITS]
            written = table[at + WRITTEN_BITS]
            kept = -1 if written == 64 else (1 << written) - 1
            others = context[bit >> _WORD_SHIFT] & ~(kept << (bit & _BIT_IN_WORD))
            context[bit >> _WORD_SHIFT] = others | ((first & kept) << (bit & _BIT_IN_WORD))
    return holds
