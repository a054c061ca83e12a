"""Describes where an inlined access reaches, and emits what its moves have in common
(`lower.access.loads`, `lower.access.stores`). That the places are inside of an allocation has been
found before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llvmlite import ir

from warploom.abi.access_type import AccessType
from warploom.llvm.lanes import (
    I1,
    I8,
    I32,
    I64,
    LANES,
    MASK,
    PTR,
    Lanes,
    Value,
    repeated,
    selection,
    splat_constant,
    undefined,
    vector,
    zero,
)
from warploom.llvm.masked_memory import gather
from warploom.lower.access.places import LOCAL_ROW_BITS

WORD_BYTES = 4
AHEAD = 1024
"""How far ahead loads ask for what comes: some warps, and inside of most rows of matrices."""

HOST_LINE = 64
"""Bytes of a line of the host's caches."""


@dataclass(frozen=True, slots=True)
class LaneAddresses:
    """Holds where the lanes of a warp reach: the access, where each run begins (`firsts`), the
    lanes that are `on`, None for all. `stride`: bytes from lane to lane in each run, where that is
    known before the program runs; else `step` says it, and `pointers` where each lane reaches on
    the host. `begins`: of runs of two lanes, where each begins on the host, as a vector."""

    access_type: AccessType
    firsts: Sequence[Value]
    on: Value | None = None
    stride: int = 0
    step: Value | None = None
    pointers: Value | None = None
    begins: Value | None = None

    @property
    def mask(self) -> Value:
        """Returns the lanes that are on."""
        return ir.Constant(MASK, [I1(1)] * LANES) if self.on is None else self.on


class Transfers:
    """Emits what moves are made of. `pointer` gives where an address leads on the host; of local
    memory, that of lane 0."""

    def __init__(self, lanes: Lanes, pointer: Callable[[AccessType, Value], Value]) -> None:
        self.lanes, self.b, self.pointer = lanes, lanes.b, pointer

    def pointers(self, lane_addresses: LaneAddresses) -> Value:
        """Returns where each lane reaches on the host."""
        if lane_addresses.pointers is not None:
            return lane_addresses.pointers
        b, begins = self.b, self._begins(lane_addresses)
        length = LANES // begins.type.count
        spread = b.shuffle_vector(begins, begins, selection(n // length for n in range(LANES)))
        steps = [I64(lane % length * lane_addresses.stride) for lane in range(LANES)]
        return b.gep(spread, [ir.Constant(vector(I64), steps)], source_etype=I8)

    def _begins(self, lane_addresses: LaneAddresses) -> Value:
        """Returns where each run begins on the host."""
        if lane_addresses.begins is not None:
            return lane_addresses.begins
        begins: Value = undefined(ir.VectorType(PTR, len(lane_addresses.firsts)))
        for run, first in enumerate(lane_addresses.firsts):
            begins = self.b.insert_element(
                begins, self.pointer(lane_addresses.access_type, first), I32(run)
            )
        return begins

    def part(self, pointers: Value, access_type: AccessType, part: int) -> Value:
        """Returns where one part of each lane's elements begins."""
        ahead = repeated(part * access_type.type.bytes, I64, pointers.type.count)
        return self.b.gep(pointers, [ahead], source_etype=I8) if part else pointers

    def pairs(self, on: Value) -> tuple[Value, Value]:
        """Returns in which runs of two lanes the first one is on, and whether in some of them one
        is on and the other is not."""
        b, bits = self.b, self.lanes.bits(on)
        both = ir.VectorType(I32, LANES // 2)
        firsts = ir.Constant(both, [I32(1 << lane) for lane in range(0, LANES, 2)])
        first = b.and_(self.lanes.splat(bits, LANES // 2), firsts)
        differ = b.and_(b.xor(bits, b.lshr(bits, I32(1))), I32(0x55555555))
        return b.icmp_unsigned("!=", first, zero(both)), b.icmp_unsigned("!=", differ, I32(0))

    def mask_of(self, lane_addresses: LaneAddresses, run: int) -> Value:
        """Returns the mask of a run, each lane as often as it has elements."""
        runs, parts = len(lane_addresses.firsts), lane_addresses.access_type.parts
        if runs == 1 and parts == 1:
            return lane_addresses.on
        length = LANES // runs
        lanes = [run * length + lane for lane in range(length) for _ in range(parts)]
        return self.b.shuffle_vector(lane_addresses.on, lane_addresses.on, selection(lanes))

    def local_row(self, pointer: Value, number: int) -> Value:
        """Returns where the row of a word begins in local memory."""
        return self.b.gep(pointer, [I64(number << LOCAL_ROW_BITS)], source_etype=I8)

    def gather(self, access_type: AccessType, pointers: Value, on: Value) -> Value:
        """Gather one element a lane. There is no instruction that gathers less than words: a
        narrower element is cut out of the aligned word that it lies in."""
        b, element = self.b, access_type.element
        if access_type.type.bytes >= WORD_BYTES:
            return gather(self.lanes, pointers, on, element)
        places = b.ptrtoint(pointers, vector(I64))
        inside = splat_constant(WORD_BYTES - 1, I64)
        whole = b.inttoptr(b.and_(places, b.not_(inside)), vector(PTR))
        words = gather(self.lanes, whole, on, I32)
        bits = b.shl(b.trunc(b.and_(places, inside), vector(I32)), splat_constant(3, I32))
        return b.trunc(b.lshr(words, bits), vector(element))

    def fetch(self, access_type: AccessType, first: Value, ahead: range) -> None:
        """Asks for the bytes `ahead` of a place to come into the host's second cache. They may lie
        outside of any allocation: then nothing comes."""
        pointer = self.pointer(access_type, first)
        for line in range(ahead.start, ahead.stop, HOST_LINE):
            place = self.b.gep(pointer, [I64(line)], source_etype=I8)
            reads, second, data = I32(0), I32(2), I32(1)
            self.lanes.intrinsic("llvm.prefetch.p0", ir.VoidType(), [place, reads, second, data])
