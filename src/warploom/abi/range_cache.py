"""Lays out the range caches: inline caches by which compiled code checks and counts an access at
affine addresses with a few comparisons and one increment.

An affine access is a number of runs of lanes with one stride. Two accesses of one instruction, with
the same active lanes and the same pitches (the distances of the runs' first addresses from that of
the first run), differ by the address of the first run only. An entry holds, for a set of lanes and
pitches, the range of first addresses for which all active lanes are aligned and inside of one
allocation; a hit needs no bounds check. Costs depend on the first address modulo a unit
(`AccessRules.unit`, 128 or 256 bytes), so an entry has a counter for each offset in the unit, and
the host computes costs when counters are read (`machine.compiled.cache_costs`):

    ld.global.f32 %f1, [%rd1];     32 lanes, stride 4, an allocation of 1024 bytes at 4096
    entry: low = 4096, extent = 225 offsets at a stride of 4 bytes (the last is 4992 = 5120 - 128)
    %rd1 = 4228 in lane 0: hit, counter (4228 % 128) / 4 = 1 += 1

Lanes are looked up once per basic block: a kernel has a hash table of keys, each an active mask
and the number of the warp's layout, and numbers them as they occur. A cache has an entry for each
number: NO_SET never hits, for lanes without a key; FULL_SET is a full warp's; RETIRED_SETS hold the
counts of replaced entries; the others follow. The entries of all caches with one number lie
together, by number, so that a launch reads and clears only those that occurred:

    keys | their numbers | entries in use | headers of caches | number 0: entries of cache 0, 1, ...

The accesses of a group (`ir.access_groups`) share the check of the first access's cache.

Where the width of thread blocks is no multiple of 4, each lane can be a run of its own. Accesses at
unrelated addresses have no entries; `cost.pattern_table` memoises their costs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from warploom.core.lazy import cached_property
from warploom.isa.instruction import Instruction, Register, Space
from warploom.isa.kinds import ACCESSES_BY_LANE
from warploom.program.accesses import AccessRecord, bytes_of
from warploom.program.masked_loops import MaskedRegion, masked_regions
from warploom.program.program import Program
from warploom.program.regions import natural_loops, predecessors
from warploom.program.uses import reads, writes
from warploom.shapes.vector_shape import LANES
from warploom.shapes.warp_layout import RUNS as RUNS_OF
from warploom.shapes.warp_layout import WarpLayout
from warploom.simt.lane_counts import jitable
from warploom.simt.records import WordRecord, Words

BUCKET = 8
FEW_SETS, MANY_SETS = BUCKET, 32 * BUCKET
"""The number of keys of a kernel; the first is a full warp's. MANY_SETS, if warps have several
runs: at the edges of a grid parts of each run are off, and where the width of blocks is no power of
two warps have several layouts, up to 32; and where lanes leave loops at bounds that an outer loop
changes, so that each of its iterations ends a warp at another lane. Elsewhere few masks occur, and
a table of one bucket needs no hash. Keys are a hash table with buckets of BUCKET keys
(`bucket_of`)."""

NO_SET, FULL_SET, RETIRED_SETS, FIRST_SET = 0, 1, range(2, 4), 4
"""The numbers of lane sets: of lanes without a key, whose entries never hit; of a full warp; of
entries that hold the counts of replaced ones; and of the first key that occurs beside a full
warp's."""

LAYOUT_SHIFT = 32
"""A key is the active mask, and from this bit on the number of the warp's layout."""

MASK_FACTOR, LAYOUT_FACTOR, HASH_SHIFT = 40503, 27449, 9
"""The constants of the hash of keys: odd factors of 16 bits, and the shift of the product."""

STEP_AT = LANES
"""The index of the stride in the array of addresses that code passes to `fill_range_cache`: first
addresses of up to 32 runs, then the stride in each run, if it is found at run time."""

ANY_STRIDE = 1 << 48
"""The value for a stride that code finds at run time; no real stride is as long."""


class RangeCacheHeader(WordRecord):
    """The begin of a cache."""

    leader: int  # the offset of the header of the group's first access, 0 while unused
    runs: int  # the number of runs of its addresses
    offset: int  # the access's address minus that of the group's first access, in bytes


class RangeCacheEntry(WordRecord):
    """An entry, which hits if the first run begins at one of `extent` addresses: `low`, `low` +
    size, ..., where `size` is the bytes that a lane accesses.

    After the pitches, from `safe_pitches_at` on: pitches again, but a run without active lanes has
    the pitch of an active run, so that an unmasked load reads inside of the allocation (where each
    lane is a run, `pitches` extend over these words). From `counts_at` on: the accesses of the
    whole group, by the first address within the unit, in elements. In the cache of a later access
    of a group, these are the accesses that it has beyond the group's."""

    key: int  # 0 while unused
    low: int
    extent: int
    # A mask of the bits of the first address that decide costs: the address within the unit; or
    # only the bits below `size`, where all lanes of a run have one address and the distances of
    # runs are multiples of the unit.
    within: int
    first_address: int  # the first address when the entry was made
    misses: int  # accesses by the same lanes with other pitches
    # The stride in each run; where each lane is a run, the stride from lane to lane if there is
    # one, else 0.
    step: int
    pitches: Annotated[Words, 0]  # distances of the runs from the first, in bytes


GIVEN_UP = 1 << 40
"""The `misses` of an entry that is not to be replaced any more: accesses with other pitches do not
recur, or alternate, so that an entry for them would not pay."""


@dataclass(frozen=True)
class RangeCacheLayout:
    """Holds the offsets of a kernel's caches.

    `unit`: that of `AccessRules`, in bytes. `runs`: the number of pitches of an entry. `sets`: the
    number of keys. `headers`: the offset of a cache's header by access record, in words from the
    first key. `entries`: the offset of a cache's entry by access record, in words from the first
    entry with the same number. `sizes`: the bytes that a lane accesses, by access record.
    `set_words`: the words of all entries of one number.
    """

    unit: int
    runs: int
    sets: int
    headers: dict[int, int]
    entries: dict[int, int]
    sizes: dict[int, int]
    set_words: int

    @classmethod
    def of(
        cls, program: Program, records: Sequence[AccessRecord], unit: int, warp_layout: WarpLayout
    ) -> RangeCacheLayout:
        """Returns the layout for a program's plain loads and stores to global, shared, constant and
        local memory, in launches whose warps have that layout of threads. `records` are the
        program's access records, `unit` is that of `AccessRules`. Has MANY_SETS keys if a warp has
        several runs, or if an outer loop changes the bounds at which lanes leave an inner one
        (`_has_changing_bounds`), else FEW_SETS."""
        headers: dict[int, int] = {}
        entries: dict[int, int] = {}
        sizes: dict[int, int] = {}
        runs = min(RUNS_OF[warp_layout], LANES // 2)
        sets = FEW_SETS if runs == 1 and not _has_changing_bounds(program) else MANY_SETS
        set_words = 0
        for number, record in enumerate(records):
            instruction = program.instructions[record.instruction]
            plain = instruction.operation.kind in ACCESSES_BY_LANE
            if plain and record.space in (Space.GLOBAL, Space.SHARED, Space.CONST, Space.LOCAL):
                headers[number] = headers_at(sets) + len(headers) * RangeCacheHeader.WORDS
                entries[number], sizes[number] = set_words, bytes_of(instruction)
                set_words += entry_words(unit, sizes[number], runs)
        return cls(unit, runs, sets, headers, entries, sizes, set_words)

    @cached_property
    def record_of_header(self) -> dict[int, int]:
        """Returns the access record whose cache has its header at an offset."""
        return {offset: record for record, offset in self.headers.items()}

    @cached_property
    def entries_at(self) -> int:
        """Returns the offset, in words from the first key, of the entries with number 0."""
        return headers_at(self.sets) + len(self.headers) * RangeCacheHeader.WORDS

    @property
    def size(self) -> int:
        """Returns the words of keys and caches."""
        return self.entries_at + (FIRST_SET + self.sets) * self.set_words

    def used_words(self, words: npt.NDArray[np.int64]) -> int:
        """Returns how many of the words of keys and caches may differ from 0: those up to the last
        number in use. `words` begin at the first key."""
        return self.entries_at + int(words[used_at(self.sets)]) * self.set_words

    def entries_of(self, record: int, words: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Returns a view of the entries in use of an access record's cache, shape (entries, words
        of an entry). `words` begin at the first key."""
        return self.entries_by_number(words)[:, self._columns[record]]

    def entries_by_number(self, words: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Returns a view of the entries in use of all caches, a row for each number. `words` begin
        at the first key."""
        return words[self.entries_at : self.used_words(words)].reshape(-1, self.set_words)

    @cached_property
    def _columns(self) -> dict[int, slice]:
        """Returns the words of an entry among those of its number, by access record."""
        return {r: slice(start, start + self.entry(r)) for r, start in self.entries.items()}

    @cached_property
    def counts(self) -> int:
        """Returns the offset, in words from the start of an entry, at which its counts begin."""
        return counts_at(self.runs)

    def entry(self, record: int) -> int:
        """Returns the number of words of an entry in an access record's cache; the record must have
        one (`entries`)."""
        return entry_words(self.unit, self.sizes[record], self.runs)

    def invalidate(self, words: npt.NDArray[np.int64]) -> None:
        """Makes all entries miss, by an extent of 0; their counts stay. `words` begin at the first
        key."""
        for record in self.entries:
            self.entries_of(record, words)[:, RangeCacheEntry.extent] = 0


def _has_changing_bounds(program: Program) -> bool:
    """Returns whether an outer loop writes the bounds (`_bounds`) of a loop that lanes leave
    separately, in a masked region inside of it:

        for (d = 0; d < n; d++)                the outer loop writes d
            for (i = tid; i < d; i += 32)      lanes leave at the bound d

    In each iteration of the outer loop other lanes leave first. So other active masks occur, each
    of which is a key."""
    loops = {
        header: frozenset(blocks)
        for header, blocks in natural_loops(program, predecessors(program)).items()
    }
    around = defaultdict[int, list[frozenset[int]]](list)
    for loop in loops.values():
        for block in loop:
            around[block].append(loop)
    return any(
        not _bounds(program, inner, region).isdisjoint(_written(program, outer - inner))
        for region in masked_regions(program)
        for outer in around[min(region.blocks)]
        if region.blocks < outer
        for inner in map(loops.__getitem__, region.blocks & loops.keys())
        if inner <= region.blocks
    )


def _bounds(program: Program, loop: frozenset[int], region: MaskedRegion) -> frozenset[Register]:
    """Returns the bounds of `loop` where lanes leave a region from it: the registers read by its
    instructions that write the guards of these exits, but for those that the loop writes."""
    ends = [program.instructions[program.blocks[b].stop - 1] for b in region.exits & loop]
    guards = {end.guard.register for end in ends if end.guard is not None}
    compared = (
        instruction
        for instruction in _instructions_of(program, loop)
        if not guards.isdisjoint(writes(instruction))
    )
    registers = frozenset(register for instruction in compared for register in reads(instruction))
    return registers - _written(program, loop)


def _written(program: Program, blocks: Iterable[int]) -> frozenset[Register]:
    """Returns the registers that the instructions of blocks write."""
    return frozenset(
        register
        for instruction in _instructions_of(program, blocks)
        for register in writes(instruction)
    )


def _instructions_of(program: Program, blocks: Iterable[int]) -> Iterator[Instruction]:
    """Yields the instructions of blocks, in program order."""
    for block in sorted(blocks):
        yield from program.instructions[program.blocks[block].start : program.blocks[block].stop]


@jitable
def used_at(sets: int) -> int:
    """Returns the offset, in words from the first of `sets` keys, of the number of entries in use:
    it follows the keys, their numbers, and NO_SET, the number of lanes without a key."""
    return 2 * sets + 1


@jitable
def headers_at(sets: int) -> int:
    """Returns the offset, in words from the first of `sets` keys, of the headers of caches."""
    return used_at(sets) + 1


@jitable
def bucket_of(key: int, sets: int) -> int:
    """Returns the index of the first key of a key's bucket (a hash of its active mask and layout),
    in a table of `sets` keys, a power of two."""
    mask, layout = key & 0xFFFFFFFF, key >> LAYOUT_SHIFT
    # Multiplicative hash of the mask's halves and the layout. `sets` is a power of two, so that
    # `& sets - 1` (which binds last) is the remainder.
    folded = (mask ^ mask >> 16) & 0xFFFF
    return (folded * MASK_FACTOR + layout * LAYOUT_FACTOR >> HASH_SHIFT) * BUCKET & sets - 1


@jitable
def safe_pitches_at(runs: int) -> int:
    """Returns the offset in words, in an entry with `runs` pitches, of the pitches at which
    unmasked loads are safe, which follow those in `pitches` (see `RangeCacheEntry`)."""
    return RangeCacheEntry.WORDS + runs


@jitable
def counts_at(runs: int) -> int:
    """Returns the offset in words of the counts in an entry with `runs` pitches, after both lists
    of pitches."""
    return RangeCacheEntry.WORDS + 2 * runs


@jitable
def entry_words(unit: int, size: int, runs: int) -> int:
    """Returns the number of words of an entry with `runs` pitches, for accesses of `size` bytes a
    lane: its counts, at the end, are `unit // size` words."""
    return counts_at(runs) + unit // size
