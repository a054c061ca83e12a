"""Loads and stores of some lanes, the others waiting, in code for those lanes: the short way where
that can be (`codegen.some_lanes`), else any."""

from __future__ import annotations

from collections.abc import Callable

from warploom.analysis.shapes import Reading
from warploom.analysis.strides import UNIFORM
from warploom.codegen.access import Shape, count_change
from warploom.codegen.lanes import I64, Value
from warploom.codegen.memory import MemoryCode, elements
from warploom.codegen.some_lanes import SomeLanes
from warploom.ptx.ir import Instruction, Operand


class MaskedAccess:
    """Emits accesses under a mask whose addresses have shapes."""

    def __init__(self, memory: MemoryCode, reading: Reading) -> None:
        self.memory = memory
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b
        self._some = SomeLanes(memory, reading)

    def load(self, index: int, made: Instruction, on: Value) -> list[Value] | None:
        """What a load gives, part by part; None where the short way is none for it."""
        shape, address = self.memory.shape_of("load", index, made), made.operands[1]
        step = self._some.step(shape, address)
        if step is None:
            return None

        def load_short(first: Value) -> Value:
            return self.lanes.fan(self._some.load(shape, first, step, on), 0)

        def load_any(addresses: Value) -> Value:
            return self.memory.load_any(index, shape, addresses, on)[0]

        return [self._either(index, shape, address, on, load_short, load_any)]

    def load_agreed(self, index: int, made: Instruction, on: Value) -> list[Value] | None:
        """The same in 1 lane, where all lanes read one place."""
        shape, address = self.memory.shape_of("load", index, made), made.operands[1]
        if self._some.step(shape, address) != 0:
            return None

        def load_short(first: Value) -> Value:
            return self._some.load(shape, first, 0, on)

        def load_any(addresses: Value) -> Value:
            [found] = self.memory.load_any(index, shape, addresses, on)
            return self.frame.by_shape(found, self.lanes.bits(on), UNIFORM)

        return [self._either(index, shape, address, on, load_short, load_any)]

    def _either(
        self,
        index: int,
        shape: Shape,
        address: Operand,
        on: Value,
        load_short: Callable[[Value], Value],
        load_any: Callable[[Value], Value],
    ) -> Value:
        """What a load gives: by the short way from where the first lane reaches, or by any other
        from all lanes' addresses."""
        b, first, step = self.b, self._some.first(address), self._some.step(shape, address) or 0
        short, other, done = (b.append_basic_block(n) for n in ("some", "any", "loaded"))
        b.cbranch(self._like_another(index, shape, first, step, on), short, other)
        b.position_at_end(short)
        found = load_short(first)
        b.branch(done)
        b.position_at_end(other)
        others = load_any(self.memory.operands.address(address))
        behind = b.block
        b.branch(done)
        b.position_at_end(done)
        result = b.phi(found.type)
        result.add_incoming(found, short)
        result.add_incoming(others, behind)
        return result

    def store(self, index: int, made: Instruction, on: Value) -> bool:
        """Emit a store; False where the short way is none for it."""
        shape, address = self.memory.shape_of("store", index, made), made.operands[0]
        step = self._some.step(shape, address)
        if step is None:
            return False
        first = self._some.first(address)
        values = [self.memory.operands.bits(s, shape.type) for s in elements(made.operands[1])]
        like = self._like_another(index, shape, first, step, on)
        with self.b.if_else(like) as (short, other):
            with short:
                self._some.store(shape, first, step, values[0], on)
                count_change(self.lanes, self.frame.environment, I64(1))
            with other:
                self.memory.store_any(
                    index, shape, self.memory.operands.address(address), values, on
                )
        return True

    def _like_another(self, index: int, shape: Shape, first: Value, step: int, on: Value) -> Value:
        """Whether such an access has been counted; then it is counted as one more."""
        bits = self.lanes.bits(on)
        like, pattern = self._some.like_another(index, shape, first, step, bits)
        with self.b.if_then(like, likely=True):
            self._some.count(pattern, I64(1))
        return like
