"""Atomics and reductions in a warp's code, and what tells an mbarrier of bytes that have come."""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.access_type import AccessType
from warploom.core.types import U64, ScalarType
from warploom.ir.access_plans import ANYWHERE, Cost, select
from warploom.ir.kernel_accesses import elements
from warploom.llvm.lanes import I8, I32, LANES, PTR, Value, vector
from warploom.lower.access.deferred_atomic import Words, words_of
from warploom.lower.access.memory import MemoryCode
from warploom.lower.instrument.sanitizing import Memory
from warploom.program.accesses import space_of
from warploom.program.effects.tensor_waits import wait_request
from warploom.program.uses import reads
from warploom.ptx.ir import Address, Immediate, Instruction, Operand, Register, Space
from warploom.simt.lane_counts import ALL_LANES


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
            access_type = AccessType("atomic", part, type, parts)
            count, tells = len(sources), bool(wanted)
            functions = self.memory.functions

            def any_way() -> None:
                self._tell(access_type, given)
                function = functions.atomic(access_type, operation, count, tells=tells)
                self.memory.call(index, access_type, function, offsets, there)

            if select(access_type, ANYWHERE, self.memory.facts).cost is not Cost.LIST:
                any_way()
                return
            row = self.memory.places.row(index, part)
            places = self.b.trunc(offsets, vector(I32)) if narrow else offsets
            words = words_of(self.lanes, row, places, there)
            with self.b.if_else(words.inside, likely=True) as (short, other):
                with short:
                    agreed = len(given) == 1 and isinstance(sources[0], Immediate)
                    self._observe(index, access_type, given, offsets, there)
                    self._tell(access_type, [self.lanes.lane(given[0], 0)] if agreed else given)
                    deferred = functions.deferred(
                        access_type, operation, count, tells=tells, agreed=agreed
                    )
                    self._list(deferred, row, words)
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
        self, index: int, access_type: AccessType, given: list[Value], addresses: Value, on: Value
    ) -> None:
        """Emit the event of an atomic that is done the short way, if the detector is to see it."""
        sanitizing, places = self.memory.sanitizing, self.memory.places
        if sanitizing is None or not sanitizing.takes(index, access_type):
            return
        self._tell(access_type, given)
        memory = Memory(*places.space(access_type.space), places.at(0))
        sanitizing.access(index, access_type, addresses, on, memory)

    def _tell(self, access_type: AccessType, given: list[Value]) -> None:
        """Write operands where functions find them."""
        for number, value in enumerate(given):
            self.b.store(value, self.memory.places.at(number * access_type.part_bytes), align=4)

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
        access_type = AccessType("store", Space.SHARED, U64)
        where = self.operands.address(address)
        self.memory.call(index, access_type, self.memory.functions.completion(), where, mask)


def _is_narrow(address: Operand) -> bool:
    """Returns whether addresses are those of a register of 32 bits."""
    assert isinstance(address, Address)
    return isinstance(address.base, Register) and address.base.type.bits == 32
