"""Atomics and reductions in a warp's code, and what tells an mbarrier of bytes that have come."""

from __future__ import annotations

from llvmlite import ir

from warploom.analysis.accesses import space_of
from warploom.analysis.uses import reads
from warploom.codegen.access import Shape
from warploom.codegen.lanes import LANES, Value, vector
from warploom.codegen.memory import MemoryCode, elements
from warploom.core.types import U64, ScalarType
from warploom.ptx.ir import Instruction, Operand, Space


class AtomicCode:
    """Emits the atomics of one warp function."""

    def __init__(self, memory: MemoryCode) -> None:
        self.memory, self.operands = memory, memory.operands
        self.lanes, self.b = memory.lanes, memory.b
        self._read = frozenset[Operand]().union(*map(reads, memory.frame.program.instructions))

    def emit(
        self, index: int, made: Instruction, mask: Value
    ) -> list[tuple[Operand, Value, ScalarType]]:
        """An atomic or a reduction; what it gives to which destination."""
        operation = made.operation
        type = operation.modifiers.scalar()
        first = len(operation.spec.destinations)
        address, *sources = made.operands[first:]
        addresses = self.operands.address(address)
        sources = sources[: operation.value_count]
        parts = len(elements(sources[0])) if sources else 1
        given = [
            self.operands.bits(element, type) for source in sources for element in elements(source)
        ]
        for number, value in enumerate(given):
            self.b.store(value, self.memory.places.at(number * type.bytes * LANES), align=16)
        space = space_of(made)
        wanted = [
            (place, target)
            for place, target in enumerate(e for o in made.operands[:first] for e in elements(o))
            if target in self._read
        ]

        def apply(part: Space, offsets: Value, there: Value) -> None:
            shape = Shape("atomic", part, type, parts)
            function = self.memory.functions.atomic(
                shape, operation, len(sources), tells=bool(wanted)
            )
            self.memory.call(index, shape, function, offsets, there)

        if space is Space.GENERIC:
            self.memory.by_space(addresses, mask, apply)
        else:
            apply(space, addresses, mask)
        answer = operation.answer(len(sources))
        results: list[tuple[Operand, Value, ScalarType]] = []
        for place, target in wanted:
            at = self.memory.places.at((2 * parts + place) * type.bytes * LANES)
            value = self.b.load(at, typ=vector(ir.IntType(type.bits)), align=16)
            if answer.op != "arg":
                value = self.operands.lower(answer, [value, *given[place::parts]])
            results.append((target, value, answer.type))
        return results

    def complete(self, index: int, address: Operand, amounts: Value, mask: Value) -> None:
        """Tell the mbarriers at an address of bytes that have come."""
        self.b.store(amounts, self.memory.places.at(0), align=16)
        shape = Shape("store", Space.SHARED, U64)
        where = self.operands.address(address)
        self.memory.call(index, shape, self.memory.functions.completion(), where, mask)
