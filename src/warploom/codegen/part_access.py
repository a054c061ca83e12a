"""Loads and stores of one warp of which some threads go through the body of a sweep
(`codegen.sweep`): looked at from the first warp of the block, then done at once."""

from __future__ import annotations

from dataclasses import dataclass

from warploom.analysis.shapes import Reading
from warploom.analysis.strides import LANES
from warploom.codegen.access import Shape
from warploom.codegen.lanes import I64, Value
from warploom.codegen.memory import MemoryCode
from warploom.codegen.narrow_access import NarrowAccess
from warploom.codegen.some_lanes import SomeLanes
from warploom.ptx.ir import Instruction, Operand


@dataclass(frozen=True)
class _Place:
    """Where lane 0 reaches, or would; and how such accesses are counted."""

    first: Value
    pattern: Value


class PartAccess:
    """Emits such accesses of one sweep, in blocks with all their threads along x."""

    def __init__(self, memory: MemoryCode, reading: Reading) -> None:
        self.memory, self.b = memory, memory.b
        self._some, self._narrow = SomeLanes(memory, reading), NarrowAccess(memory.lanes)
        self._places: dict[int, _Place] = {}

    def can_be(self, index: int, made: Instruction) -> bool:
        """Whether an access is one of these."""
        return self._some.step(*self._parts(index, made)) is not None

    def look(self, index: int, made: Instruction, warp: Value, bits: Value) -> Value:
        """Whether those lanes of a warp, an i32, can go the short way; the registers are those of
        the first one."""
        shape, address = self._parts(index, made)
        step = self._step(shape, address)
        ahead = self.b.mul(warp, I64(LANES * step))
        first = self.b.add(self._some.first(address), ahead)
        holds, pattern = self._some.like_another(index, shape, first, step, bits)
        self._places[index] = _Place(first, pattern)
        return holds

    def count(self, index: int, times: Value) -> None:
        """They went so, once or never."""
        self._some.count(self._places[index].pattern, times)

    def load(self, index: int, made: Instruction, on: Value) -> Value:
        """What they load: in 32 lanes, or in 1 where they agree on a place."""
        shape, address = self._parts(index, made)
        first = self._places[index].first
        if self._step(shape, address):
            return self._narrow.load(shape, self._some.pointer(shape, first), on)
        return self._some.load(shape, first, 0, on)

    def store(self, index: int, made: Instruction, on: Value) -> None:
        """They store."""
        shape, address = self._parts(index, made)
        value = self.memory.operands.bits(made.operands[1], shape.type)
        first = self._places[index].first
        if self._step(shape, address):
            self._narrow.store(shape, self._some.pointer(shape, first), value, on)
        else:
            self._some.store(shape, first, 0, value, on)

    def _parts(self, index: int, made: Instruction) -> tuple[Shape, Operand]:
        stores = made.operation.name == "st"
        shape = self.memory.shape_of("store" if stores else "load", index, made)
        return shape, made.operands[0 if stores else 1]

    def _step(self, shape: Shape, address: Operand) -> int:
        step = self._some.step(shape, address)
        assert step is not None
        return step
