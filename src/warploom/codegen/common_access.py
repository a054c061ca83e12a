"""The common access: every lane on, and addresses in the pattern that is cheapest in their space.

It is inlined: a few comparisons, one count, one vector load or store.
"""

from __future__ import annotations

from llvmlite import ir

from warploom.codegen.access import Shape
from warploom.codegen.environment import FULL
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
from warploom.codegen.places import Places
from warploom.ptx.ir import Space

AHEAD = 1024
"""How far ahead loads ask for what comes: some warps, and inside of most rows of matrices."""

HOST_LINE = 64
"""Bytes of a line of the host's caches."""


class CommonAccess:
    """Emits common accesses at the place where code goes now."""

    def __init__(self, places: Places) -> None:
        self.places, self.lanes, self.b = places, places.lanes, places.b

    def matches(self, index: int, shape: Shape, addresses: Value, mask: Value) -> Value:
        """Whether all lanes are on and their addresses the pattern that is cheapest in the space:
        consecutive and aligned, or (local, constant) all the same; inside what is known live."""
        b, size = self.b, shape.size
        first = self.lanes.lane(addresses, 0)
        same = shape.space in (Space.LOCAL, Space.CONST)
        stride = 0 if same else size
        expected = b.add(self.lanes.splat(first), lane_numbers(I64, stride))
        off = self.lanes.any(b.or_(b.icmp_unsigned("!=", addresses, expected), b.not_(mask)))
        return b.and_(b.not_(off), self.fits(index, shape, first))

    def fits(self, index: int, shape: Shape, first: Value) -> Value:
        """Whether such an access is aligned from its first address on, and inside what is known
        live."""
        b = self.b
        same = shape.space in (Space.LOCAL, Space.CONST)
        extent = shape.size if same else LANES * shape.size
        crooked = b.and_(first, I64(self.alignment(shape) - 1))
        aligned = b.icmp_unsigned("==", crooked, I64(0))
        return b.and_(aligned, self.inside(index, shape.space, first, extent))

    def alignment(self, shape: Shape) -> int:
        """To how many bytes the first address must be aligned, for the access to cost the least."""
        by_word = shape.space is Space.SHARED and (
            shape.size < 4 or self.places.frame.layout.rules.shared_by_rows
        )
        if shape.space is Space.GLOBAL or by_word:
            return LANES * shape.size
        return shape.size

    def inside(self, index: int, space: Space, first: Value, extent: int) -> Value:
        """Whether `extent` bytes from `first` lie in the space, or in the allocation last used."""
        return self.within(index, space, first, I64(extent))

    def within(self, index: int, space: Space, first: Value, extent: Value) -> Value:
        """The same for an extent that is known as code runs."""
        b, (low, high) = self.b, self.bounds(index, space)
        room = b.sub(high, low)
        large_enough = b.icmp_unsigned(">=", room, extent)
        within = b.icmp_unsigned("<=", b.sub(first, low), b.sub(room, extent))
        return b.and_(large_enough, within)

    def bounds(self, index: int, space: Space) -> tuple[Value, Value]:
        """Where the space begins and ends, or the allocation that the access reached last."""
        if space not in (Space.GLOBAL, Space.CONST):
            return I64(0), self.places.space(space)[1]
        cache = self.places.cache(index, space)
        return self.b.load(cache, typ=I64), self.b.load(self.lanes.slot(cache, 1), typ=I64)

    def count(self, index: int, space: Space, first: Value, times: Value) -> None:
        """So many more common accesses; in shared memory by whether they start on a line or a
        sector."""
        b, row = self.b, self.places.row(index, space)
        if space is not Space.SHARED:
            self.lanes.add_to(self.lanes.slot(row, FULL), times)
            return
        off_line, off_sector = (
            b.zext(b.icmp_unsigned("!=", b.and_(first, I64(n - 1)), I64(0)), I64) for n in (128, 32)
        )
        column = b.add(I64(FULL), b.add(off_line, off_sector))
        self.lanes.add_to(self.lanes.slot(row, column), times)

    def pointer(self, shape: Shape, first: Value) -> Value:
        """Where an access reaches on the host."""
        if shape.space in (Space.GLOBAL, Space.CONST):
            return self.b.inttoptr(first, PTR)
        base, _ = self.places.space(shape.space)
        offset = (
            self.b.shl(self.b.lshr(first, I64(2)), I64(7))
            if (shape.space is Space.LOCAL)
            else first
        )
        return self.b.gep(base, [offset], source_etype=I8)

    def fetch_ahead(self, shape: Shape, first: Value) -> None:
        """Ask for what lies `AHEAD` bytes behind an access to come into the host's second cache.
        It may lie outside of any allocation: then nothing comes."""
        pointer, extent = self.pointer(shape, first), LANES * shape.size
        for line in range(AHEAD, AHEAD + extent, HOST_LINE):
            place = self.b.gep(pointer, [I64(line)], source_etype=I8)
            reads, second, data = I32(0), I32(2), I32(1)
            given = [place, reads, second, data]
            self.lanes.intrinsic("llvm.prefetch.p0", ir.VoidType(), given)

    def load(self, shape: Shape, first: Value) -> list[Value]:
        """The elements that each lane finds, part by part, from the first lane's address on."""
        b, pointer, count = self.b, self.pointer(shape, first), shape.parts
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

    def store(self, shape: Shape, first: Value, values: list[Value]) -> None:
        """Store the elements of each lane, given part by part, from the first lane's address on."""
        pointer = self.pointer(shape, first)
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


def lane_pick(order: list[int]) -> ir.Constant:
    """A shuffle's selection."""
    return ir.Constant(ir.VectorType(I32, len(order)), [I32(i) for i in order])
