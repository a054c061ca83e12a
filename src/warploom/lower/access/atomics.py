"""Emits atomics and reductions, and the `complete_tx` of copies at mbarriers.

An atomic on a 32-bit shared word has a fast path (`lower.access.deferred_atomic`); all others call
the function that updates lane by lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from warploom.abi.access_type import AccessType
from warploom.core.types import U64, ScalarType
from warploom.ir.access_plans import Cost
from warploom.ir.kernel_accesses import elements
from warploom.isa.instruction import Address, Immediate, Instruction, Operand, Register, Space
from warploom.isa.spec import Operation
from warploom.llvm.lanes import I8, I32, LANES, PTR, Value, vector
from warploom.lower.access.deferred_atomic import WindowKeys, window_keys
from warploom.lower.access.memory import MemoryCode
from warploom.program.accesses import space_of
from warploom.program.effects.tensor_waits import wait_request
from warploom.program.uses import reads
from warploom.simt.lane_counts import ALL_LANES


@dataclass(frozen=True, slots=True)
class _Atomic:
    """An atomic whose operands have been read: `values` are the elements of all `sources` in turn,
    each in 32 lanes; `results_read` the destinations that some instruction reads, each with its
    number; `waits`: it waits for an mbarrier."""

    index: int
    operation: Operation
    sources: Sequence[Operand]
    values: list[Value]
    results_read: list[tuple[int, Operand]]
    waits: bool

    @property
    def type(self) -> ScalarType:
        """Returns the type of an element."""
        return self.operation.modifiers.scalar()

    @property
    def parts(self) -> int:
        """Returns the number of elements of an operand."""
        return len(elements(self.sources[0])) if self.sources else 1

    @property
    def returns_old(self) -> bool:
        """Returns whether the access function has to return old values."""
        return bool(self.results_read)


class AtomicCode:
    """Emits the atomics of one warp function; `_read_registers` are the registers that some
    instruction reads."""

    def __init__(self, memory: MemoryCode) -> None:
        """Collects the registers that some instruction of the program reads (`_read_registers`)."""
        self.memory, self.operands = memory, memory.operands
        self.lanes, self.b = memory.lanes, memory.b
        self._read_registers = frozenset[Operand]().union(
            *map(reads, memory.frame.program.instructions)
        )

    def emit(
        self, index: int, instruction: Instruction, mask: Value
    ) -> list[tuple[Operand, Value, ScalarType]]:
        """Emits an atomic or a reduction as a call of its access function, for each space that a
        generic address may belong to (`_apply`).

        Returns each destination with its value and type: the old value, or what the operation
        computes from it (`Operation.answer`). Destinations that no instruction reads are left out,
        except of waits, so that an unused `atom` costs as little as a `red`. A wait for an mbarrier
        (`try_wait`) that fails in some lane ends the warp's turn at its next back edge."""
        address = instruction.operands[len(instruction.operation.spec.destinations)]
        addresses = self.operands.address(address)
        atomic = self._atomic(index, instruction)
        space = space_of(instruction)
        narrow = space is not Space.GENERIC and _is_narrow(address)

        def apply(part: Space, offsets: Value, active: Value) -> None:
            """Emits the atomic of the lanes `active` in the space `part`, at `offsets` in it."""
            self._apply(atomic, part, offsets, active, narrow=narrow)

        if space is Space.GENERIC:
            self.memory.by_space(addresses, mask, apply)
        else:
            apply(space, addresses, mask)
        return self._results(atomic, mask)

    def _atomic(self, index: int, instruction: Instruction) -> _Atomic:
        """Returns an atomic with the values of its operands, which it reads."""
        operation = instruction.operation
        address_at = len(operation.spec.destinations)
        sources = instruction.operands[address_at + 1 :][: operation.value_count]
        parts = [part for source in sources for part in elements(source)]
        type, waits = operation.modifiers.scalar(), wait_request(instruction) is not None
        destinations = enumerate(
            element for o in instruction.operands[:address_at] for element in elements(o)
        )
        return _Atomic(
            index,
            operation,
            sources,
            [self.operands.bits(part, type) for part in parts],
            [numbered for numbered in destinations if waits or numbered[1] in self._read_registers],
            waits=waits,
        )

    def _apply(
        self, atomic: _Atomic, space: Space, offsets: Value, active: Value, *, narrow: bool
    ) -> None:
        """Emits an atomic of the lanes `active` at `offsets` in a space. Where the plan permits
        deferred counting, and at run time all lanes are active with words in the record's window,
        `AccessFunctions.deferred` is called instead of the access function. `narrow`: the offsets
        are 32-bit numbers."""
        index, values = atomic.index, atomic.values
        access_type = AccessType("atomic", space, atomic.type, atomic.parts)
        if self.memory.plan(index, access_type).cost is not Cost.LIST:
            self._call(atomic, access_type, offsets, active)
            return
        record = self.memory.storage.record_address(index, space)
        # Offsets from a 32-bit register fit in 32-bit lanes: half the vector instructions for the
        # window test.
        offsets_in_window = self.b.trunc(offsets, vector(I32)) if narrow else offsets
        words = window_keys(self.lanes, record, offsets_in_window, active)
        with self.b.if_else(words.inside, likely=True) as (on_hit, on_miss):
            with on_hit:
                uniform = len(values) == 1 and isinstance(atomic.sources[0], Immediate)
                self._report_to_detector(index, access_type, values, offsets, active)
                if uniform:
                    values = [self.lanes.lane(values[0], 0)]
                self._store_operands(access_type, values)
                deferred = self.memory.functions.deferred(
                    access_type,
                    atomic.operation,
                    len(atomic.sources),
                    returns_old=atomic.returns_old,
                    uniform=uniform,
                )
                self._call_deferred(deferred, record, words)
            with on_miss:
                self._call(atomic, access_type, offsets, active)

    def _call(
        self, atomic: _Atomic, access_type: AccessType, offsets: Value, active: Value
    ) -> None:
        """Emits the call of the access function, which accepts any addresses and lanes."""
        self._store_operands(access_type, atomic.values)
        function = self.memory.functions.atomic(
            access_type, atomic.operation, len(atomic.sources), returns_old=atomic.returns_old
        )
        self.memory.call(atomic.index, access_type, function, offsets, active)

    def _results(self, atomic: _Atomic, mask: Value) -> list[tuple[Operand, Value, ScalarType]]:
        """Returns the destinations that are read, with their values and types; for a wait, emits
        the end of the warp's turn if it fails in some lane of `mask`."""
        type, parts = atomic.type, atomic.parts
        answer = atomic.operation.answer(len(atomic.sources))
        results: list[tuple[Operand, Value, ScalarType]] = []
        for number, target in atomic.results_read:
            # In the data buffer, old values follow the elements of two operands.
            at = self.memory.storage.at((2 * parts + number) * type.bytes * LANES)
            value = self.b.load(at, typ=vector(ir.IntType(type.bits)), align=16)
            if answer.op != "arg":
                value = self.operands.lower(answer, [value, *atomic.values[number::parts]])
            if atomic.waits:
                # A failed `mbarrier.try_wait` ends the warp's turn at its next back edge, so that
                # other warps can arrive.
                failed = self.b.and_(mask, self.b.not_(value))
                self.memory.frame.fuel.fail_wait(self.lanes.bits(failed))
            results.append((target, value, answer.type))
        return results

    def _report_to_detector(
        self, index: int, access_type: AccessType, values: list[Value], addresses: Value, on: Value
    ) -> None:
        """Stores the operands `values` to the data buffer and emits the race detector's event for
        an atomic that is counted later; nothing without a detector, or if it need not check the
        access. Other atomics have the event from the call of the access function."""
        detector = self.memory.instruments.detector
        if detector is None or not detector.must_check(index, access_type):
            return
        self._store_operands(access_type, values)
        detector.access(self.memory.event(index, access_type, addresses, on))

    def _store_operands(self, access_type: AccessType, values: list[Value]) -> None:
        """Stores operands to the data buffer, in which access functions read them."""
        for number, value in enumerate(values):
            self.b.store(value, self.memory.storage.at(number * access_type.part_bytes), align=4)

    def _call_deferred(self, function: Value, record: Value, words: WindowKeys) -> None:
        """Emits the call of the function for deferred counting, where `words.inside` holds, with
        the window's 8-bit word numbers instead of addresses, a full mask, the window's start as the
        base, and no cached bounds. It cannot fault, so its result is not tested."""
        base, limit = self.memory.storage.space(Space.SHARED)
        start = self.lanes.slot(base, words.window, I8)
        all_lanes, data = I32(ALL_LANES), self.memory.storage.at(0)
        cache = ir.Constant(PTR, None)
        values = [self.memory.frame.environment, record, cache, words.keys, all_lanes, data, start]
        self.b.call(function, [*values, limit])

    def complete(self, index: int, address: Operand, amounts: Value, mask: Value) -> None:
        """Emits the call that signals arrived bytes, `amounts` of each lane in `mask` (64-bit
        lanes), to the mbarriers at an address in shared memory (`complete_tx`)."""
        self.b.store(amounts, self.memory.storage.at(0), align=16)
        access_type = AccessType("store", Space.SHARED, U64)
        addresses = self.operands.address(address)
        self.memory.call(index, access_type, self.memory.functions.completion(), addresses, mask)


def _is_narrow(address: Operand) -> bool:
    """Returns true if the address is a 32-bit register, with or without an offset; false for
    variables and constants."""
    assert isinstance(address, Address)
    return isinstance(address.base, Register) and address.base.type.bits == 32
