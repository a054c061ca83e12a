"""Memory instructions in a warp's code: which space, which fast way, which counts.

The out-of-line ways are in `access.py`; here stands what is inlined, and how an instruction's
operands become an access.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from llvmlite import ir

from warploom.analysis.accesses import route_of, space_of
from warploom.codegen.access import STACK, Shape, count_change
from warploom.codegen.access_functions import AccessFunctions
from warploom.codegen.call_parameters import PieceCode
from warploom.codegen.common_access import CommonAccess
from warploom.codegen.environment import SPACE_CODES, Slot, Status
from warploom.codegen.lanes import (
    I8,
    I64,
    LANES,
    Value,
    splat_constant,
    vector,
)
from warploom.codegen.operands import Operands
from warploom.codegen.pieces import frame_access
from warploom.codegen.places import Places
from warploom.codegen.recording import RecordingCode
from warploom.codegen.row_access import HALF, RowAccess, goes_by_rows
from warploom.core.types import ScalarType
from warploom.ptx.ir import Address, Instruction, Operand, Space, Symbol, Vector
from warploom.rules.rows import LINE_BYTES
from warploom.rules.windows import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BITS

MOST_INLINED = 128
"""Of a kernel with more accesses than that none is inlined: its code would take minutes to make."""

EachSpace = Callable[[Space, Value, Value], None]
"""What to do for the lanes in one space: the space, their addresses in it, their mask."""


class MemoryCode:
    """Emits the memory instructions of one warp function."""

    def __init__(
        self, operands: Operands, recording: RecordingCode | None, *, shuffles: bool
    ) -> None:
        self.operands, self.frame = operands, operands.frame
        self.lanes, self.b = operands.lanes, operands.b
        rules = self.frame.layout.rules
        self.functions = AccessFunctions(self.frame.module, rules, shuffles=shuffles)
        self.places = Places(self.frame)
        self.common = CommonAccess(self.places)
        self.pieces = PieceCode(operands)
        self.recording = recording
        self.apart = False
        """Whether code is made for lanes that have parted from others."""

    @property
    def never_inlined(self) -> bool:
        """Whether every access goes out of line."""
        return self.many or self.recording is not None or self.frame.layout.rules.caches

    def shape_of(self, op: str, index: int, made: Instruction) -> Shape:
        """What a load or a store moves."""
        data = made.operands[0 if op == "load" else 1]
        route = self._route(index) or (route_of(made) if op == "load" else "")
        type = made.operation.modifiers.scalar()
        return Shape(op, space_of(made), type, len(elements(data)), route)

    def base_of(self, shape: Shape) -> Value | None:
        """Where the space of an access begins on the host, if addresses are counted from there."""
        return self.places.space(shape.space)[0] if shape.space is Space.SHARED else None

    @property
    def many(self) -> bool:
        """Whether the kernel has too many accesses to inline any."""
        return len(self.places.rows) > MOST_INLINED

    # ---- loads and stores -----------------------------------------------------------------------

    def load(self, index: int, made: Instruction, mask: Value) -> list[Value]:
        """The values that a load gives, one for each destination, as integers of its type."""
        type, parts = made.operation.modifiers.scalar(), len(elements(made.operands[0]))
        reached = frame_access(self.frame.program, made)
        if reached is not None:
            return self.pieces.load(reached[0], type, parts)
        space = space_of(made)
        if space is Space.PARAM:
            return self.load_parameter(index, made.operands[1], type, parts, mask)
        shape = self.shape_of("load", index, made)
        return self.load_at(index, shape, self.operands.address(made.operands[1]), mask)

    def load_at(self, index: int, shape: Shape, addresses: Value, mask: Value) -> list[Value]:
        """A load of that shape; its space may be the generic one."""
        if shape.space is not Space.GENERIC:
            return self.load_from(index, shape, addresses, mask)
        type, parts = shape.type, shape.parts
        results = [self.frame.variable(vector(ir.IntType(type.bits))) for _ in range(parts)]

        def load_some(part: Space, offsets: Value, lanes_there: Value) -> None:
            there = replace(shape, space=part)
            load = self.load_from if _is_inlined(there) else self.load_any
            found = load(index, there, offsets, lanes_there)
            for result, value in zip(results, found, strict=True):
                old = self.b.load(result, typ=value.type)
                self.b.store(self.lanes.blend(lanes_there, value, old), result)

        self.by_space(addresses, mask, load_some)
        return [self.b.load(r, typ=vector(ir.IntType(type.bits))) for r in results]

    def store(self, index: int, made: Instruction, mask: Value) -> None:
        """A store of the given elements."""
        type = made.operation.modifiers.scalar()
        sources = elements(made.operands[1])
        values = [self.operands.bits(s, type) for s in sources]
        reached = frame_access(self.frame.program, made)
        if reached is not None:
            self.pieces.store(reached[0], type, values, mask)
            return
        shape = self.shape_of("store", index, made)
        self.store_at(index, shape, self.operands.address(made.operands[0]), values, mask)

    def store_at(
        self, index: int, shape: Shape, addresses: Value, values: list[Value], mask: Value
    ) -> None:
        """A store of that shape; its space may be the generic one."""
        if shape.space is not Space.GENERIC:
            self.store_to(index, shape, addresses, values, mask)
            return

        def store_some(part: Space, offsets: Value, lanes_there: Value) -> None:
            there = replace(shape, space=part)
            store = self.store_to if _is_inlined(there) else self.store_any
            store(index, there, offsets, values, lanes_there)

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

    def load_from(self, index: int, shape: Shape, addresses: Value, mask: Value) -> list[Value]:
        """Load from a space: the common way or any other."""
        b = self.b
        results = [self.frame.variable(vector(shape.element)) for _ in range(shape.parts)]

        def load_any() -> None:
            found = self.load_any(index, shape, addresses, mask)
            for part, value in zip(results, found, strict=True):
                b.store(value, part)

        def load_common() -> None:
            found = self.common.load(shape, self.lanes.lane(addresses, 0))
            for part, value in zip(results, found, strict=True):
                b.store(value, part)

        def load_other() -> None:
            if not self.by_rows(shape):
                load_any()
                return
            self._load_rows(index, shape, addresses, mask, results, load_any)

        self._access(index, shape, addresses, mask, load_common, load_other)
        return [b.load(part, typ=vector(shape.element)) for part in results]

    def by_rows(self, shape: Shape) -> bool:
        """Whether an access is tried by rows (`rules.rows`). Where a policy chooses whose store
        lasts, no store is."""
        rules = self.frame.layout.rules
        if self.apart or self.never_inlined or rules.unit != LINE_BYTES:
            return False
        if shape.op == "store" and self.functions.shuffles:
            return False
        return goes_by_rows(shape)

    def _load_rows(
        self,
        index: int,
        shape: Shape,
        addresses: Value,
        mask: Value,
        results: list[Value],
        load_any: Callable[[], None],
    ) -> None:
        """Load by rows where the addresses are such, of a kind seen before; else in any way."""
        b, loads, row = self.b, RowAccess(self.lanes, shape), self.places.row(index, shape.space)
        rows, matches = loads.match(addresses, mask)
        for first in (rows.first, rows.second):
            matches = b.and_(
                matches, self.common.inside(index, shape.space, first, HALF * shape.size)
            )
        kind = loads.kind(rows)
        known = b.and_(matches, loads.is_known(row, kind))
        with b.if_else(known) as (then, otherwise):
            with then:
                loads.count(row, kind)
                found = loads.load(rows, self.base_of(shape))
                for part, value in zip(results, found, strict=True):
                    b.store(value, part)
            with otherwise:
                with b.if_then(matches):
                    loads.note(row, kind)
                load_any()

    def store_to(
        self, index: int, shape: Shape, addresses: Value, values: list[Value], mask: Value
    ) -> None:
        """Store to a space: the common way or any other."""

        def store_any() -> None:
            self.store_any(index, shape, addresses, values, mask)

        def store_common() -> None:
            self.common.store(shape, self.lanes.lane(addresses, 0), values)
            count_change(self.lanes, self.frame.environment, I64(1))

        self._access(index, shape, addresses, mask, store_common, store_any)

    def _access(
        self,
        index: int,
        shape: Shape,
        addresses: Value,
        mask: Value,
        common: Callable[[], None],
        any_other: Callable[[], None],
    ) -> None:
        """The common way or any other, as the addresses turn out."""
        # Where lanes have parted, they are not all on, as in the common access they are.
        narrow = shape.space is Space.LOCAL and shape.type.bytes < 4
        if self.apart or self.never_inlined or narrow:
            any_other()
            return
        test = self.common.matches(index, shape, addresses, mask)
        with self.b.if_else(test, likely=True) as (then, otherwise):
            with then:
                if shape.route != STACK:
                    first = self.lanes.lane(addresses, 0)
                    self.common.count(index, shape.space, first, I64(1))
                common()
            with otherwise:
                any_other()

    # ---- any other access -----------------------------------------------------------------------

    def call(
        self, index: int, shape: Shape, function: Value, addresses: Value, mask: Value
    ) -> None:
        """Call an access function, and leave where it reports a fault."""
        if self.recording:
            self.recording.access(index, shape, addresses, self.lanes.bits(mask))
        base, limit = self.places.space(shape.space)
        fault = self.b.call(
            function,
            [
                self.frame.environment,
                self.places.row(index, shape.space),
                self.places.cache(index, shape.space),
                addresses,
                self.lanes.bits(mask),
                self.places.at(0),
                base,
                limit,
            ],
        )
        with self.b.if_then(self.b.icmp_unsigned("!=", fault, I64(0)), likely=False):
            self.frame.record(Slot.FAULT_INSTRUCTION, I64(index))
            self.frame.record(Slot.FAULT_WARP, self.frame.warp)
            self.frame.record(Slot.FAULT_SPACE, I64(SPACE_CODES[shape.space]))
            self.frame.leave(Status.FAULT)

    def by_space(self, addresses: Value, mask: Value, each: EachSpace) -> None:
        """Split lanes by where their generic addresses lead, and do `each` where some lead."""
        b = self.b
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
            with b.if_then(self.lanes.any(there)):
                each(space, addresses if space is Space.GLOBAL else offsets, there)

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
            offset = self.frame.program.places[address.base.name].offset
            offset += address.base.offset + address.offset
            p = self.frame.prologue
            at = [
                p.b.gep(
                    self.places.space(Space.PARAM)[0],
                    [I64(offset + k * type.bytes)],
                    source_etype=I8,
                )
                for k in range(parts)
            ]
            return [p.splat(p.b.load(a, typ=element, align=1), width) for a in at]
        shape = Shape("load", Space.PARAM, type, parts)
        self.call(index, shape, self.functions.plain(shape), self.operands.address(address), mask)
        return [
            self.b.load(self.places.at(k * shape.part_bytes), typ=vector(element), align=16)
            for k in range(parts)
        ]

    def _route(self, index: int) -> str:
        """STACK for what a call keeps in local memory."""
        return STACK if index in self.frame.program.private else ""


def _is_inlined(shape: Shape) -> bool:
    """Whether the common way of an access with a generic address is inlined: it comes once for each
    space that the address may lead to, which is too much code for what is rare."""
    return shape.size >= 4 and shape.space in (Space.GLOBAL, Space.SHARED)


def elements(operand: Operand) -> tuple[Operand, ...]:
    """The elements of a vector operand, or the operand itself."""
    return operand.elements if isinstance(operand, Vector) else (operand,)
