"""Recovers the affine form of registers (first values and a stride) from their 32 lanes, after
diverged lanes have reconverged.

Code for diverged lanes stores registers lane by lane; convergent code reads the first value of each
run and a constant stride. A helper verifies at run time that the lanes still have the stride, and
writes the first values:

    32 lanes 8, 12, 16, ..   runs 1, stride 4   ->   first value 8, returns 1
    32 lanes 8, 12, 12, ..   runs 1, stride 4   ->   returns 0: code stays in the divergent copy"""

from __future__ import annotations

from typing import Any

from warploom.simt.records import WordRecord


class ShapedRegister(WordRecord):
    """A register in the table. Offsets are in bits from the context's begin."""

    lanes_at: int  # the offset of lane 0
    lane_bits: int  # the distance of two lanes
    size: int  # the bits of a value
    shaped_at: int  # the offset of the first value
    step_bits: int  # the distance of two values
    written_bits: int  # the bits to write for each
    values: int  # each the first one of a run, or of equal runs that follow each other
    length: int  # the lanes of a run
    stride: int  # the difference of two lanes of a run


_LANES = 32
_WORD_SHIFT, _BIT_IN_WORD = 6, 63
"""A bit's number as that of its 64-bit word, and its index in that."""


def reshape_registers(context: Any, table: Any, count: int, active: int) -> int:
    """Writes the first value of each run (one for equal runs) of `count` registers to the slots of
    `context` that convergent code reads, computed from its lowest lane among the bits of `active`;
    0 for a run without active lanes.

    Returns 1 if all active lanes have the registers' strides, else 0; the values are written in
    either case. `table` has a `ShapedRegister` for each."""
    holds = 1
    for entry in range(count):
        register = ShapedRegister(table, 0, entry)
        size, part = register.size, _LANES // register.values
        wanted = -1 if size == 64 else (1 << size) - 1
        for number in range(register.values):
            first = 0
            has_first = False
            for step in range(part):
                lane = number * part + step
                if (active >> lane) & 1 == 0:
                    continue
                # No value crosses a word: sizes are powers of two, and offsets multiples of them.
                bit = register.lanes_at + lane * register.lane_bits
                distance = step % register.length * register.stride
                value = (context[bit >> _WORD_SHIFT] >> (bit & _BIT_IN_WORD)) - distance
                if not has_first:
                    first, has_first = value & wanted, True
                elif (value ^ first) & wanted != 0:
                    holds = 0
            bit = register.shaped_at + number * register.step_bits
            written = register.written_bits
            retained = -1 if written == 64 else (1 << written) - 1
            others = context[bit >> _WORD_SHIFT] & ~(retained << (bit & _BIT_IN_WORD))
            context[bit >> _WORD_SHIFT] = others | ((first & retained) << (bit & _BIT_IN_WORD))
    return holds
