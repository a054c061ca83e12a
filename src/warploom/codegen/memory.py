"""Memory instructions in a warp's code: which space, which fast way, which counts.

The out-of-line ways are in `access.py`; here stands what is inlined, and how an instruction's
operands become an access.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from llvmlite import ir

from warploom.analysis.accesses import route_of, space_of
from warploom.codegen.access import DATA_BYTES, STACK, AccessFunctions, Shape, count_change
from warploom.codegen.environment import FULL, ROW_WIDTH, Slot, Status
from warploom.codegen.lanes import (
    I8,
    I32,
    I64,
    LANES,
    PTR,
    Value,
    lane_numbers,
    splat_constant,
    vector,
)
from warploom.codegen.operands import Operands
from warploom.codegen.pieces import frame_access
from warploom.codegen.row_loads import HALF, RowLoads, reads_by_rows
from warploom.core.types import U64, ScalarType, unsigned
from warploom.ptx.ir import Address, Instruction, Operand, Register, Space, Symbol, Vector
from warploom.rules.rows import LINE_BYTES
from warploom.rules.windows import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BITS

SPACE_CODES = {space: code for code, space in enumerate(Space)}
"""How compiled code names a space in the record of a fault."""

MOST_INLINED = 128
"""Of a kernel with more accesses than that none is inlined: its code would take minutes to make."""

_EachSpace = Callable[[Space, Value, Value], None]
"""What to do for the lanes in one space: the space, their addresses in it, their mask."""


class MemoryCode:
    """Emits the memory instructions of one warp function."""

    def __init__(self, operands: Operands, *, shuffles: bool) -> None:
        self.operands, self.frame = operands, operands.frame
        self.lanes, self.b = operands.lanes, operands.b
        rules = self.frame.layout.rules
        self.functions = AccessFunctions(self.frame.module, rules, shuffles=shuffles)
        self.rows: dict[tuple[int, Space], int] = {
            (row.instruction, row.space): i for i, row in enumerate(self.frame.layout.rows)
        }
        self.data = self.frame.prologue.alloca(ir.ArrayType(I8, DATA_BYTES), align=64)
        self._spaces: dict[Space, tuple[Value, Value]] = {}
        self.apart = False
        """Whether code is made for lanes that have parted from others."""

    # ---- loads and stores -----------------------------------------------------------------------

    def load(self, index: int, made: Instruction, mask: Value) -> list[Value]:
        """The values that a load gives, one for each destination, as integers of its type."""
        type, parts = made.operation.modifiers.scalar(), len(elements(made.operands[0]))
        reached = frame_access(self.frame.program, made)
        if reached is not None:
            return self._load_pieces(reached[0], type, parts)
        space = space_of(made)
        if space is Space.PARAM:
            return self.load_parameter(index, made.operands[1], type, parts, mask)
        route = self._route(index) or route_of(made)
        shape = Shape("load", space, type, parts, route)
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

        self._by_space(addresses, mask, load_some)
        return [self.b.load(r, typ=vector(ir.IntType(type.bits))) for r in results]

    def store(self, index: int, made: Instruction, mask: Value) -> None:
        """A store of the given elements."""
        type = made.operation.modifiers.scalar()
        sources = elements(made.operands[1])
        storage = unsigned(type.bits)
        values = [self.operands.read(s, storage) for s in sources]
        reached = frame_access(self.frame.program, made)
        if reached is not None:
            self._store_pieces(reached[0], type, values, mask)
            return
        shape = Shape("store", space_of(made), type, len(values), self._route(index))
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

        self._by_space(addresses, mask, store_some)

    def load_any(self, index: int, shape: Shape, addresses: Value, mask: Value) -> list[Value]:
        """Load out of line, whatever the addresses are; lanes that are off get anything."""
        self._call(index, shape, self.functions.plain(shape), addresses, mask)
        at = [self._data(number * shape.part_bytes) for number in range(shape.parts)]
        return [self.b.load(a, typ=vector(shape.element), align=16) for a in at]

    def store_any(
        self, index: int, shape: Shape, addresses: Value, values: list[Value], mask: Value
    ) -> None:
        """Store out of line, whatever the addresses are."""
        for number, value in enumerate(values):
            self.b.store(value, self._data(number * shape.part_bytes), align=16)
        self._call(index, shape, self.functions.plain(shape), addresses, mask)

    def load_from(self, index: int, shape: Shape, addresses: Value, mask: Value) -> list[Value]:
        """Load from a space: the common way or any other."""
        b = self.b
        results = [self.frame.variable(vector(shape.element)) for _ in range(shape.parts)]

        def load_any() -> None:
            found = self.load_any(index, shape, addresses, mask)
            for part, value in zip(results, found, strict=True):
                b.store(value, part)

        def load_common() -> None:
            for part, value in zip(results, self._load_common(shape, addresses), strict=True):
                b.store(value, part)

        def load_other() -> None:
            if not self._by_rows(shape):
                load_any()
                return
            self._load_rows(index, shape, addresses, mask, results[0], load_any)

        self._access(index, shape, addresses, mask, load_common, load_other)
        return [b.load(part, typ=vector(shape.element)) for part in results]

    def _by_rows(self, shape: Shape) -> bool:
        """Whether a load is tried by rows (`rules.rows`)."""
        rules = self.frame.layout.rules
        return reads_by_rows(shape) and not rules.caches and rules.unit == LINE_BYTES

    def _load_rows(
        self,
        index: int,
        shape: Shape,
        addresses: Value,
        mask: Value,
        result: Value,
        load_any: Callable[[], None],
    ) -> None:
        """Load by rows where the addresses are such, of a kind seen before; else in any way."""
        b, loads, row = self.b, RowLoads(self.lanes, shape), self.row(index, shape.space)
        rows, matches = loads.match(addresses, mask)
        for first in (rows.first, rows.second):
            matches = b.and_(matches, self._inside(index, shape.space, first, HALF * shape.size))
        kind = loads.kind(rows)
        known = b.and_(matches, loads.is_known(row, kind))
        with b.if_else(known) as (then, otherwise):
            with then:
                loads.count(row, kind)
                base = None
                if shape.space is Space.SHARED:
                    base, _ = self._space(shape.space)
                b.store(loads.load(rows, base), result)
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
            self._store_common(shape, addresses, values)
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
        rules = self.frame.layout.rules
        many = len(self.rows) > MOST_INLINED
        # Where lanes have parted, they are not all on, as in the common access they are.
        if self.apart or many or rules.caches or (shape.space is Space.LOCAL and shape.size < 4):
            any_other()
            return
        test = self._is_common(index, shape, addresses, mask)
        with self.b.if_else(test, likely=True) as (then, otherwise):
            with then:
                if shape.route != STACK:
                    self._count_common(index, shape.space, self.lanes.lane(addresses, 0))
                common()
            with otherwise:
                any_other()

    # ---- the common access ----------------------------------------------------------------------

    def _is_common(self, index: int, shape: Shape, addresses: Value, mask: Value) -> Value:
        """Whether all lanes are on and their addresses the pattern that is cheapest in the space:
        consecutive and aligned, or (local, constant) all the same; inside what is known live."""
        b, size = self.b, shape.size
        first = self.lanes.lane(addresses, 0)
        same = shape.space in (Space.LOCAL, Space.CONST)
        stride = 0 if same else size
        expected = b.add(self.lanes.splat(first), lane_numbers(I64, stride))
        off = self.lanes.any(b.or_(b.icmp_unsigned("!=", addresses, expected), b.not_(mask)))
        extent = size if same else LANES * size
        free = shape.space is not Space.GLOBAL and not (
            shape.space is Space.SHARED and (size < 4 or self.frame.layout.rules.shared_by_rows)
        )
        alignment = size if free else extent
        misaligned = b.icmp_unsigned("!=", b.and_(first, I64(alignment - 1)), I64(0))
        bad = b.or_(off, misaligned)
        return b.and_(b.not_(bad), self._inside(index, shape.space, first, extent))

    def _inside(self, index: int, space: Space, first: Value, extent: int) -> Value:
        """Whether `extent` bytes from `first` lie in the space, or in the allocation last used."""
        b = self.b
        if space not in (Space.GLOBAL, Space.CONST):
            _, limit = self._space(space)
            room = b.sub(limit, I64(extent))
            fits = b.icmp_signed(">=", room, I64(0))
            return b.and_(fits, b.icmp_unsigned("<=", first, room))
        cache = self._cache(index, space)
        low = b.load(cache, typ=I64)
        high = b.load(self.lanes.slot(cache, 1), typ=I64)
        room = b.sub(high, low)
        large_enough = b.icmp_unsigned(">=", room, I64(extent))
        within = b.icmp_unsigned("<=", b.sub(first, low), b.sub(room, I64(extent)))
        return b.and_(large_enough, within)

    def _count_common(self, index: int, space: Space, first: Value) -> None:
        """One more common access; in shared memory by whether it starts on a line or a sector."""
        b, row = self.b, self.row(index, space)
        if space is not Space.SHARED:
            self.lanes.add_to(self.lanes.slot(row, FULL), I64(1))
            return
        off_line, off_sector = (
            b.zext(b.icmp_unsigned("!=", b.and_(first, I64(n - 1)), I64(0)), I64) for n in (128, 32)
        )
        column = b.add(I64(FULL), b.add(off_line, off_sector))
        self.lanes.add_to(self.lanes.slot(row, column), I64(1))

    def _common_pointer(self, shape: Shape, addresses: Value) -> Value:
        first = self.lanes.lane(addresses, 0)
        if shape.space in (Space.GLOBAL, Space.CONST):
            return self.b.inttoptr(first, PTR)
        base, _ = self._space(shape.space)
        offset = (
            self.b.shl(self.b.lshr(first, I64(2)), I64(7))
            if (shape.space is Space.LOCAL)
            else first
        )
        return self.b.gep(base, [offset], source_etype=I8)

    def _load_common(self, shape: Shape, addresses: Value) -> list[Value]:
        b, pointer, count = self.b, self._common_pointer(shape, addresses), shape.parts
        element = shape.element
        if shape.space is Space.LOCAL:
            return self._load_local_rows(shape, pointer)
        if shape.space is Space.CONST:
            places = [b.gep(pointer, [I64(k)], source_etype=element) for k in range(count)]
            return [self.lanes.splat(b.load(p, typ=element, align=1)) for p in places]
        whole = ir.VectorType(element, LANES * count)
        value = b.load(pointer, typ=whole, align=shape.type.bytes)
        if count == 1:
            return [value]
        unused = ir.Constant(whole, ir.Undefined)
        return [
            b.shuffle_vector(value, unused, lane_pick([lane * count + k for lane in range(LANES)]))
            for k in range(count)
        ]

    def _store_common(self, shape: Shape, addresses: Value, values: list[Value]) -> None:
        pointer = self._common_pointer(shape, addresses)
        if shape.space is Space.LOCAL:
            self._store_local_rows(shape, pointer, values)
            return
        self.b.store(self._interleaved(values), pointer, align=shape.type.bytes)

    def _interleaved(self, values: list[Value]) -> Value:
        """Elements of each lane side by side: a0 b0 a1 b1 ..."""
        if len(values) == 1:
            return values[0]
        half = len(values) // 2
        evens, odds = self._interleaved(values[::2]), self._interleaved(values[1::2])
        width = LANES * half
        order = [side * width + i for i in range(width) for side in (0, 1)]
        return self.b.shuffle_vector(evens, odds, lane_pick(order))

    def _load_local_rows(self, shape: Shape, pointer: Value) -> list[Value]:
        """Each 4-byte word of all lanes is a row of 128 bytes."""
        b, row = self.b, vector(I32)
        words = [
            b.load(b.gep(pointer, [I64(128 * w)], source_etype=I8), typ=row, align=128)
            for w in range(shape.size // 4)
        ]
        if shape.type.bytes == 4:
            return words
        wide, each = vector(shape.element), shape.type.bytes // 4
        values: list[Value] = []
        for first in range(0, len(words), each):
            value = b.zext(words[first], wide)
            for place in range(1, each):
                shift = splat_constant(32 * place, shape.element)
                value = b.or_(value, b.shl(b.zext(words[first + place], wide), shift))
            values.append(value)
        return values

    def _store_local_rows(self, shape: Shape, pointer: Value, values: list[Value]) -> None:
        b, words = self.b, values
        if shape.type.bytes > 4:
            shifts = [splat_constant(32 * n, shape.element) for n in range(shape.type.bytes // 4)]
            words = [b.trunc(b.lshr(v, shift), vector(I32)) for v in values for shift in shifts]
        for w, word in enumerate(words):
            b.store(word, b.gep(pointer, [I64(128 * w)], source_etype=I8), align=128)

    # ---- any other access -----------------------------------------------------------------------

    def _call(
        self, index: int, shape: Shape, function: Value, addresses: Value, mask: Value
    ) -> None:
        """Call an access function, and leave where it reports a fault."""
        base, limit = self._space(shape.space)
        fault = self.b.call(
            function,
            [
                self.frame.environment,
                self.row(index, shape.space),
                self._cache(index, shape.space),
                addresses,
                self.lanes.bits(mask),
                self._data(0),
                base,
                limit,
            ],
        )
        with self.b.if_then(self.b.icmp_unsigned("!=", fault, I64(0)), likely=False):
            self.frame.record(Slot.FAULT_INSTRUCTION, I64(index))
            self.frame.record(Slot.FAULT_WARP, self.frame.warp)
            self.frame.record(Slot.FAULT_SPACE, I64(SPACE_CODES[shape.space]))
            self.frame.leave(Status.FAULT)

    def atomic(
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
            self.operands.read(element, unsigned(type.bits))
            for source in sources
            for element in elements(source)
        ]
        for number, value in enumerate(given):
            self.b.store(value, self._data(number * type.bytes * LANES), align=16)
        space = space_of(made)

        def apply(part: Space, offsets: Value, there: Value) -> None:
            shape = Shape("atomic", part, type, parts)
            function = self.functions.atomic(shape, operation, len(sources))
            self._call(index, shape, function, offsets, there)

        if space is Space.GENERIC:
            self._by_space(addresses, mask, apply)
        else:
            apply(space, addresses, mask)
        answer = operation.answer(len(sources))
        results: list[tuple[Operand, Value, ScalarType]] = []
        for place, target in enumerate(e for o in made.operands[:first] for e in elements(o)):
            at = self._data((2 * parts + place) * type.bytes * LANES)
            value = self.b.load(at, typ=vector(ir.IntType(type.bits)), align=16)
            if answer.op != "arg":
                value = self.operands.lower(answer, [value, *given[place::parts]])
            results.append((target, value, answer.type))
        return results

    def complete(self, index: int, address: Operand, amounts: Value, mask: Value) -> None:
        """Tell the mbarriers at an address of bytes that have come."""
        self.b.store(amounts, self._data(0), align=16)
        shape = Shape("store", Space.SHARED, U64)
        where = self.operands.address(address)
        self._call(index, shape, self.functions.completion(), where, mask)

    def _by_space(self, addresses: Value, mask: Value, each: _EachSpace) -> None:
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
        self, index: int, address: Operand, type: ScalarType, parts: int, mask: Value
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
                    self._space(Space.PARAM)[0], [I64(offset + k * type.bytes)], source_etype=I8
                )
                for k in range(parts)
            ]
            return [p.splat(p.b.load(a, typ=element, align=1)) for a in at]
        shape = Shape("load", Space.PARAM, type, parts)
        self._call(index, shape, self.functions.plain(shape), self.operands.address(address), mask)
        return [
            self.b.load(self._data(k * shape.part_bytes), typ=vector(element), align=16)
            for k in range(parts)
        ]

    def _load_pieces(self, offset: int, type: ScalarType, parts: int) -> list[Value]:
        """Values put together from the pieces of the frame that they cover."""
        values: list[Value] = []
        whole = vector(ir.IntType(type.bits))
        for start in range(offset, offset + parts * type.bytes, type.bytes):
            value: Value = ir.Constant(whole, None)
            for at, register in self._covered(start, type):
                piece = self.frame.load(register)
                if register.type.bits < type.bits:
                    piece = self.b.zext(piece, whole)
                    shift = splat_constant(8 * (at - start), ir.IntType(type.bits))
                    piece = self.b.shl(piece, shift)
                value = self.b.or_(value, piece)
            values.append(value)
        return values

    def _store_pieces(
        self, offset: int, type: ScalarType, values: list[Value], mask: Value
    ) -> None:
        for number, value in enumerate(values):
            start = offset + number * type.bytes
            for at, register in self._covered(start, type):
                shift = splat_constant(8 * (at - start), value.type.element)
                piece = self.b.lshr(value, shift)
                self.operands.write(register, piece, unsigned_of(value), mask)

    def _covered(self, start: int, type: ScalarType) -> list[tuple[int, Register]]:
        return [(at, r) for at, r in self.frame.pieces.items() if start <= at < start + type.bytes]

    # ---- places ---------------------------------------------------------------------------------

    def _route(self, index: int) -> str:
        """STACK for what a call keeps in local memory."""
        return STACK if index in self.frame.program.private else ""

    def row(self, index: int, space: Space) -> Value:
        row = self.rows.get((index, space), 0)
        return self.lanes.slot(self.frame.rows, row * ROW_WIDTH)

    def _cache(self, index: int, space: Space) -> Value:
        row = self.rows.get((index, space), 0)
        return self.lanes.slot(self.frame.pointer(Slot.CACHE_AT), 2 * row)

    def _data(self, offset: int) -> Value:
        return self.b.gep(self.data, [I64(offset)], source_etype=I8)

    def _space(self, space: Space) -> tuple[Value, Value]:
        """Where a space begins on the host, and its length in bytes; zeros for global memory."""
        if space not in self._spaces:
            self._spaces[space] = self._find_space(space)
        return self._spaces[space]

    def _find_space(self, space: Space) -> tuple[Value, Value]:
        frame, b = self.frame, self.frame.prologue.b
        if space is Space.SHARED:
            return frame.pointer(Slot.SHARED_AT), frame.slot(Slot.SHARED_BYTES)
        if space is Space.PARAM:
            return frame.pointer(Slot.PARAMETERS_AT), I64(frame.program.parameter_bytes)
        if space is Space.LOCAL:
            size = frame.program.local_bytes
            offset = b.mul(frame.warp, I64(local_stride(size)))
            return b.gep(frame.pointer(Slot.LOCAL_AT), [offset], source_etype=I8), I64(size)
        return ir.Constant(PTR, None), I64(0)


def _is_inlined(shape: Shape) -> bool:
    """Whether the common way of an access with a generic address is inlined: it comes once for each
    space that the address may lead to, which is too much code for what is rare."""
    return shape.size >= 4 and shape.space in (Space.GLOBAL, Space.SHARED)


def local_stride(local_bytes: int) -> int:
    """Host bytes of one warp's local memory: whole words, all lanes."""
    return (local_bytes + 3) // 4 * 4 * LANES


def elements(operand: Operand) -> tuple[Operand, ...]:
    """The elements of a vector operand, or the operand itself."""
    return operand.elements if isinstance(operand, Vector) else (operand,)


def lane_pick(order: list[int]) -> ir.Constant:
    """A shuffle's selection."""
    return ir.Constant(ir.VectorType(I32, len(order)), [I32(i) for i in order])


def unsigned_of(value: Value) -> ScalarType:
    """The unsigned type as wide as a vector's elements."""
    return unsigned(value.type.element.width)
