"""The access caches of compiled code: what is known of accesses at addresses with a shape.

An access by a set of lanes whose runs lie to each other as in an earlier one differs from that one
only by where its first run begins. A cache says, for a set of lanes and the pitches of the runs
(how far each begins behind the first), where the first run may begin so that all lanes are inside
of one allocation, and counts accesses by that place in the unit beyond which the device's rules do
not look (`AccessRules.unit`). What those cost is for the host to say (`machine.repeats`).

Which lanes they are is found once in a basic block: a kernel has a table of at most SETS keys, each
a mask and the layout of the warp's threads; each cache has an entry for every key, one more, that
never holds, for lanes without a key, and some that only keep what was counted by entries which
others have replaced. Accesses that are known together, a group, use the cache
of the first of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warploom.analysis.accesses import AccessRow, bytes_of
from warploom.analysis.program import Program
from warploom.ptx.ir import Space

SETS = 8
"""Sets of lanes of which a kernel's caches know; the first is that of all lanes of a warp."""

RETIRED = 2
"""Entries of a cache that keep the counts of replaced ones."""

LAYOUT_SHIFT = 32
"""A key holds the mask and, from this bit on, the layout of the warp."""

MOST_RUNS = 8
MOST_STRIDES = 3
STEP_AT = MOST_RUNS + MOST_STRIDES
"""So many strides are remembered of a group whose addresses walk (`codegen.walks`)."""

ANY_STRIDE = 1 << 48
"""Stands for the stride of accesses whose lanes follow, in each run, by a step that is known as
code runs. No stride is as long."""

LEADER, RUNS, AHEAD, LAPS = range(4)
HEADER = LAPS + MOST_STRIDES
"""What a cache begins with: where the cache of its group's first access stands, 0 as long as
nothing is known; the runs of its addresses; how many bytes it lies behind the first access of the
group, and how often each of the group's strides."""

KEY, LOW, ROOM, WITHIN, FIRST, MISSES, STEP, STRIDES = range(8)
PITCHES = STRIDES + MOST_STRIDES
SAFE = PITCHES + MOST_RUNS
COUNTS = SAFE + MOST_RUNS
"""An entry: its key, 0 while it is not in use; the first run begins at LOW or less than ROOM bytes
behind it; the bits of its address that decide about costs: those of its place in the unit, or none
but of what must be 0, where runs of equal addresses lie whole units apart; where the first run of
the first access began as the entry was made; how many accesses by the same lanes had other pitches;
by how much lanes follow in each run; the strides; the pitches; from SAFE on the same, but for runs
of which no lane is on, which have that of one with some, so that whoever reads there reads inside
of the allocation; and by the place of the first run in the unit, in elements, how many accesses of
the whole group there were. An access that is not the first of its group has there how many it has
more than the group."""

ENTRIES = SETS + 1 + RETIRED


@dataclass(frozen=True)
class CacheLayout:
    """Places caches: `places` by row, in words from the keys on; `sizes` are the bytes that a
    lane accesses, by row; `unit` is that of `AccessRules`, `size` the words of all."""

    unit: int
    places: dict[int, int]
    sizes: dict[int, int]
    size: int

    @classmethod
    def of(cls, program: Program, rows: Sequence[AccessRow], unit: int) -> CacheLayout:
        """Returns the layout of a program's caches: of the loads and stores that may have one."""
        places: dict[int, int] = {}
        sizes: dict[int, int] = {}
        end = SETS
        for number, row in enumerate(rows):
            made = program.instructions[row.instruction]
            plain = made.operation.name in ("ld", "ldu", "st")
            if plain and row.space in (Space.GLOBAL, Space.SHARED, Space.CONST, Space.LOCAL):
                places[number], sizes[number] = end, bytes_of(made)
                end += HEADER + ENTRIES * entry_words(unit, sizes[number])
        return cls(unit, places, sizes, end)

    def entry(self, row: int) -> int:
        """Returns the words of one entry of a row's cache."""
        return entry_words(self.unit, self.sizes[row])

    def rooms(self) -> list[int]:
        """Returns the words in which entries say where they hold; 0 there empties an entry."""
        return [
            place + HEADER + number * self.entry(row) + ROOM
            for row, place in self.places.items()
            for number in range(SETS)
        ]


def entry_words(unit: int, size: int) -> int:
    """Returns the words of one entry for accesses of `size` bytes a lane."""
    return COUNTS + unit // size
