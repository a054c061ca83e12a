"""Loads and stores of one warp of which some threads go through the body of a sweep
(`lower.loops.warp_loop`): looked at from the first warp of the block, then done at once."""

from __future__ import annotations

from warploom.analysis.shape_transfer import Reading
from warploom.analysis.vector_shape import LANES
from warploom.ir.access_groups import group_alone
from warploom.ir.access_plans import Guard, Move
from warploom.llvm.lanes import I64, Value
from warploom.lower.access.groups import GroupValues
from warploom.lower.access.loads import load
from warploom.lower.access.memory import MemoryCode
from warploom.lower.access.narrow_access import NarrowAccess
from warploom.lower.access.range_cache import RangeCache
from warploom.lower.access.stores import store
from warploom.lower.access.transfers import LaneAddresses, Transfers
from warploom.ptx.ir import Instruction

ONE_PLACE_OR_VECTOR = (Move.SCALAR, Move.VECTOR, Move.ROWS)
"""The moves of lanes that reach one address, or consecutive elements."""


class PartialAccess:
    """Emits such accesses of one sweep, in blocks with all their threads along x."""

    def __init__(self, memory: MemoryCode, reading: Reading) -> None:
        self.memory, self.reading, self.b = memory, reading, memory.b
        self.lanes, self._cache = memory.lanes, RangeCache(memory, reading)
        self._narrow = NarrowAccess(memory.lanes)
        self._transfers = Transfers(memory.lanes, memory.places.pointer)
        self._groups: dict[int, GroupValues] = {}

    def supports(self, index: int, instruction: Instruction) -> bool:
        """Returns whether an access is one of these."""
        group = group_alone(self.memory.accesses, self.reading, index, instruction)
        if group is None or group.shape.parts > 1 or group.base.width > 1:
            return False
        return group.plan.guard is Guard.CACHE and group.plan.move in ONE_PLACE_OR_VECTOR

    def check(self, index: int, instruction: Instruction, warp: Value, bits: Value) -> Value:
        """Returns whether those lanes of a warp, an i32, can go the short way; the registers are
        those of the first one."""
        b, access_group = (
            self.b,
            group_alone(self.memory.accesses, self.reading, index, instruction),
        )
        assert access_group is not None
        group = GroupValues(access_group)
        address = instruction.operands[0 if group.access_type.op == "store" else 1]
        base = self.memory.operands.base(address, 1)
        offset = b.mul(warp, I64(LANES * group.base.stride))
        group.bases = b.add(base, self.lanes.splat(offset, 1))
        group.firsts = [self.lanes.lane(group.bases, 0)]
        self._groups[index] = group
        return self._cache.hits(group, self._cache.sets.of_bits(bits))

    def count(self, index: int, times: Value) -> None:
        """Count that they went so, once or never."""
        self._cache.count(self._groups[index], times)

    def load(self, index: int, instruction: Instruction, on: Value) -> Value:
        """Returns what they load: in 32 lanes, or in 1 where they agree on a place."""
        move, lane_addresses = self._lane_addresses(index, on)
        if move is Move.VECTOR:
            pointer = self._transfers.pointer(lane_addresses.access_type, lane_addresses.firsts[0])
            return self._narrow.load(lane_addresses.access_type, pointer, on)
        [value] = load(self._transfers, move, lane_addresses)
        return value

    def store(self, index: int, instruction: Instruction, on: Value) -> None:
        """Store what they hold."""
        move, lane_addresses = self._lane_addresses(index, on)
        value = self.memory.operands.bits(instruction.operands[1], lane_addresses.access_type.type)
        if move is Move.VECTOR:
            pointer = self._transfers.pointer(lane_addresses.access_type, lane_addresses.firsts[0])
            self._narrow.store(lane_addresses.access_type, pointer, value, on)
        else:
            store(self._transfers, move, lane_addresses, [value])

    def _lane_addresses(self, index: int, on: Value) -> tuple[Move, LaneAddresses]:
        """Returns how an access moves its data, and where lane 0 reaches, or would."""
        group = self._groups[index]
        first = self.b.add(group.firsts[0], I64(group.members[0][1]))
        return group.plan.move, LaneAddresses(group.access_type, [first], on)
