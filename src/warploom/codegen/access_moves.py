"""Gathers and scatters: what moves the data of an access."""

from __future__ import annotations

from llvmlite import ir

from warploom.codegen.access import Call
from warploom.codegen.lanes import I8, I32, I64, PTR, Value, lane_numbers, splat_constant, vector
from warploom.ptx.ir import Space


class AccessMoves:
    """Emits the loads or stores of one access."""

    def __init__(self, access: Call) -> None:
        self.access, self.lanes, self.b = access, access.lanes, access.lanes.b

    def physical(self, addresses: Value, ahead: int = 0) -> Value:
        """Offsets from the base, `ahead` bytes into the access.

        Local memory is interleaved: word w of lane l is word w * 32 + l.
        """
        b = self.b
        moved = b.add(addresses, splat_constant(ahead, I64)) if ahead else addresses
        if self.access.shape.space is not Space.LOCAL:
            return moved
        words = b.shl(b.lshr(moved, splat_constant(2, I64)), splat_constant(7, I64))
        inside = b.and_(moved, splat_constant(3, I64))
        return b.add(b.add(words, lane_numbers(I64, 4)), inside)

    def pointers(self, offsets: Value) -> Value:
        if self.access.shape.space in (Space.GLOBAL, Space.CONST):
            return self.b.inttoptr(offsets, vector(PTR))
        start = self.lanes.splat(self.b.ptrtoint(self.access.base, I64))
        return self.b.inttoptr(self.b.add(start, offsets), vector(PTR))

    def pointer(self, offset: Value) -> Value:
        """Where one lane's offset leads."""
        if self.access.shape.space in (Space.GLOBAL, Space.CONST):
            return self.b.inttoptr(offset, PTR)
        return self.lanes.slot(self.access.base, offset, I8)

    def move(self) -> None:
        """Gather into the data buffer or scatter out of it, one piece of an element at a time.

        In local memory an element of 8 or 16 bytes lies in several words.
        """
        element, mask = self.access.shape.element, self.lanes.mask(self.access.bits)
        split = self.access.shape.space is Space.LOCAL and self.access.shape.type.bytes > 4
        for part in range(self.access.shape.parts):
            start = [I64(part * self.access.shape.part_bytes)]
            at = self.b.gep(self.access.data, start, source_etype=I8)
            ahead = part * self.access.shape.type.bytes
            if split:
                self._move_words(at, ahead, mask)
            elif self.access.shape.op == "load":
                pointers = self.pointers(self.physical(self.access.addresses, ahead))
                self.b.store(self.lanes.gather(pointers, mask, element), at, align=16)
            else:
                pointers = self.pointers(self.physical(self.access.addresses, ahead))
                value = self.b.load(at, typ=vector(element), align=16)
                self.lanes.scatter(value, pointers, mask)

    def _move_words(self, at: Value, ahead: int, mask: Value) -> None:
        """An element of several 4-byte words, each on its own."""
        b, whole, element = self.b, vector(self.access.shape.element), self.access.shape.element
        value = b.load(at, typ=whole, align=16)
        if self.access.shape.op == "load":
            value = ir.Constant(whole, None)
        for word in range(self.access.shape.type.bytes // 4):
            pointers = self.pointers(self.physical(self.access.addresses, ahead + 4 * word))
            shift = splat_constant(32 * word, element)
            if self.access.shape.op == "load":
                found = b.zext(self.lanes.gather(pointers, mask, I32), whole)
                value = b.or_(value, b.shl(found, shift))
            else:
                narrow = b.trunc(b.lshr(value, shift), vector(I32))
                self.lanes.scatter(narrow, pointers, mask)
        if self.access.shape.op == "load":
            b.store(value, at, align=16)
