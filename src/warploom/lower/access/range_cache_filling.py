"""Emits the calls of the helper that fills a range cache after a miss
(`helpers.range_cache_filling`), with the group's descriptor, addresses and bounds.
"""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.environment import Slot
from warploom.abi.range_cache import ANY_STRIDE, GIVEN_UP, STEP_AT, RangeCacheEntry
from warploom.helpers.calls import call
from warploom.helpers.range_cache_filling import GroupDescriptor, GroupMember
from warploom.isa.instruction import Space
from warploom.llvm.lanes import I64, Value, constant_table
from warploom.lower.access.groups import GroupValues
from warploom.lower.access.lane_sets import LaneSet, LaneSets
from warploom.lower.access.memory import MemoryCode


class RangeCacheFilling:
    """Emits calls that fill range caches, which guard access groups, with an entry for a lane set
    (active mask and thread layout)."""

    def __init__(self, memory: MemoryCode, sets: LaneSets) -> None:
        """Allocates nothing: the arrays on the stack that pass base addresses and the bounds of
        local and shared memory to the helper are emitted at their first use, and reused. `sets`
        looks up lane sets."""
        self.storage, self.sets, self.frame = memory.storage, sets, memory.frame
        self.lanes, self.b = memory.lanes, memory.b
        self._layout = self.frame.layout.caches
        self._bases: Value | None = None
        self._limits: dict[Space, Value] = {}

    def fill(self, group: GroupValues, lane_set: LaneSet, entry: Value) -> Value:
        """Emits the filling of an entry (its address) for accesses like those of a group, unless
        `_may_fill` forbids it. Returns 0 if it is not filled, or the rules are to count this access
        all the same, else 1 plus the number of its counter (an i64)."""
        b = self.b
        entry_block, call_block, done = (
            b.block,
            *(b.append_basic_block(n) for n in ("fill", "filled")),
        )
        b.cbranch(self._may_fill(lane_set, entry), call_block, done)
        b.position_at_end(call_block)
        result = self._call_helper(group, lane_set)
        call_end = b.block
        b.branch(done)
        b.position_at_end(done)
        learned = b.phi(I64)
        learned.add_incoming(I64(0), entry_block)
        learned.add_incoming(result, call_end)
        return learned

    def _may_fill(self, lane_set: LaneSet, entry: Value) -> Value:
        """Returns true (an i1) if the entry may be filled: its lane set has a key or can get one,
        and its `misses` are fewer than GIVEN_UP; more mean that replacing it does not pay."""
        b = self.b
        misses = b.load(self.lanes.slot(entry, RangeCacheEntry.misses), typ=I64)
        not_given_up = b.icmp_unsigned("<", misses, I64(GIVEN_UP))
        return b.and_(b.not_(self.sets.has_no_key(lane_set)), not_given_up)

    def _call_helper(self, group: GroupValues, lane_set: LaneSet) -> Value:
        """Emits the call of the helper `fill_range_cache`, with the bases and a step found at run
        time in an array on the stack. In global and constant memory first emits that of
        `find_bounds`, which stores the bounds of the first base's allocation at `_bounds`, unless
        there is no such allocation, or it is constant and the access a store. Returns the result of
        `fill_range_cache` (`fill`)."""
        b = self.b
        if self._bases is None:
            self._bases = self.frame.prologue.alloca(ir.ArrayType(I64, STEP_AT + 1), align=64)
        b.store(self.lanes.expand(group.bases, group.base.runs), self._bases, align=8)
        if group.step is not None and not group.accesses.is_laid_out:
            b.store(group.step, self.lanes.slot(self._bases, STEP_AT))
        bounds = self._bounds(group)
        if group.access_type.space in (Space.GLOBAL, Space.CONST):
            # What `_bounds` holds is of the allocation that the access was to when it was last
            # checked: it may be to another one now.
            allocations = self.frame.pointer(Slot.ALLOCATIONS_AT)
            writes = I64(int(group.access_type.op == "store"))
            arguments = group.firsts[0], writes, self.frame.environment, allocations, bounds
            call(self.lanes, "find_bounds", *arguments)
        sets = self.lanes.slot(self.frame.records, self.frame.layout.caches_at)
        arguments = (
            sets,
            self._group_descriptor(group),
            self._bases,
            lane_set.key,
            lane_set.number,
            bounds,
        )
        return call(self.lanes, "fill_range_cache", *arguments)

    def _bounds(self, group: GroupValues) -> Value:
        """Returns the address of the two bounds within which the entry is valid: in global and
        constant memory those of the allocation that the first member accessed last, in shared and
        local memory 0 and its length, stored in the prologue."""
        space, prologue = group.access_type.space, self.frame.prologue
        if space in (Space.GLOBAL, Space.CONST):
            return self.storage.cache(group.members[0][0], space)
        if space not in self._limits:
            at = prologue.alloca(ir.ArrayType(I64, 2), align=16)
            prologue.b.store(I64(0), at)
            prologue.b.store(self.storage.limit(space), prologue.slot(at, 1))
            self._limits[space] = at
        return self._limits[space]

    def _group_descriptor(self, group: GroupValues) -> Value:
        """Returns the address of a constant array that describes a group to the helper
        `fill_range_cache`: a `GroupDescriptor`, then a `GroupMember` for each access. Equal groups
        share one."""
        is_run_time_stride = group.step is not None and not group.accesses.is_laid_out
        stride = ANY_STRIDE if is_run_time_stride else group.base.stride
        words = GroupDescriptor.pack(
            runs=group.base.runs,
            stride=stride,
            size=group.access_type.size,
            unit=self._layout.unit,
            members=len(group.members),
            sets=self._layout.sets,
            capacity=self._layout.runs,
            entries_at=self._layout.entries_at,
            set_words=self._layout.set_words,
        )
        for index, offset in group.members:
            row = self.storage.record_number(index, group.access_type.space)
            header, entry = self._layout.headers[row], self._layout.entries[row]
            words += GroupMember.pack(header=header, entry=entry, offset=offset)
        return constant_table(self.frame.module, ".".join(["group", *map(str, words)]), words)
