"""Loads and stores of all warps of a block at once (`codegen.sweep`): looked at from the first and
the last of them, then done warp by warp.
"""

from __future__ import annotations

from warploom.analysis.shapes import Reading
from warploom.analysis.strides import LANES
from warploom.analysis.sweeps import Kind, Sweep
from warploom.codegen.access import count_change
from warploom.codegen.groups import Form, Group, find_groups
from warploom.codegen.lanes import I1, I64, Value
from warploom.codegen.memory import MemoryCode
from warploom.codegen.remembered import Remembered
from warploom.core.types import unsigned
from warploom.ptx.ir import Address, Instruction, Register


class SweepAccess:
    """Emits the accesses of one sweep at a time."""

    def __init__(self, memory: MemoryCode, reading: Reading) -> None:
        self.memory, self.reading = memory, reading
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b
        self._remembered = Remembered(memory)
        self._groups: dict[int, Group] = {}
        self._firsts: dict[int, Value] = {}
        """Where the first thread reaches, by instruction."""

    def begin(self, sweep: Sweep) -> bool:
        """Find the groups of its blocks; whether all its accesses are of one that lies side by
        side."""
        self._firsts.clear()
        self._groups.clear()
        for index in (*sweep.blocks, *sweep.own):
            block = self.frame.program.blocks[index]
            self._groups |= find_groups(self.memory, self.reading, block)
        accesses = [index for index, kind in sweep.kinds.items() if kind is Kind.ACCESS]
        groups = [self._groups.get(index) for index in accesses]
        return all(group is not None and group.form is Form.CONSECUTIVE for group in groups)

    def look(self, index: int, made: Instruction, warps: Value) -> Value:
        """Whether so many warps, the first ones, can go the short way. The first one's registers
        say where."""
        b, group = self.b, self._groups[index]
        address = made.operands[0 if group.shape.op == "store" else 1]
        assert isinstance(address, Address)
        holds: Value = I1(1)
        if not group.firsts:
            assert isinstance(address.base, Register)
            base = self.memory.operands.read(address.base, unsigned(64), width=1)
            group.firsts = [self.lanes.lane(base, 0)]
            as_far = b.mul(b.sub(warps, I64(1)), I64(group.extent))
            known = self._remembered.holds_as_far(group, as_far)
            holds = b.or_(known, b.icmp_unsigned("==", warps, I64(0)))
        self._firsts[index] = b.add(group.firsts[0], I64(address.offset))
        return holds

    def count(self, index: int, warps: Value) -> None:
        """So many warps have gone the short way."""
        shape = self._groups[index].shape
        self.memory.common.count(index, shape.space, self._firsts[index], warps)
        if shape.op == "store":
            count_change(self.lanes, self.frame.environment, warps)

    def load(self, index: int) -> list[Value]:
        """What the running warp loads."""
        return self.memory.common.load(self._groups[index].shape, self._place(index))

    def store(self, index: int, made: Instruction) -> None:
        """The store of the running warp."""
        shape = self._groups[index].shape
        value = self.memory.operands.bits(made.operands[1], shape.type)
        self.memory.common.store(shape, self._place(index), [value])

    def _place(self, index: int) -> Value:
        """Where the running warp's first lane reaches."""
        extent = LANES * self._groups[index].shape.size
        return self.b.add(self._firsts[index], self.b.mul(self.frame.warp, I64(extent)))
