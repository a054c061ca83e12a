"""Emits where the accesses of a group reach, before the access cache is asked for them."""

from __future__ import annotations

from llvmlite import ir

from warploom.core.types import unsigned
from warploom.ir.access_plans import Guard
from warploom.llvm.lanes import I64, LANES, Value, selection
from warploom.lower.access.groups import Group
from warploom.lower.access.memory import MemoryCode
from warploom.ptx.ir import Address, Instruction, Operand, Register, Space

EIGHT = ir.VectorType(I64, 8)
"""As many addresses as are compared at once."""


class GroupPlaces:
    """Emits where each run of lanes begins."""

    def __init__(self, memory: MemoryCode) -> None:
        self.memory, self.lanes, self.b = memory, memory.lanes, memory.b

    def find(self, group: Group, made: Instruction, on: Value) -> Value | None:
        """Find where a group reaches; at addresses without a shape, returns whether the lanes that
        are on follow the first of their run by one step."""
        address = made.operands[0 if group.shape.op == "store" else 1]
        if group.plan.guard is Guard.CACHE:
            self._find_by_shape(group, address)
            return None
        if group.plan.guard is Guard.LANES:
            self._find_lanes(group, address, on)
            return None
        return self._find_by_step(group, address, on)

    def _find_by_shape(self, group: Group, address: Operand) -> None:
        width = group.base.width
        group.bases = self._base(group, address, width)
        group.firsts = [self.lanes.lane(group.bases, run) for run in range(width)]

    def _find_lanes(self, group: Group, address: Operand, on: Value) -> None:
        """Find where each lane reaches; lanes that are off have the place of the first."""
        places = self._base(group, address)
        first = self.lanes.lane(places, 0)
        group.bases = self.b.select(on, places, self.lanes.splat(first))
        group.firsts = [first]

    def _base(self, group: Group, address: Operand, width: int = LANES) -> Value:
        """Returns the register or variable that an address begins with, as 64-bit lanes.

        In shared memory, addresses of 32 bits in the upper half count as below 0. They lead nowhere
        as they stand, but lanes that are off may have them where others of their run are
        inside.
        """
        operands = self.memory.operands
        assert isinstance(address, Address)
        register, shared = address.base, group.shape.space is Space.SHARED
        if shared and isinstance(register, Register) and register.type.bits == 32:
            narrow = operands.read(register, unsigned(32), width=width)
            return self.b.sext(narrow, ir.VectorType(I64, width))
        return operands.base(address, width)

    def _find_by_step(self, group: Group, address: Operand, on: Value) -> Value:
        b, runs, places = self.b, group.base.width, self._base(group, address)
        heads = selection(range(0, LANES, LANES // runs))
        group.bases = b.shuffle_vector(places, places, heads)
        group.firsts = [self.lanes.lane(group.bases, run) for run in range(runs)]
        group.step = b.sub(self.lanes.lane(places, 1), group.firsts[0])
        follows = self._follows(places, LANES // runs, group.step, on)
        if group.plan.guard is Guard.ELEMENT:
            size = I64(group.shape.size)
            follows = b.and_(follows, b.icmp_unsigned("==", group.step, size))
        return follows

    def _follows(self, places: Value, length: int, step: Value, on: Value) -> Value:
        """Returns whether in each run of so many lanes those that are on reach where its first lane
        does, and on from there by a step."""
        b, lanes, zeros = self.b, self.lanes, ir.Constant(EIGHT, None)
        numbers = ir.Constant(EIGHT, [I64(lane % length) for lane in range(EIGHT.count)])
        behind = b.mul(numbers, lanes.splat(step, EIGHT.count))
        differ: Value = zeros
        for begin in range(0, LANES, EIGHT.count):
            part = range(begin, begin + EIGHT.count)
            heads = b.shuffle_vector(places, places, selection(n // length * length for n in part))
            expected = b.add(heads, behind)
            if begin % length:
                further = lanes.splat(b.mul(step, I64(begin % length)), EIGHT.count)
                expected = b.add(expected, further)
            other = b.xor(b.shuffle_vector(places, places, selection(part)), expected)
            here = b.shuffle_vector(on, on, selection(part))
            differ = b.or_(differ, b.select(here, other, zeros))
        return b.not_(lanes.some(b.icmp_unsigned("!=", differ, zeros)))
