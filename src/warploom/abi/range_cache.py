"""The access caches of compiled code: what is known of accesses at addresses with a shape.

An access by a set of lanes whose runs lie to each other as in an earlier one differs from that one
only by where its first run begins. A cache says, for a set of lanes and the pitches of the runs
(how far each begins behind the first), where the first run may begin so that all lanes are inside
of one allocation, and counts accesses by that place in the unit beyond which the device's rules do
not look (`AccessRules.unit`). What those cost is for the host to say
(`machine.compiled.cache_costs`).

Which lanes they are is found once in a basic block: a kernel has a table of some keys, each a mask
and the layout of the warp's threads; each cache has an entry for every key, one more, that never
holds, for lanes without a key, and some that only keep what was counted by entries which others
have replaced. Accesses that are known together, a group, use the cache of the first of them.

Where a block is not 4 threads wide or a multiple of that, each lane can be a run of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warploom.analysis.shape_transfer import RUNS as RUNS_OF
from warploom.analysis.shape_transfer import WarpLayout
from warploom.analysis.vector_shape import LANES
from warploom.program.accesses import AccessRow, bytes_of
from warploom.program.program import Program
from warploom.ptx.ir import Space
from warploom.simt.lane_counts import jitable

BUCKET = 8
FEW_SETS, MANY_SETS = BUCKET, 16 * BUCKET
MOST_RUNS_OF_FEW = 8
"""Sets of lanes of which a kernel's caches know; the first is that of all lanes of a warp. MANY
where warps are more runs: then they have up to 32 layouts, and at the edges of a grid parts of
each. A key is one of the BUCKET in its bucket (`bucket_of`)."""

RETIRED = 2
"""Entries of a cache that keep the counts of replaced ones."""

LAYOUT_SHIFT = 32
"""A key holds the mask and, from this bit on, the layout of the warp."""

MASK_FACTOR, LAYOUT_FACTOR, HASH_SHIFT = 40503, 27449, 9
"""Odd factors of 16 bits that spread keys over buckets."""

STEP_AT = LANES
"""What code says of the addresses of a group: where up to 32 runs begin, then by how much lanes
follow in each run where that is not known before."""

ANY_STRIDE = 1 << 48
"""Stands for the stride of accesses whose lanes follow, in each run, by a step that is known as
code runs. No stride is as long."""

LEADER, RUNS, AHEAD, HEADER = range(4)
"""What a cache begins with: where the cache of its group's first access stands, 0 as long as
nothing is known; the runs of its addresses; how many bytes it lies behind the first access of the
group."""

KEY, LOW, EXTENT, WITHIN, FIRST, MISSES, STEP, PITCHES = range(8)
"""An entry: its key, 0 while it is not in use; the first run begins at LOW or one of the next
places, ROOM in all, each as far behind the last as a lane accesses bytes; the bits of its address
that decide about costs: those of its place in the unit, or none but of what must be 0, where runs
of equal addresses lie whole units apart; where the first run of the first access began as the entry
was made; how many accesses by the same lanes had other pitches; by how much lanes follow in each
run, or from lane to lane where each is a run and they do (else 0); the pitches; from
`safe_at` on the same, but for runs of which no lane is on, which have that of one with some, so
that whoever reads there reads inside of the allocation (where each lane is a run, pitches take that
room); and from `counts_at` on, by the place of the first run in the unit, in elements, how many
accesses of the whole group there were. An access that is not the first of its group has there how
many it has more than the group."""

GIVEN_UP = 1 << 40
"""The MISSES of an entry whose place no other pitches are to take any more: they never come
again."""


@dataclass(frozen=True)
class CacheLayout:
    """Places caches: `places` by row, in words from the keys on; `sizes` are the bytes that a
    lane accesses, by row; `unit` is that of `AccessRules`, `runs` for how many an entry has room,
    `sets` how many keys there are, `size` the words of all."""

    unit: int
    runs: int
    sets: int
    places: dict[int, int]
    sizes: dict[int, int]
    size: int

    @classmethod
    def of(
        cls, program: Program, rows: Sequence[AccessRow], unit: int, warp_layout: WarpLayout
    ) -> CacheLayout:
        """Returns the layout of a program's caches, in launches of whose warps that is the
        formation: of the loads and stores that may have one."""
        places: dict[int, int] = {}
        sizes: dict[int, int] = {}
        runs = min(RUNS_OF[warp_layout], LANES // 2)
        sets = FEW_SETS if runs <= MOST_RUNS_OF_FEW else MANY_SETS
        end = sets
        for number, row in enumerate(rows):
            instruction = program.instructions[row.instruction]
            plain = instruction.operation.name in ("ld", "ldu", "st")
            if plain and row.space in (Space.GLOBAL, Space.SHARED, Space.CONST, Space.LOCAL):
                places[number], sizes[number] = end, bytes_of(instruction)
                end += HEADER + entries_of(sets) * entry_words(unit, sizes[number], runs)
        return cls(unit, runs, sets, places, sizes, end)

    @property
    def counts(self) -> int:
        """Return where in an entry its counts begin."""
        return counts_at(self.runs)

    def entry(self, row: int) -> int:
        """Returns the words of one entry of a row's cache."""
        return entry_words(self.unit, self.sizes[row], self.runs)

    def entry_capacities(self) -> list[int]:
        """Returns the words in which entries say where they hold; 0 there empties an entry."""
        return [
            place + HEADER + number * self.entry(row) + EXTENT
            for row, place in self.places.items()
            for number in range(self.sets)
        ]


@jitable
def entries_of(sets: int) -> int:
    """Return how many entries a cache has."""
    return sets + 1 + RETIRED


@jitable
def bucket_of(key: int, sets: int) -> int:
    """Return the number of the first key that stands where a key among so many has to."""
    mask, layout = key & 0xFFFFFFFF, key >> LAYOUT_SHIFT
    folded = (mask ^ mask >> 16) & 0xFFFF
    return (folded * MASK_FACTOR + layout * LAYOUT_FACTOR >> HASH_SHIFT) * BUCKET & sets - 1


@jitable
def safe_at(runs: int) -> int:
    """Return where in an entry with so many pitches those stand that are safe to read at."""
    return PITCHES + runs


@jitable
def counts_at(runs: int) -> int:
    """Return where in an entry with so many pitches its counts begin."""
    return PITCHES + 2 * runs


@jitable
def entry_words(unit: int, size: int, runs: int) -> int:
    """Returns the words of one entry with so many pitches, for accesses of `size` bytes a lane."""
    return counts_at(runs) + unit // size
