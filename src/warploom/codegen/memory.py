"""Emits memory instructions in general: how their operands become calls of access functions
(`codegen.access_functions`), one for each space that an address may lead to. Accesses at addresses
with a shape have faster code (`codegen.shaped_access`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from llvmlite import ir

from warploom.analysis.accesses import AccessRow, space_of
from warploom.analysis.clusters import reaches_cluster
from warploom.codegen.access import Shape
from warploom.codegen.access_functions import AccessFunctions
from warploom.codegen.access_table import Facts, Move, general
from warploom.codegen.call_parameters import PieceCode
from warploom.codegen.clusters import ClusterCode
from warploom.codegen.environment import SPACE_CODES, Slot
from warploom.codegen.faults import FaultExit
from warploom.codegen.kernel_accesses import elements
from warploom.codegen.lanes import (
    I8,
    I64,
    LANES,
    PTR,
    Lanes,
    Value,
    splat_constant,
    vector,
)
from warploom.codegen.observing import ObservingCode
from warploom.codegen.operands import Operands
from warploom.codegen.pieces import frame_access
from warploom.codegen.places import Places
from warploom.codegen.recording_copies import CopyRecordingCode
from warploom.codegen.sanitizing import Memory, SanitizingCode
from warploom.codegen.shared_functions import SharedFunctions
from warploom.core.types import ScalarType
from warploom.ptx.ir import Address, Instruction, Operand, Space, Symbol
from warploom.rules.clusters import MOST_BLOCKS
from warploom.rules.windows import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BITS


class AccessObserver(Protocol):
    """Emits code that sees each access before it is done."""

    def access(self, instruction: int, shape: Shape, addresses: Value, lanes: Value) -> None: ...

    def texels(self, instruction: int, row: AccessRow, scratch: Value) -> None: ...


EachSpace = Callable[[Space, Value, Value], None]
"""What to do for the lanes in one space: the space, their addresses in it, their mask."""


class MemoryCode:
    """Emits the memory instructions of one warp function."""

    def __init__(
        self,
        operands: Operands,
        recording: AccessObserver | None,
        sanitizing: SanitizingCode | None,
        clusters: ClusterCode,
        *,
        shuffles: bool,
        shared: SharedFunctions | None = None,
        copy_recording: CopyRecordingCode | None = None,
        observing: ObservingCode | None = None,
    ) -> None:
        self.operands, self.frame = operands, operands.frame
        self.lanes, self.b = operands.lanes, operands.b
        rules = self.frame.layout.rules
        self.functions = AccessFunctions(self.frame.module, rules, shuffles=shuffles, shared=shared)
        self.places = Places(self.frame)
        self.pieces, self.faults = PieceCode(operands), FaultExit(self.frame)
        self.recording, self.sanitizing, self.clusters = recording, sanitizing, clusters
        self.copy_recording, self.observing = copy_recording, observing
        self.accesses = self.frame.facts.accesses_of(self.frame.program)
        self._facts_apart = replace(self.accesses.facts, listed=False)
        self.apart = False
        """Whether code is made for lanes that have parted from others."""

    @property
    def facts(self) -> Facts:
        """Return what the choice of plans depends on at the place where code goes now."""
        return self._facts_apart if self.apart else self.accesses.facts

    # ---- loads and stores -----------------------------------------------------------------------

    def load(self, index: int, made: Instruction, mask: Value) -> list[Value]:
        """Return the values that a load gives, one for each destination, as integers of its
        type."""
        type, parts = made.operation.modifiers.scalar(), len(elements(made.operands[0]))
        reached = frame_access(self.frame.program, made)
        if reached is not None:
            return self.pieces.load(reached[0], type, parts)
        space = space_of(made)
        if space is Space.PARAM:
            return self.load_parameter(index, made.operands[1], type, parts, mask)
        shape = self.accesses.shape_of("load", index, made)
        return self.load_at(index, shape, self.operands.address(made.operands[1]), mask)

    def load_at(self, index: int, shape: Shape, addresses: Value, mask: Value) -> list[Value]:
        """Emit a load of that shape; its space may be the generic one."""
        if general(shape).move is not Move.BY_SPACE:
            return self.load_any(index, shape, addresses, mask)
        type, parts = shape.type, shape.parts
        results = [self.frame.variable(vector(ir.IntType(type.bits))) for _ in range(parts)]

        def load_some(part: Space, offsets: Value, lanes_there: Value) -> None:
            found = self.load_any(index, replace(shape, space=part), offsets, lanes_there)
            for result, value in zip(results, found, strict=True):
                old = self.b.load(result, typ=value.type)
                self.b.store(self.lanes.blend(lanes_there, value, old), result)

        self.by_space(addresses, mask, load_some)
        return [self.b.load(r, typ=vector(ir.IntType(type.bits))) for r in results]

    def store(self, index: int, made: Instruction, mask: Value) -> None:
        """Store the given elements."""
        type = made.operation.modifiers.scalar()
        sources = elements(made.operands[1])
        values = [self.operands.bits(s, type) for s in sources]
        reached = frame_access(self.frame.program, made)
        if reached is not None:
            self.pieces.store(reached[0], type, values, mask)
            return
        shape = self.accesses.shape_of("store", index, made)
        self.store_at(index, shape, self.operands.address(made.operands[0]), values, mask)

    def store_at(
        self, index: int, shape: Shape, addresses: Value, values: list[Value], mask: Value
    ) -> None:
        """Emit a store of that shape; its space may be the generic one."""
        if general(shape).move is not Move.BY_SPACE:
            self.store_any(index, shape, addresses, values, mask)
            return

        def store_some(part: Space, offsets: Value, lanes_there: Value) -> None:
            self.store_any(index, replace(shape, space=part), offsets, values, lanes_there)

        self.by_space(addresses, mask, store_some)

    def load_any(self, index: int, shape: Shape, addresses: Value, mask: Value) -> list[Value]:
        """Load out of line, whatever the addresses are; lanes that are off get anything."""
        self.call(index, shape, self.functions.plain(shape), addresses, mask)
        at = [self.places.at(number * shape.part_bytes) for number in range(shape.parts)]
        return [self.b.load(a, typ=vector(shape.element), align=16) for a in at]

    def store_any(
        self, index: int, shape: Shape, addresses: Value, values: list[Value], mask: Value
    ) -> None:
        """Store out of line, whatever the addresses are."""
        for number, value in enumerate(values):
            self.b.store(value, self.places.at(number * shape.part_bytes), align=16)
        self.call(index, shape, self.functions.plain(shape), addresses, mask)

    # ---- any other access -----------------------------------------------------------------------

    def call(
        self, index: int, shape: Shape, function: Value, addresses: Value, mask: Value
    ) -> None:
        """Call an access function, and leave where it reports a fault."""
        base, limit = self.places.space(shape.space)
        in_cluster = self._is_in_cluster(index, shape)
        if in_cluster:
            if self.sanitizing:
                memory = Memory(base, limit, self.places.at(0))
                mask = self.sanitizing.filter(index, shape, addresses, mask, memory)
            addresses = self.clusters.places(index, addresses, mask, shape.size)
            base = self.b.inttoptr(self.clusters.start(), PTR)
            limit = self.b.mul(self.frame.slot(Slot.SHARED_STRIDE), I64(MOST_BLOCKS))
        if self.recording:
            self.recording.access(index, shape, addresses, self.lanes.bits(mask))
        if self.copy_recording:
            self.copy_recording.barriers(index, addresses, self.lanes.bits(mask), base, limit)

        def reach(lanes: Value) -> Value:
            given = [
                self.frame.environment,
                self.places.row(index, shape.space),
                self.places.cache(index, shape.space),
                addresses,
                self.lanes.bits(lanes),
                self.places.at(0),
                base,
                limit,
            ]
            return self.b.call(function, given)

        if self.sanitizing and not in_cluster:
            memory = Memory(base, limit, self.places.at(0))
            fault = self.sanitizing.reach(index, shape, addresses, mask, memory, reach)
        else:
            fault = reach(mask)
        self.faults.leave(I64(index), fault, I64(SPACE_CODES[shape.space]))
        if self.observing:
            self.observing.access(index, shape, addresses, mask)

    def _is_in_cluster(self, index: int, shape: Shape) -> bool:
        """Returns whether an access to shared memory may lead to another block's."""
        if not self.clusters.several or shape.space is not Space.SHARED:
            return False
        return reaches_cluster(self.frame.program.instructions[index])

    def by_space(self, addresses: Value, mask: Value, each: EachSpace) -> None:
        """Split lanes by where their generic addresses lead, and do `each` where some lead."""
        by_space(self.lanes, addresses, mask, each)

    # ---- parameters -----------------------------------------------------------------------------

    def load_parameter(
        self,
        index: int,
        address: Operand,
        type: ScalarType,
        parts: int,
        mask: Value,
        width: int = LANES,
    ) -> list[Value]:
        """Kernel parameters: the same for all lanes where the address is a name."""
        assert isinstance(address, Address)
        element = ir.IntType(type.bits)
        if isinstance(address.base, Symbol):
            found = [self.parameter(address, type, number) for number in range(parts)]
            return [self.frame.prologue.splat(value, width) for value in found]
        shape = Shape("load", Space.PARAM, type, parts)
        self.call(index, shape, self.functions.plain(shape), self.operands.address(address), mask)
        return [
            self.b.load(self.places.at(k * shape.part_bytes), typ=vector(element), align=16)
            for k in range(parts)
        ]

    def parameter(self, address: Address, type: ScalarType, number: int) -> Value:
        """Returns one element of a parameter that an address names, the same for all lanes."""
        assert isinstance(address.base, Symbol)
        offset = self.frame.program.places[address.base.name].offset
        offset += address.base.offset + address.offset + number * type.bytes
        p = self.frame.prologue.b
        at = p.gep(self.places.space(Space.PARAM)[0], [I64(offset)], source_etype=I8)
        return p.load(at, typ=ir.IntType(type.bits), align=1)


def by_space(lanes: Lanes, addresses: Value, mask: Value, each: EachSpace) -> None:
    """Splits lanes by where their generic addresses lead, and does `each` where some lead."""
    b = lanes.b
    window = b.lshr(addresses, splat_constant(WINDOW_BITS, I64))
    inside = {
        space: b.and_(
            mask,
            b.icmp_unsigned("==", window, splat_constant(start >> WINDOW_BITS, I64)),
        )
        for space, start in ((Space.SHARED, SHARED_WINDOW), (Space.LOCAL, LOCAL_WINDOW))
    }
    elsewhere = b.and_(mask, b.not_(b.or_(*inside.values())))
    offsets = b.and_(addresses, splat_constant((1 << WINDOW_BITS) - 1, I64))
    for space, there in ((Space.GLOBAL, elsewhere), *inside.items()):
        with b.if_then(lanes.any(there)):
            each(space, addresses if space is Space.GLOBAL else offsets, there)
