"""Loads and stores of one warp of which some threads go through the body of a sweep
(`codegen.sweep`): looked at from the first warp of the block, then done at once."""

from __future__ import annotations

from warploom.analysis.shapes import Reading
from warploom.analysis.strides import LANES
from warploom.codegen.access import Shape
from warploom.codegen.access_cache import AccessCache
from warploom.codegen.groups import Form, Group, group_alone
from warploom.codegen.lanes import I64, Value
from warploom.codegen.memory import MemoryCode
from warploom.codegen.narrow_access import NarrowAccess
from warploom.codegen.transfers import Transfers
from warploom.ptx.ir import Instruction


class PartAccess:
    """Emits such accesses of one sweep, in blocks with all their threads along x."""

    def __init__(self, memory: MemoryCode, reading: Reading) -> None:
        self.memory, self.reading, self.b = memory, reading, memory.b
        self.lanes, self._cache = memory.lanes, AccessCache(memory, reading)
        self._narrow, self._transfers = (
            NarrowAccess(memory.lanes),
            Transfers(memory.lanes, memory.places.pointer),
        )
        self._groups: dict[int, Group] = {}

    def can_be(self, index: int, made: Instruction) -> bool:
        """Returns whether an access is one of these."""
        group = group_alone(self.memory, self.reading, index, made)
        if group is None or group.form is not Form.SHAPE:
            return False
        if group.shape.parts > 1 or group.base.width > 1:
            return False
        return group.base.stride in (0, group.shape.size)

    def look(self, index: int, made: Instruction, warp: Value, bits: Value) -> Value:
        """Returns whether those lanes of a warp, an i32, can go the short way; the registers are
        those of the first one."""
        b, group = self.b, group_alone(self.memory, self.reading, index, made)
        assert group is not None
        address = made.operands[0 if group.shape.op == "store" else 1]
        base = self.memory.operands.base(address, 1)
        ahead = b.mul(warp, I64(LANES * group.base.stride))
        group.bases = b.add(base, self.lanes.splat(ahead, 1))
        group.firsts = [self.lanes.lane(group.bases, 0)]
        self._groups[index] = group
        return self._cache.knows(group, self._cache.set_of(bits))

    def count(self, index: int, times: Value) -> None:
        """Count that they went so, once or never."""
        self._cache.count(self._groups[index], times)

    def load(self, index: int, made: Instruction, on: Value) -> Value:
        """Returns what they load: in 32 lanes, or in 1 where they agree on a place."""
        shape, first = self._first(index)
        if self._groups[index].base.stride:
            return self._narrow.load(shape, self._transfers.pointer(shape, first), on)
        [value] = self._transfers.load(shape, self._groups[index].base, [first], on)
        return value

    def store(self, index: int, made: Instruction, on: Value) -> None:
        """Store what they hold."""
        shape, first = self._first(index)
        value = self.memory.operands.bits(made.operands[1], shape.type)
        if self._groups[index].base.stride:
            self._narrow.store(shape, self._transfers.pointer(shape, first), value, on)
        else:
            self._transfers.store(shape, self._groups[index].base, [first], [value], on)

    def _first(self, index: int) -> tuple[Shape, Value]:
        """Returns what an access moves in each lane, and where lane 0 reaches, or would."""
        group = self._groups[index]
        return group.shape, self.b.add(group.firsts[0], I64(group.members[0][1]))
