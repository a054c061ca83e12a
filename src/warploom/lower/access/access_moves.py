"""Emits the data movement in an out-of-line access function, by vectors, gathers or lane by lane:
between memory and the data buffer, which holds each element of all lanes side by side.

    buffer of `ld.global.v2.f32`:  x of lanes 0..31, then y of lanes 0..31

Elements that the access's pattern shows to be consecutive move as one masked vector. Other loads
are gathers, other stores go lane by lane; longer elements in local memory move word by word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from llvmlite import ir

from warploom.abi.access_type import AccessType
from warploom.cost.pattern_table import ANY_STEP
from warploom.ir.access_plans import Move
from warploom.isa.instruction import Space
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
from warploom.lower.access.access_call import AccessCall
from warploom.lower.access.loads import load
from warploom.lower.access.stores import store
from warploom.lower.access.transfers import LaneAddresses, Transfers


class AccessMoves:
    """Emits the loads or stores of one access function, between memory and the data buffer. The
    buffer has 32 lanes of each part (element of a `.v2` or `.v4` access). Offsets count from the
    base of the access's space; global ones are host addresses."""

    def __init__(self, access: AccessCall) -> None:
        """Stores the access function, and creates the transfers whose addresses are offsets in its
        space."""
        self.access, self.lanes, self.b = access, access.lanes, access.lanes.b
        self._transfers = Transfers(self.lanes, self._host_pointer)

    def physical(self, addresses: Value, offset: int = 0) -> Value:
        """Returns the lanes' offsets in host memory from the base of their space, plus `offset`
        bytes: the addresses, except in local memory.

        Local memory is interleaved: the 4-byte word w of lane l is word w * 32 + l, so that a
        uniform address is one row of 128 bytes."""
        b = self.b
        moved = b.add(addresses, splat_constant(offset, I64)) if offset else addresses
        if self.access.access_type.space is not Space.LOCAL:
            return moved
        # Byte 6 of lane 3 is byte 2 of the lane's word 1: at 1 * 128 + 3 * 4 + 2 = 142.
        words = b.shl(b.lshr(moved, splat_constant(2, I64)), splat_constant(7, I64))
        inside = b.and_(moved, splat_constant(3, I64))
        return b.add(b.add(words, lane_numbers(I64, 4)), inside)

    def pointers(self, offsets: Value) -> Value:
        """Returns the host pointers of offsets in the access's space (64-bit lanes), lane by lane;
        in global and constant memory, offsets are host addresses themselves."""
        if self.access.access_type.space in (Space.GLOBAL, Space.CONST):
            return self.b.inttoptr(offsets, vector(PTR))
        start = self.lanes.splat(self.b.ptrtoint(self.access.base, I64))
        return self.b.inttoptr(self.b.add(start, offsets), vector(PTR))

    def pointer(self, offset: Value) -> Value:
        """Returns the host pointer of one lane's offset; in global and constant memory, an offset
        is the host address itself."""
        if self.access.access_type.space in (Space.GLOBAL, Space.CONST):
            return self.b.inttoptr(offset, PTR)
        return self.lanes.slot(self.access.base, offset, I8)

    def move(self, first_and_step: tuple[Value, Value] | None) -> None:
        """Loads into the data buffer or stores out of it, by the move of the access plan.
        `first_and_step` is the offset of the lowest active lane and the stride from lane to lane
        (`cost.pattern_table`), None where the access was not counted by pattern: Move.BY_PATTERN
        requires it, the other moves ignore it."""
        MOVES[self.access.plan.move](self, first_and_step)

    def by_pattern(self, first_and_step: tuple[Value, Value] | None) -> None:
        """Moves one vector if the pattern's stride is the size of an element with its parts, or
        only one lane is active (ANY_STEP); else, as for new patterns (NO_STEP), moves lane by lane
        (`each_lane`). The choice is made at run time. `first_and_step` must not be None."""
        assert first_and_step is not None
        b, (first_offset, step) = self.b, first_and_step
        size = self.access.access_type.size
        consecutive = b.or_(
            b.icmp_unsigned("==", step, I64(size)), b.icmp_unsigned("==", step, I64(ANY_STEP))
        )
        with b.if_else(consecutive) as (then, otherwise):
            with then:
                bits = b.zext(self.access.bits, I64)
                lowest = self.lanes.intrinsic("llvm.cttz.i64", I64, [bits, I1(0)])
                # The pattern has the lowest active lane; the masked vector begins at lane 0.
                self._move_vector(b.sub(first_offset, b.mul(lowest, I64(size))))
            with otherwise:
                self.each_lane(first_and_step)

    def _move_vector(self, lane_0_offset: Value) -> None:
        """Moves consecutive elements, with all parts, by one masked vector access. `lane_0_offset`
        is the offset of lane 0 (in global memory the address), also where that lane is off."""
        access_type = self.access.access_type
        lane_addresses = LaneAddresses(
            access_type, [lane_0_offset], self.lanes.wide_mask(self.access.bits)
        )
        buffers = [self._part_buffer(part) for part in range(access_type.parts)]
        if access_type.op == "load":
            values = load(self._transfers, Move.VECTOR, lane_addresses)
            for value, at in zip(values, buffers, strict=True):
                self.b.store(value, at, align=16)
        else:
            values = [self.b.load(at, typ=vector(access_type.element), align=16) for at in buffers]
            store(self._transfers, Move.VECTOR, lane_addresses, values)

    def _host_pointer(self, _: AccessType, offset: Value) -> Value:
        """Returns the host pointer of an address, an offset in the access's space, in the signature
        that `Transfers` needs; the access type is not used."""
        return self.pointer(offset)

    def _part_buffer(self, part: int) -> Value:
        """Returns the address in the data buffer of the 32 lanes of part `part`."""
        start = [I64(part * self.access.access_type.part_bytes)]
        return self.b.gep(self.access.data, start, source_etype=I8)

    def each_lane(self, _first_and_step: tuple[Value, Value] | None) -> None:
        """Moves the active lanes' data part by part: a load by a gather, a store by a loop over
        lanes. The argument is not used."""
        access_type, mask = self.access.access_type, self.lanes.wide_mask(self.access.bits)
        for part in range(access_type.parts):
            at = self._part_buffer(part)
            offsets = self.physical(self.access.addresses, part * access_type.type.bytes)
            if access_type.op == "load":
                value = self._transfers.gather(access_type, self.pointers(offsets), mask)
                self.b.store(value, at, align=16)
            else:
                self._scatter(offsets, at)

    def _scatter(self, offsets: Value, at: Value) -> None:
        """Stores one part of each active lane, from the buffer at address `at`, to memory at
        `offsets`, the lowest lane first, so that the highest of several at one address survives.
        The loop is as fast as the host's scatter instructions, and these have no form for 8 or 16
        bits."""
        b, element = self.b, self.access.access_type.element
        stored_offsets = self.access.store_lanes(offsets)
        head, body, done = (self.access.function.append_basic_block() for _ in range(3))
        before = b.block
        b.branch(head)
        b.position_at_end(head)
        remaining = b.phi(I32)
        remaining.add_incoming(self.access.bits, before)
        b.cbranch(b.icmp_unsigned("!=", remaining, I32(0)), body, done)
        b.position_at_end(body)
        lane = b.zext(self.lanes.intrinsic("llvm.cttz.i32", I32, [remaining, I1(1)]), I64)
        lane_offset = b.load(self.lanes.slot(stored_offsets, lane), typ=I64)
        value = b.load(self.lanes.slot(at, lane, element), typ=element)
        b.store(value, self.pointer(lane_offset), align=element.width // 8)
        remaining.add_incoming(b.and_(remaining, b.sub(remaining, I32(1))), b.block)
        b.branch(head)
        b.position_at_end(done)

    def words(self, _first_and_step: tuple[Value, Value] | None) -> None:
        """Moves elements of 8 or 16 bytes in local memory, part by part in words of 4 bytes, which
        lie in several rows there: loads gather, stores scatter. The argument is not used."""
        access_type, mask = self.access.access_type, self.lanes.wide_mask(self.access.bits)
        for part in range(access_type.parts):
            self._move_words(self._part_buffer(part), part * access_type.type.bytes, mask)

    def _move_words(self, at: Value, offset: int, mask: Value) -> None:
        """Moves one element of each lane, of several 4-byte words, between the buffer at `at` and
        local memory at `offset` bytes from the lane's address, by a gather or a scatter of each
        word. A load sets inactive lanes to 0."""
        b, whole, element = (
            self.b,
            vector(self.access.access_type.element),
            self.access.access_type.element,
        )
        value = b.load(at, typ=whole, align=16)
        if self.access.access_type.op == "load":
            value = ir.Constant(whole, None)
        for word in range(self.access.access_type.type.bytes // 4):
            pointers = self.pointers(self.physical(self.access.addresses, offset + 4 * word))
            shift = splat_constant(32 * word, element)
            if self.access.access_type.op == "load":
                word_value = b.zext(gather(self.lanes, pointers, mask, I32), whole)
                value = b.or_(value, b.shl(word_value, shift))
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
"""The emitters of the moves of access functions; atomics have `LaneByLane`."""
