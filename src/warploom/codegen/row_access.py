"""Accesses by rows: each half of a warp reads one place, or consecutive places from one on, or
writes those.

So does a block that is 16 threads wide, or one whose lanes agree on an address. Two bases say
everything: a load is two scalar or two vector loads, a store two vector stores, and its cost is
that of its kind (`rules.rows`), which is counted once for each. The first of a kind goes the
general way, so that its addresses are kept where it is the costliest.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from warploom.codegen.access import Shape
from warploom.codegen.environment import KINDS_AT, KINDS_SEEN
from warploom.codegen.lanes import I1, I8, I32, I64, LANES, PTR, Lanes, Value, undefined, vector
from warploom.ptx.ir import Space
from warploom.rules.rows import (
    APART,
    BANK,
    CONSECUTIVE,
    EQUAL,
    LINE,
    LINE_BYTES,
    SECTOR,
    SECTOR_BYTES,
)

HALF = LANES // 2


def goes_by_rows(shape: Shape) -> bool:
    """Whether an access is worth looking at: words of 4 or 8 bytes, where lanes share memory."""
    known = shape.space in (Space.GLOBAL, Space.CONST, Space.SHARED)
    return known and shape.type.bytes in (4, 8) and shape.size <= 16


@dataclass(frozen=True)
class Rows:
    """The addresses of an access by rows: of the first lane of each half, and whether the others of
    the half follow it (else they agree with it)."""

    first: Value
    second: Value
    consecutive: Value


class RowAccess:
    """Emits accesses by rows at the place where code goes now."""

    def __init__(self, lanes: Lanes, shape: Shape) -> None:
        self.lanes, self.b, self.shape = lanes, lanes.b, shape

    def match(self, addresses: Value, mask: Value) -> tuple[Rows, Value]:
        """The two rows, and whether the addresses are such, with every lane on."""
        b, lanes, size = self.b, self.lanes, self.shape.size
        first, second = lanes.lane(addresses, 0), lanes.lane(addresses, HALF)
        step = b.sub(lanes.lane(addresses, 1), first)
        consecutive = b.icmp_unsigned("==", step, I64(size))
        if self.shape.parts > 1:
            consecutive = ir.Constant(I1, 0)  # as good as never but where all lanes follow
        known = b.or_(consecutive, b.icmp_unsigned("==", step, I64(0)))
        numbers = ir.Constant(
            vector(I64), [ir.Constant(I64, size * (lane % HALF)) for lane in range(LANES)]
        )
        inside = b.and_(numbers, lanes.splat(b.sext(consecutive, I64)))
        expected = b.add(self._halves(lanes.splat(first), lanes.splat(second)), inside)
        off = lanes.any(b.or_(b.icmp_unsigned("!=", addresses, expected), b.not_(mask)))
        unit = b.select(consecutive, I64(HALF * size - 1), I64(size - 1))
        aligned = b.icmp_unsigned("==", b.and_(b.or_(first, second), unit), I64(0))
        matches = b.and_(b.and_(known, aligned), b.not_(off))
        return Rows(first, second, consecutive), matches

    def kind(self, rows: Rows) -> Value:
        """The number of the load's kind (`rules.rows`)."""
        b = self.b
        between = b.xor(rows.first, rows.second)
        inside = b.and_(b.sub(rows.second, rows.first), I64(LINE_BYTES - 1))
        kind = b.select(b.icmp_unsigned("==", inside, I64(0)), I64(BANK), I64(APART))
        for relation, extent in ((LINE, LINE_BYTES), (SECTOR, SECTOR_BYTES), (EQUAL, 1)):
            kind = b.select(b.icmp_unsigned("<", between, I64(extent)), I64(relation), kind)
        return b.add(kind, b.select(rows.consecutive, I64(CONSECUTIVE), I64(0)))

    def count(self, row: Value, kind: Value) -> None:
        """One more load of a kind that was seen before."""
        at = self.b.add(kind, I64(KINDS_AT))
        self.lanes.add_to(self.lanes.slot(row, at), I64(1))

    def is_known(self, row: Value, kind: Value) -> Value:
        """Whether the row had a load of this kind before."""
        seen = self.b.load(self.lanes.slot(row, KINDS_SEEN), typ=I64)
        return self.b.trunc(self.b.lshr(seen, kind), I1)

    def note(self, row: Value, kind: Value) -> None:
        """The row has a load of this kind now."""
        at = self.lanes.slot(row, KINDS_SEEN)
        self.b.store(self.b.or_(self.b.load(at, typ=I64), self.b.shl(I64(1), kind)), at)

    def load(self, rows: Rows, base: Value | None) -> list[Value]:
        """What the lanes find, part by part; `base` is where the space begins on the host, if not
        at 0."""
        b, pointers = self.b, self.pointers(rows, base)
        if self.shape.parts > 1:
            return [self._agreed(pointers, part) for part in range(self.shape.parts)]
        follow, agree, done = (b.append_basic_block(n) for n in ("follow", "agree", "loaded"))
        b.cbranch(rows.consecutive, follow, agree)
        b.position_at_end(follow)
        followed = self._followed(pointers)
        b.branch(done)
        b.position_at_end(agree)
        agreed = self._agreed(pointers, 0)
        b.branch(done)
        b.position_at_end(done)
        value = b.phi(vector(self.shape.element))
        value.add_incoming(followed, follow)
        value.add_incoming(agreed, agree)
        return [value]

    def store(self, rows: Rows, base: Value | None, value: Value) -> None:
        """Store consecutive elements in each of two places; where they are the same, those of the
        higher lanes last."""
        for half, pointer in enumerate(self.pointers(rows, base)):
            lanes = [I32(half * HALF + lane) for lane in range(HALF)]
            part = self.b.shuffle_vector(value, value, ir.Constant(ir.VectorType(I32, HALF), lanes))
            self.b.store(part, pointer, align=self.shape.size)

    def pointers(self, rows: Rows, base: Value | None) -> list[Value]:
        """Where the two rows begin on the host."""
        b = self.b
        return [
            b.inttoptr(place, PTR) if base is None else b.gep(base, [place], source_etype=I8)
            for place in (rows.first, rows.second)
        ]

    def each(self, pointers: list[Value], part: int) -> Value:
        """One part of the element at each place, in as many lanes."""
        value: Value = undefined(ir.VectorType(self.shape.element, len(pointers)))
        for row, pointer in enumerate(pointers):
            value = self.b.insert_element(value, self.one(pointer, part), I32(row))
        return value

    def one(self, pointer: Value, part: int) -> Value:
        """One part of the element at a place."""
        place = self.b.gep(pointer, [I64(part)], source_etype=self.shape.element)
        return self.b.load(place, typ=self.shape.element, align=1)

    def _followed(self, pointers: list[Value]) -> Value:
        """Consecutive elements from each of two places."""
        row = ir.VectorType(self.shape.element, HALF)
        parts = [self.b.load(p, typ=row, align=self.shape.size) for p in pointers]
        whole = ir.Constant(vector(I32), [I32(lane) for lane in range(LANES)])
        return self.b.shuffle_vector(*parts, whole)

    def _agreed(self, pointers: list[Value], part: int) -> Value:
        """One part of the element at each of two places, for all lanes of its half."""
        return self._halves(*(self.lanes.splat(self.one(p, part)) for p in pointers))

    def _halves(self, first: Value, second: Value) -> Value:
        """The lower half of one vector and the upper half of another."""
        picked = [lane if lane < HALF else LANES + lane for lane in range(LANES)]
        return self.b.shuffle_vector(
            first, second, ir.Constant(vector(I32), [I32(lane) for lane in picked])
        )
