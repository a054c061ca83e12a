"""Atomics and reductions in a warp's code, and what tells an mbarrier of bytes that have come."""

from __future__ import annotations

from llvmlite import ir

from warploom.analysis.accesses import space_of
from warploom.analysis.tensor_waits import wait_request
from warploom.analysis.uses import reads
from warploom.codegen.access import Shape
from warploom.codegen.access_table import ANYWHERE, Cost, select
from warploom.codegen.kernel_accesses import elements
from warploom.codegen.lanes import I8, I32, LANES, PTR, Value, vector
from warploom.codegen.listed_atomic import Words, words_of
from warploom.codegen.memory import MemoryCode
from warploom.codegen.sanitizing import Memory
from warploom.core.types import U64, ScalarType
from warploom.ptx.ir import Address, Immediate, Instruction, Operand, Register, Space
from warploom.rules.distinct import ALL_LANES


class AtomicCode:
    """Emits the atomics of one warp function."""

    def __init__(self, memory: MemoryCode) -> None:
        self.memory, self.operands = memory, memory.operands
        self.lanes, self.b = memory.lanes, memory.b
        self._read = frozenset[Operand]().union(*map(reads, memory.frame.program.instructions))

    def emit(
        self, index: int, made: Instruction, mask: Value
    ) -> list[tuple[Operand, Value, ScalarType]]:
        """Emit an atomic or a reduction; return what it gives to which destination."""
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
        space = space_of(made)
        waits = wait_request(made) is not None
        wanted = [
            (place, target)
            for place, target in enumerate(e for o in made.operands[:first] for e in elements(o))
            if waits or target in self._read
        ]

        narrow = space is not Space.GENERIC and _is_narrow(address)

        def apply(part: Space, offsets: Value, there: Value) -> None:
            shape = Shape("atomic", part, type, parts)
            count, tells = len(sources), bool(wanted)
            functions = self.memory.functions

            def any_way() -> None:
                self._tell(shape, given)
                function = functions.atomic(shape, operation, count, tells=tells)
                self.memory.call(index, shape, function, offsets, there)

            if select(shape, ANYWHERE, self.memory.facts).cost is not Cost.LIST:
                any_way()
                return
            row = self.memory.places.row(index, part)
            places = self.b.trunc(offsets, vector(I32)) if narrow else offsets
            words = words_of(self.lanes, row, places, there)
            with self.b.if_else(words.inside, likely=True) as (short, other):
                with short:
                    agreed = len(given) == 1 and isinstance(sources[0], Immediate)
                    self._observe(index, shape, given, offsets, there)
                    self._tell(shape, [self.lanes.lane(given[0], 0)] if agreed else given)
                    listed = functions.listed(shape, operation, count, tells=tells, agreed=agreed)
                    self._list(listed, row, words)
                with other:
                    any_way()

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
            if waits:
                failed = self.b.and_(mask, self.b.not_(value))
                self.memory.frame.fuel.fail_wait(self.lanes.bits(failed))
            results.append((target, value, answer.type))
        return results

    def _observe(
        self, index: int, shape: Shape, given: list[Value], addresses: Value, on: Value
    ) -> None:
        """Emit the event of an atomic that is done the short way, if the detector is to see it."""
        sanitizing, places = self.memory.sanitizing, self.memory.places
        if sanitizing is None or not sanitizing.takes(index, shape):
            return
        self._tell(shape, given)
        memory = Memory(*places.space(shape.space), places.at(0))
        sanitizing.access(index, shape, addresses, on, memory)

    def _tell(self, shape: Shape, given: list[Value]) -> None:
        """Write operands where functions find them."""
        for number, value in enumerate(given):
            self.b.store(value, self.memory.places.at(number * shape.part_bytes), align=4)

    def _list(self, function: Value, row: Value, words: Words) -> None:
        """Call a function of the short way."""
        base, limit = self.memory.places.space(Space.SHARED)
        start = self.lanes.slot(base, words.window, I8)
        everyone, data = I32(ALL_LANES), self.memory.places.at(0)
        cache = ir.Constant(PTR, None)
        given = [self.memory.frame.environment, row, cache, words.keys, everyone, data, start]
        self.b.call(function, [*given, limit])

    def complete(self, index: int, address: Operand, amounts: Value, mask: Value) -> None:
        """Tell the mbarriers at an address of bytes that have come."""
        self.b.store(amounts, self.memory.places.at(0), align=16)
        shape = Shape("store", Space.SHARED, U64)
        where = self.operands.address(address)
        self.memory.call(index, shape, self.memory.functions.completion(), where, mask)


def _is_narrow(address: Operand) -> bool:
    """Returns whether addresses are those of a register of 32 bits."""
    assert isinstance(address, Address)
    return isinstance(address.base, Register) and address.base.type.bits == 32
