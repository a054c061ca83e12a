"""Emits the addresses of the storage that memory instructions use in a warp function: access
records, cached allocation bounds, state spaces, and the buffer of operands and results.
"""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.access_type import DATA_BYTES, AccessType
from warploom.abi.environment import Slot, local_stride
from warploom.cost.deferred_atomics import AccessCounts
from warploom.isa.instruction import Space
from warploom.llvm.lanes import I8, I64, PTR, Value
from warploom.lower.frame.frame import Frame

LOCAL_ROW_BITS = 7
"""In local memory, the same 4-byte word of all lanes is one row of 128 bytes."""


class AccessStorage:
    """Emits addresses of one warp function's storage. Access records are numbered by instruction
    and state space.
    """

    def __init__(self, frame: Frame) -> None:
        """Numbers the access records, and allocates the data buffer on the stack."""
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self.record_numbers: dict[tuple[int, Space], int] = {
            (record.instruction, record.space): i for i, record in enumerate(frame.layout.records)
        }
        self._data = frame.prologue.alloca(ir.ArrayType(I8, DATA_BYTES), align=64)

    def record_address(self, index: int, space: Space) -> Value:
        """Returns the address of the access record of an instruction and a state space, in which
        compiled code counts the access; of record 0 if it has none."""
        return self.lanes.slot(
            self.frame.records, self.record_number(index, space) * AccessCounts.WORDS
        )

    def record_number(self, index: int, space: Space) -> int:
        """Returns the number of the access record of an instruction and a state space; 0 if it has
        none.
        """
        return self.record_numbers.get((index, space), 0)

    def cache(self, index: int, space: Space) -> Value:
        """Returns the address of the two bounds (begin and end) of the allocation that an
        instruction accessed last in a space, an inline cache; those of record 0 if it has no
        record."""
        record = self.record_numbers.get((index, space), 0)
        return self.lanes.slot(self.frame.pointer(Slot.CACHE_AT), 2 * record)

    def is_within(self, index: int, space: Space, address: Value, extent: Value) -> Value:
        """Returns true (an i1) if `extent` bytes (an i64) from address `address` lie in shared or
        local memory, or, in global and constant memory, in the allocation that the instruction
        accessed last."""
        b, low, high = self.b, I64(0), self.limit(space)
        if space in (Space.GLOBAL, Space.CONST):
            cache = self.cache(index, space)
            low, high = b.load(cache, typ=I64), b.load(self.lanes.slot(cache, 1), typ=I64)
        # The comparisons are unsigned: an address below `low` wraps around and is outside.
        span = b.sub(high, low)
        large_enough = b.icmp_unsigned(">=", span, extent)
        inside = b.icmp_unsigned("<=", b.sub(address, low), b.sub(span, extent))
        return b.and_(large_enough, inside)

    def at(self, offset: int) -> Value:
        """Returns the address of a byte offset in the data buffer on the stack, which passes
        operands and results of out-of-line accesses."""
        return self.b.gep(self._data, [I64(offset)], source_etype=I8)

    def pointer(self, access_type: AccessType, address: Value) -> Value:
        """Returns the host pointer of an address in a space; in local memory, that of lane 0's word
        that the address is in (lanes lie interleaved)."""
        if access_type.space in (Space.GLOBAL, Space.CONST):
            return self.b.inttoptr(address, PTR)
        base, _ = self.space(access_type.space)
        if access_type.space is Space.LOCAL:
            address = self.b.shl(self.b.lshr(address, I64(2)), I64(LOCAL_ROW_BITS))
        return self.b.gep(base, [address], source_etype=I8)

    def limit(self, space: Space) -> Value:
        """Returns the length in bytes of shared memory, or of one lane's local memory."""
        if space is Space.SHARED:
            return self.frame.slot(Slot.SHARED_BYTES)
        return I64(self.frame.program.local_bytes)

    def space(self, space: Space) -> tuple[Value, Value]:
        """Returns the host address of the running warp's memory of a space and its length in bytes
        (of local memory: that of one lane); a null pointer and 0 for global and constant memory,
        whose addresses are host addresses."""
        frame, b = self.frame, self.b
        if space is Space.SHARED:
            return frame.pointer(Slot.SHARED_AT), self.limit(space)
        if space is Space.PARAM:
            return frame.pointer(Slot.PARAMETERS_AT), I64(frame.program.parameter_bytes)
        if space is Space.LOCAL:
            offset = b.mul(frame.warp, I64(local_stride(frame.program.local_bytes)))
            at = b.gep(frame.pointer(Slot.LOCAL_AT), [offset], source_etype=I8)
            return at, self.limit(space)
        return ir.Constant(PTR, None), I64(0)
