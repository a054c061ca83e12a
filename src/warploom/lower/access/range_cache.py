"""Emits lookups in range caches (`abi.range_cache`): inline caches of address ranges, which guard
an access and count it.

An entry holds, for one lane set, the range of base addresses for which every active lane is inside
of one allocation. A hit costs a few comparisons and one increment:

    offset = rotate(base - low, log2(size)); hit = offset < extent
    entry.counts[(base & within) / size] += 1

with one counter for each offset in the unit (128 or 256 bytes) beyond which costs do not depend on
the address; `machine.compiled.cache_costs` evaluates them later. Misses fill the entry
(`range_cache_filling`).
"""

from __future__ import annotations

from functools import reduce

from llvmlite import ir

from warploom.abi.range_cache import RangeCacheEntry, RangeCacheHeader, safe_pitches_at
from warploom.helpers.calls import call
from warploom.ir.access_plans import Move
from warploom.llvm.lanes import I1, I32, I64, Value
from warploom.lower.access.groups import GroupValues
from warploom.lower.access.lane_sets import FULL_WARP, LaneSet, LaneSets
from warploom.lower.access.memory import MemoryCode
from warploom.lower.access.range_cache_filling import RangeCacheFilling


class RangeCache:
    """Emits lookups and counts in range caches at the current insertion point. The range cache of
    an access group has an entry for each lane set (active mask and thread layout): the range of
    base addresses that hit, the distances of lane runs (pitches), and counters. `sets` looks up
    lane sets, whose numbers select entries."""

    def __init__(self, memory: MemoryCode) -> None:
        """Creates the lookup of lane sets and the filling of entries; emits nothing."""
        self.memory, self.storage = memory, memory.storage
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b
        self._layout = self.frame.layout.caches
        self._begin = self.frame.layout.caches_at
        self.sets = LaneSets(self.frame)
        self._filling = RangeCacheFilling(memory, self.sets)

    def hits(self, group: GroupValues, lane_set: LaneSet) -> Value:
        """Emits the lookup of a group, whose base addresses (`GroupBases`) are set, in the entry of
        a lane set. Returns true (an i1) if its base address is in the entry's range and its
        pitches, and a step found at run time, are the entry's: then all accesses are aligned and
        inside of an allocation. Also does `set_counter` for the counter that the address has in the
        entry, whether it hits or not, and computes `group.splits_pairs` for moves of pairs."""
        b = self.b
        entry = self._entry(group, lane_set)
        counter = b.lshr(
            self._counted_offset(entry, group), I64(group.access_type.size.bit_length() - 1)
        )
        self.set_counter(group, lane_set, counter)
        if group.plan.move is Move.PAIRS:
            # Here, where it dominates the other accesses of the block, and not in the move after
            # the guard: LLVM computes it once.
            group.splits_pairs = self.lanes.splits_pairs(b.trunc(lane_set.key, I32))
        holds = self._is_in_range(entry, group)
        if group.accesses.is_laid_out:
            # A batch of iterations may have filled the cache for longer runs.
            same_runs = b.icmp_unsigned("==", self._cached_runs(group), I64(group.base.runs))
            holds = b.and_(holds, same_runs)
        elif group.step is not None:
            same_step = b.icmp_unsigned("==", group.step, self._word(entry, RangeCacheEntry.step))
            holds = b.and_(holds, same_step)
        # Runs with one value for all have the same address wherever code makes an entry here:
        # their pitches are 0.
        if group.base.width == 1:
            return holds
        # A block of its own, in which the vectors are compared by one instruction: LLVM would carry
        # them to a block for the second of two conditions.
        before = b.block
        with b.if_then(holds, likely=True):
            has_pitches = self._has_pitches(entry, group)
            compared = b.block
        hit = b.phi(I1)
        hit.add_incoming(I1(0), before)
        hit.add_incoming(has_pitches, compared)
        return hit

    def set_counter(self, group: GroupValues, lane_set: LaneSet, counter: Value) -> None:
        """Chooses the counter in which code emitted later counts accesses of a group, number
        `counter` (an i64) in the lane set's entry: sets its address, `group.counter`, and
        `counter_key`; emits no store. Loads as well what moves read after a hit: `group.step` where
        each lane is a run; else, with several runs, `first_vector` and `safe_firsts`. Where whole
        runs are read without a mask, runs without active lanes have the address of a run with
        some there."""
        group.counter = self._count_at(self._leader(group), lane_set.number, counter)
        group.counter_key = lane_set.number, counter
        if group.accesses.is_laid_out:
            group.step = self._word(self._entry(group, lane_set), RangeCacheEntry.step)
        elif group.base.width > 1:
            entry = self._entry(group, lane_set)
            # Some lanes of a run may be off. If all its lanes have one address, or are a pair that
            # is moved as one element, a run without active lanes can be read at another run's
            # address, so the load needs no mask: a masked gather is a branch for each element.
            whole = group.step is None and (group.base.stride == 0 or group.plan.move is Move.PAIRS)
            safe = whole and not lane_set.is_full
            group.first_vector = self._safe_addresses(entry, group) if safe else group.bases
            runs = range(group.base.width)
            group.safe_firsts = [self.lanes.lane(group.first_vector, run) for run in runs]

    def _is_in_range(
        self, entry: Value, group: GroupValues, distance: Value | None = None
    ) -> Value:
        """Returns true (an i1) if the base address of a group's first run, plus `distance` bytes
        (an i64), is aligned and in the entry's range."""
        b, shift = self.b, group.access_type.size.bit_length() - 1
        offset = b.sub(group.firsts[0], self._word(entry, RangeCacheEntry.low))
        if distance is not None:
            offset = b.add(offset, distance)
        # A rotation moves the low bits of a misaligned offset to the top, so one unsigned
        # comparison checks both bounds and alignment.
        if shift:
            around = [offset, offset, I64(shift)]
            offset = self.lanes.intrinsic("llvm.fshr.i64", I64, around)
        return b.icmp_unsigned("<", offset, self._word(entry, RangeCacheEntry.extent))

    def hits_until(self, group: GroupValues, distance: Value) -> Value:
        """Returns true (an i1) if a group of all lanes hits in the full warp's entry, both at its
        base address and `distance` bytes (an i64) after it, and so everywhere between. As `hits`,
        does `set_counter` for the counter of its base address."""
        # Both ends: the pitches and the step that `hits` compares are equal in all warps, so that
        # only the range has to be tested again.
        hit = self.hits(group, FULL_WARP)
        last = self._is_in_range(self._entry(group, FULL_WARP), group, distance)
        return self.b.and_(hit, last)

    def retains_counter(self, group: GroupValues, step: Value) -> Value:
        """Returns true (an i1) if an access of all lanes `step` bytes (an i64) after the group's
        base uses the same counter: the step has none of the address bits (`within` of the full
        warp's entry) on which costs depend."""
        b = self.b
        # `within` has bits of the unit alone: where LLVM can prove that a step is a multiple of the
        # unit, the comparison folds to true.
        in_unit = b.and_(step, I64(self._layout.unit - 1))
        within = self._word(self._entry(group, FULL_WARP), RangeCacheEntry.within)
        return b.icmp_unsigned("==", b.and_(in_unit, within), I64(0))

    def allowed_window(self, group: GroupValues, lane_set: LaneSet) -> tuple[Value, Value, Value]:
        """Returns, for a batch of loop iterations, the byte offset of a group's base from the first
        base that the group's entry allows, and the offset of the last base that it allows from the
        first. Returns as well an i1 that is true if the entry allows this base and is for the same
        stride, number of lane runs and pitches."""
        b, entry = self.b, self._entry(group, lane_set)
        offset = b.sub(group.firsts[0], self._word(entry, RangeCacheEntry.low))
        size = I64(group.access_type.size)
        last = b.mul(b.sub(self._word(entry, RangeCacheEntry.extent), I64(1)), size)
        holds = [
            b.icmp_signed(">=", offset, I64(0)),
            b.icmp_signed("<=", offset, last),
            b.icmp_unsigned("==", b.and_(offset, b.sub(size, I64(1))), I64(0)),
            b.icmp_unsigned("==", self._word(entry, RangeCacheEntry.step), I64(group.base.stride)),
            b.icmp_unsigned("==", self._cached_runs(group), I64(group.base.runs)),
        ]
        if group.base.runs > 1:
            holds.append(self._has_pitches(entry, group))
        return offset, last, reduce(b.and_, holds)

    def count_batch(self, group: GroupValues, lane_set: LaneSet, step: Value, times: Value) -> None:
        """Counts `times` accesses (an i64) of every member of a group, in a batch of iterations:
        the first at the group's base, each further one `step` bytes after the one before. One
        addition if all have one counter, else the helper `count_strided`."""
        b, entry = self.b, self._entry(group, lane_set)
        within, counter_key = (
            self._word(entry, RangeCacheEntry.within),
            self._counted_offset(entry, group),
        )
        counts = self._count_at(self._leader(group), lane_set.number, I64(0))
        shift = I64(group.access_type.size.bit_length() - 1)
        # If the step does not change the bits on which costs depend, all iterations use one
        # counter.
        same_counter = b.icmp_unsigned("==", b.and_(step, within), I64(0))
        with b.if_else(same_counter, likely=True) as (together, different_counters):
            with together:
                self.lanes.add_to(self.lanes.slot(counts, b.lshr(counter_key, shift)), times)
            with different_counters:
                call(self.lanes, "count_strided", counts, counter_key, step, within, shift, times)

    def _cached_runs(self, group: GroupValues) -> Value:
        """Emits a load of the number of lane runs of the addresses for which a group's range cache
        has been filled, from the cache's header."""
        at = self._begin + self._layout.headers[self._leader(group)] + RangeCacheHeader.runs
        return self.lanes.b.load(self.lanes.slot(self.frame.records, at), typ=I64)

    def _counted_offset(self, entry: Value, group: GroupValues) -> Value:
        """Returns the bits of the first member's address, in the first run, on which the group's
        cost depends (the entry's `within`); divided by the size of an access they number a
        counter."""
        offset = group.members[0][1]
        counter_key = self.b.add(group.firsts[0], I64(offset)) if offset else group.firsts[0]
        return self.b.and_(counter_key, self._word(entry, RangeCacheEntry.within))

    def _has_pitches(self, entry: Value, group: GroupValues) -> Value:
        """Returns true (an i1) if the distance of each lane run's base address from the first run's
        (pitch) is that of the entry.
        """
        b, runs, first_base = self.b, group.base.runs, group.firsts[0]
        bases = self.lanes.expand(group.bases, runs)
        # One scalar comparison: the first run's distance from itself is 0.
        if runs == 2:
            second_pitch = b.sub(self.lanes.lane(bases, 1), first_base)
            return b.icmp_unsigned(
                "==", second_pitch, self._word(entry, RangeCacheEntry.pitches + 1)
            )
        type = ir.VectorType(I64, runs)
        hit = b.load(self.lanes.slot(entry, RangeCacheEntry.pitches), typ=type, align=8)
        return self.lanes.are_zero(b.xor(b.sub(bases, self.lanes.splat(first_base, runs)), hit))

    def _safe_addresses(self, entry: Value, group: GroupValues) -> Value:
        """Returns, for each lane run, its base address, or that of a run with an active lane if it
        has none, as a vector; the entry holds their distances from the first run."""
        width = group.base.width
        at = self.lanes.slot(entry, safe_pitches_at(self._layout.runs))
        pitches = self.b.load(at, typ=ir.VectorType(I64, width), align=8)
        return self.b.add(self.lanes.splat(group.firsts[0], width), pitches)

    def _leader(self, group: GroupValues) -> int:
        """Returns the number of the access record of a group's first member: that record's range
        cache holds the group's entries."""
        return self.storage.record_number(group.members[0][0], group.access_type.space)

    def _entry(self, group: GroupValues, lane_set: LaneSet) -> Value:
        """Returns the address of a lane set's entry in the cache of a group."""
        return self._in_entry(self._leader(group), lane_set.number, I64(0))

    def _count_at(self, record: int, number: Value, counter: Value) -> Value:
        """Returns the address of counter `counter` (an i64) in the entry of lane set `number` of an
        access record's cache."""
        return self._in_entry(record, number, self.b.add(counter, I64(self._layout.counts)))

    def _in_entry(self, record: int, number: Value, word: Value) -> Value:
        """Returns the address of a word (an i64) of the entry of lane set `number` of an access
        record's cache."""
        begin = self._begin + self._layout.entries_at + self._layout.entries[record]
        of_set = self.b.mul(number, I64(self._layout.set_words))
        return self.lanes.slot(self.lanes.slot(self.frame.records, begin), self.b.add(of_set, word))

    def _word(self, entry: Value, word: int) -> Value:
        """Returns one 64-bit word of an entry."""
        return self.b.load(self.lanes.slot(entry, word), typ=I64)

    def fill(self, group: GroupValues, lane_set: LaneSet) -> Value:
        """Emits the filling of a lane set's entry after a miss of a group. Returns 0 if the
        device's rules are to count this access, else 1 plus the number of its counter in the entry
        (an i64)."""
        return self._filling.fill(group, lane_set, self._entry(group, lane_set))

    # ---- counts ---------------------------------------------------------------------------------

    def count(self, group: GroupValues, times: Value) -> None:
        """Emits the addition of `times` (an i64) to the group's counter in its range cache, which
        `set_counter` chose; a count stands for one access of every member."""
        assert group.counter is not None
        self.lanes.add_to(group.counter, times)

    def count_separately(self, group: GroupValues, index: int) -> None:
        """Counts one more access of the member at instruction `index` alone. A count of the first
        member's entry stands for an access of every member: so for the first member 1 is added
        there and subtracted in the others' own caches; for any other, 1 is added in its own
        cache."""
        # Counts are sums, so that a negative difference in one cache takes back what the count of
        # the whole group has added for that member.
        if index == group.members[0][0]:
            self.count(group, I64(1))
            for difference, _ in group.members[1:]:
                self._add_difference(group, difference, -1)
        else:
            self._add_difference(group, index, 1)

    def uncount(self, group: GroupValues, index: int) -> None:
        """Emits the subtraction of one access of a member other than the first, which was counted
        with its group but not performed, in the member's own cache."""
        self._add_difference(group, index, -1)

    def _add_difference(self, group: GroupValues, index: int, amount: int) -> None:
        """Adds `amount` to the counter, in its own cache, of a group's member other than the first:
        the accesses that it has beyond those counted for the whole group, possibly negative."""
        assert group.counter_key is not None
        number, counter = group.counter_key
        record = self.storage.record_number(index, group.access_type.space)
        self.lanes.add_to(self._count_at(record, number, counter), I64(amount))
