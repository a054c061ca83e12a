"""Emits how the data of an access out of line move."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from llvmlite import ir

from warploom.abi.access_type import AccessType
from warploom.cost.pattern_table import ANY_STEP
from warploom.ir.access_plans import Move
from warploom.llvm.lanes import (
    I1,
    I8,
    I32,
    I64,
    PTR,
    Value,
    lane_numbers,
    splat_constant,
    vector,
)
from warploom.llvm.masked_memory import gather, scatter
from warploom.lower.access.access_call import Call
from warploom.lower.access.loads import load
from warploom.lower.access.stores import store
from warploom.lower.access.transfers import LaneAddresses, Transfers
from warploom.ptx.ir import Space


class AccessMoves:
    """Emits the loads or stores of one access."""

    def __init__(self, access: Call) -> None:
        self.access, self.lanes, self.b = access, access.lanes, access.lanes.b
        self._transfers = Transfers(self.lanes, self._place)

    def physical(self, addresses: Value, ahead: int = 0) -> Value:
        """Offsets from the base, `ahead` bytes into the access.

        Local memory is interleaved: word w of lane l is word w * 32 + l.
        """
        b = self.b
        moved = b.add(addresses, splat_constant(ahead, I64)) if ahead else addresses
        if self.access.access_type.space is not Space.LOCAL:
            return moved
        words = b.shl(b.lshr(moved, splat_constant(2, I64)), splat_constant(7, I64))
        inside = b.and_(moved, splat_constant(3, I64))
        return b.add(b.add(words, lane_numbers(I64, 4)), inside)

    def pointers(self, offsets: Value) -> Value:
        if self.access.access_type.space in (Space.GLOBAL, Space.CONST):
            return self.b.inttoptr(offsets, vector(PTR))
        start = self.lanes.splat(self.b.ptrtoint(self.access.base, I64))
        return self.b.inttoptr(self.b.add(start, offsets), vector(PTR))

    def pointer(self, offset: Value) -> Value:
        """Returns where one lane's offset leads."""
        if self.access.access_type.space in (Space.GLOBAL, Space.CONST):
            return self.b.inttoptr(offset, PTR)
        return self.lanes.slot(self.access.base, offset, I8)

    def move(self, lie: tuple[Value, Value] | None) -> None:
        """Load into the data buffer or store out of it. `lie` says where the lowest lane that is on
        reaches and by which step the others follow (`cost.pattern_table`), if that is known."""
        MOVES[self.access.plan.move](self, lie)

    def by_pattern(self, lie: tuple[Value, Value] | None) -> None:
        """Move a vector where lanes are known to follow, else the elements of each lane."""
        assert lie is not None
        b, (first, step) = self.b, lie
        size = self.access.access_type.size
        follow = b.or_(
            b.icmp_unsigned("==", step, I64(size)), b.icmp_unsigned("==", step, I64(ANY_STEP))
        )
        with b.if_else(follow) as (then, otherwise):
            with then:
                bits = b.zext(self.access.bits, I64)
                lowest = self.lanes.intrinsic("llvm.cttz.i64", I64, [bits, I1(0)])
                self._move_together(b.sub(first, b.mul(lowest, I64(size))))
            with otherwise:
                self.each_lane(lie)

    def _move_together(self, first: Value) -> None:
        """Move consecutive elements, where lane 0 reaches `first`, or would."""
        access_type = self.access.access_type
        lane_addresses = LaneAddresses(access_type, [first], self.lanes.wide_mask(self.access.bits))
        buffers = [self._buffer(part) for part in range(access_type.parts)]
        if access_type.op == "load":
            values = load(self._transfers, Move.VECTOR, lane_addresses)
            for value, at in zip(values, buffers, strict=True):
                self.b.store(value, at, align=16)
        else:
            values = [self.b.load(at, typ=vector(access_type.element), align=16) for at in buffers]
            store(self._transfers, Move.VECTOR, lane_addresses, values)

    def _place(self, _: AccessType, first: Value) -> Value:
        return self.pointer(first)

    def _buffer(self, part: int) -> Value:
        """Returns where one part of all lanes' elements stands in the data buffer."""
        start = [I64(part * self.access.access_type.part_bytes)]
        return self.b.gep(self.access.data, start, source_etype=I8)

    def each_lane(self, _lie: tuple[Value, Value] | None) -> None:
        """Move one element of each lane at a time."""
        access_type, mask = self.access.access_type, self.lanes.wide_mask(self.access.bits)
        for part in range(access_type.parts):
            at = self._buffer(part)
            offsets = self.physical(self.access.addresses, part * access_type.type.bytes)
            if access_type.op == "load":
                found = self._transfers.gather(access_type, self.pointers(offsets), mask)
                self.b.store(found, at, align=16)
            else:
                self._scatter(offsets, at)

    def _scatter(self, offsets: Value, at: Value) -> None:
        """Store one element a lane out of the data buffer, the lowest lane first: in a loop, for
        that is as fast as the instructions that scatter, and there is none for less than words."""
        b, element = self.b, self.access.access_type.element
        places = self.access.told(offsets)
        head, body, done = (self.access.function.append_basic_block() for _ in range(3))
        before = b.block
        b.branch(head)
        b.position_at_end(head)
        left = b.phi(I32)
        left.add_incoming(self.access.bits, before)
        b.cbranch(b.icmp_unsigned("!=", left, I32(0)), body, done)
        b.position_at_end(body)
        lane = b.zext(self.lanes.intrinsic("llvm.cttz.i32", I32, [left, I1(1)]), I64)
        place = b.load(self.lanes.slot(places, lane), typ=I64)
        value = b.load(self.lanes.slot(at, lane, element), typ=element)
        b.store(value, self.pointer(place), align=element.width // 8)
        left.add_incoming(b.and_(left, b.sub(left, I32(1))), b.block)
        b.branch(head)
        b.position_at_end(done)

    def words(self, _lie: tuple[Value, Value] | None) -> None:
        """Move one word of each lane at a time: in local memory an element of 8 or 16 bytes lies in
        several."""
        access_type, mask = self.access.access_type, self.lanes.wide_mask(self.access.bits)
        for part in range(access_type.parts):
            self._move_words(self._buffer(part), part * access_type.type.bytes, mask)

    def _move_words(self, at: Value, ahead: int, mask: Value) -> None:
        """Move an element of several 4-byte words, each on its own."""
        b, whole, element = (
            self.b,
            vector(self.access.access_type.element),
            self.access.access_type.element,
        )
        value = b.load(at, typ=whole, align=16)
        if self.access.access_type.op == "load":
            value = ir.Constant(whole, None)
        for word in range(self.access.access_type.type.bytes // 4):
            pointers = self.pointers(self.physical(self.access.addresses, ahead + 4 * word))
            shift = splat_constant(32 * word, element)
            if self.access.access_type.op == "load":
                found = b.zext(gather(self.lanes, pointers, mask, I32), whole)
                value = b.or_(value, b.shl(found, shift))
            else:
                narrow = b.trunc(b.lshr(value, shift), vector(I32))
                scatter(self.lanes, narrow, pointers, mask)
        if self.access.access_type.op == "load":
            b.store(value, at, align=16)


MOVES: Mapping[Move, Callable[[AccessMoves, tuple[Value, Value] | None], None]] = {
    Move.BY_PATTERN: AccessMoves.by_pattern,
    Move.EACH_LANE: AccessMoves.each_lane,
    Move.WORDS: AccessMoves.words,
}
