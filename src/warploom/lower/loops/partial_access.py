"""Emits loads and stores of the one warp of which only some threads run the body of a warp loop
(`lower.loops.warp_loop`): of `if (tid < 100)`, warp 3 with 4 threads.

The addresses are extrapolated from the registers of the block's first warp. They are looked up in
the range cache before the loop, and accessed without a check in it."""

from __future__ import annotations

from dataclasses import replace

from warploom.ir.access_groups import by_instruction
from warploom.ir.access_plans import Move
from warploom.ir.loops import WarpLoop
from warploom.isa.instruction import Instruction
from warploom.llvm.lanes import I1, I64, Value
from warploom.lower.access.groups import GroupValues
from warploom.lower.access.loads import load
from warploom.lower.access.memory import MemoryCode
from warploom.lower.access.narrow_access import NarrowAccess
from warploom.lower.access.range_cache import RangeCache
from warploom.lower.access.stores import store
from warploom.lower.access.transfers import LaneAddresses, Transfers
from warploom.lower.instrument.extents import extent_of
from warploom.shapes.vector_shape import LANES


class PartialAccess:
    """Emits the accesses of the partial warp (its first lanes run the body) for one warp loop, in
    thread blocks with all threads along x."""

    def __init__(self, memory: MemoryCode, warp_loop: WarpLoop) -> None:
        """Reads the accesses from the loop's `partial` groups, whose addresses `check` sets."""
        self._planned = by_instruction(warp_loop.partial)
        self.memory, self.b = memory, memory.b
        self.lanes, self._cache = memory.lanes, RangeCache(memory)
        self._narrow = NarrowAccess(memory.lanes)
        self._transfers = Transfers(memory.lanes, memory.storage.pointer)
        self._groups: dict[int, GroupValues] = {}
        """By instruction, the group of each access that has been checked."""

    def check(self, index: int, instruction: Instruction, warp: Value, bits: Value) -> Value:
        """Emits the lookup in the range cache for the lanes `bits` (an i32) of warp `warp`, while
        registers hold the first warp's values; returns true (an i1) on a hit, and for a member of a
        group that has been checked. Stores the address, for each access of the group, for `count`,
        `load` and `store`, which must follow."""
        b = self.b
        if index in self._groups:
            return I1(1)
        group = GroupValues(self._planned[index])
        address = instruction.operands[0 if group.access_type.op == "store" else 1]
        base = self.memory.operands.base(address, 1)
        # Registers hold the first warp's values. All threads lie along x, so each warp's addresses
        # begin where 32 strides of the warp before end.
        offset = b.mul(warp, I64(LANES * group.base.stride))
        group.bases = b.add(base, self.lanes.splat(offset, 1))
        group.firsts = [self.lanes.lane(group.bases, 0)]
        self._groups |= dict.fromkeys((member for member, _ in group.members), group)
        return self._cache.hits(group, self._cache.sets.of_bits(bits))

    def count(self, index: int, times: Value) -> None:
        """Adds `times` (0 or 1) to the count of a group's accesses in the range cache, if `index`
        is the last of them; nothing for the others, as a group is counted once."""
        group = self._groups[index]
        if index == group.members[-1][0]:
            self._cache.count(group, times)

    def load(self, index: int, instruction: Instruction, on: Value) -> Value:
        """Emits the load of the active lanes `on` at the address that `check` has computed. Returns
        the elements as one vector: of 32 lanes, or of 1 for a uniform address."""
        move, lane_addresses = self._lane_addresses(index, on)
        self._track(index, lane_addresses)
        if move is Move.VECTOR:
            pointer = self._transfers.pointer(lane_addresses.access_type, lane_addresses.firsts[0])
            return self._narrow.load(lane_addresses.access_type, pointer, on)
        [value] = load(self._transfers, move, lane_addresses)
        return value

    def store(self, index: int, instruction: Instruction, on: Value) -> None:
        """Emits the store of the active lanes `on` at the address that `check` has computed."""
        move, lane_addresses = self._lane_addresses(index, on)
        self._track(index, lane_addresses)
        value = self.memory.operands.bits(instruction.operands[1], lane_addresses.access_type.type)
        if move is Move.VECTOR:
            pointer = self._transfers.pointer(lane_addresses.access_type, lane_addresses.firsts[0])
            self._narrow.store(lane_addresses.access_type, pointer, value, on)
        else:
            store(self._transfers, move, lane_addresses, [value])

    def _track(self, index: int, lane_addresses: LaneAddresses) -> None:
        """Emits the record of an access in the worker's access set; nothing if the kernel is
        compiled without a tracker."""
        tracker = self.memory.instruments.tracker
        if tracker is None or not tracker.tracks(index):
            return
        group, on = self._groups[index], lane_addresses.on
        run_address = self.lanes.splat(lane_addresses.firsts[0], 1)
        addresses = self.lanes.expand(run_address, offsets=group.base.offsets(LANES))
        step = I64(group.base.stride)
        extent = extent_of(self.lanes, group.access_type.size, 1, step, addresses, on)
        event = self.memory.event(index, group.access_type, addresses, on)
        tracker.access(replace(event, extent=extent))

    def _lane_addresses(self, index: int, on: Value) -> tuple[Move, LaneAddresses]:
        """Emits the address that the access of instruction `index` has in lane 0, active or not,
        and returns it with the active lanes `on`; and how the access moves its data (`Move`)."""
        group = self._groups[index]
        first_address = self.b.add(group.firsts[0], I64(dict(group.members)[index]))
        return group.plan.move, LaneAddresses(group.access_type, [first_address], on)
