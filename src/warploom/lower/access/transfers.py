"""Describes the lane addresses of an inlined access whose guard holds, and emits what its loads and
stores have in common: pointers, masks, gathers, prefetches (`lower.access.loads`, `stores`)."""

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
from warploom.lower.access.storage import LOCAL_ROW_BITS

WORD_BYTES = 4
PREFETCH_DISTANCE = 1024
"""Bytes from an access to the line that it prefetches: some warps further, and inside of most
matrix rows."""

HOST_LINE = 64
"""Bytes of a cache line of the host."""


@dataclass(frozen=True, slots=True)
class LaneAddresses:
    """Holds the addresses of a warp's lanes in one access, and the lanes that are active.

    `firsts`: the address of the first lane of each lane run, of the first one of `repeats` equal
    runs; `on`: the active lanes, None for all.
    `stride` is the bytes from lane to lane in each run, if that is a constant; else `step` holds it
    as a value, and `pointers` the host pointer of each lane. `run_pointers` are the host pointers
    of the first lanes of 16 runs of two lanes, a vector; `splits_pairs` (an i1) is true if only one
    lane of some of these runs is active (None where that is still to be computed)."""

    access_type: AccessType
    firsts: Sequence[Value]
    on: Value | None = None
    stride: int = 0
    step: Value | None = None
    pointers: Value | None = None
    run_pointers: Value | None = None
    repeats: int = 1
    splits_pairs: Value | None = None

    @property
    def length(self) -> int:
        """Returns the number of lanes of a run."""
        return LANES // (len(self.firsts) * self.repeats)

    @property
    def mask(self) -> Value:
        """Returns the active lanes as a mask; all lanes if the access has no mask."""
        return ir.Constant(MASK, [I1(1)] * LANES) if self.on is None else self.on


class Transfers:
    """Emits the building blocks of moves. `pointer` returns the host pointer of an address; in
    local memory, that of lane 0. A part is an element of a `.v2` or `.v4` access."""

    def __init__(self, lanes: Lanes, pointer: Callable[[AccessType, Value], Value]) -> None:
        """Stores `lanes` and its builder, and `pointer`."""
        self.lanes, self.b, self.pointer = lanes, lanes.b, pointer

    def pointers(self, lane_addresses: LaneAddresses) -> Value:
        """Returns the host pointers of all lanes' first parts: given by the access, or computed
        from those of its lane runs and the constant stride."""
        if lane_addresses.pointers is not None:
            return lane_addresses.pointers
        b, run_pointers = self.b, self._run_pointers(lane_addresses)
        length = LANES // run_pointers.type.count
        spread = b.shuffle_vector(
            run_pointers, run_pointers, selection(n // length for n in range(LANES))
        )
        steps = [I64(lane % length * lane_addresses.stride) for lane in range(LANES)]
        return b.gep(spread, [ir.Constant(vector(I64), steps)], source_etype=I8)

    def _run_pointers(self, lane_addresses: LaneAddresses) -> Value:
        """Returns a vector of the host pointers of the first lane of each lane run: given by the
        access, or computed from the runs' addresses."""
        if lane_addresses.run_pointers is not None:
            return lane_addresses.run_pointers
        run_pointers: Value = undefined(ir.VectorType(PTR, len(lane_addresses.firsts)))
        for run, run_address in enumerate(lane_addresses.firsts):
            run_pointers = self.b.insert_element(
                run_pointers, self.pointer(lane_addresses.access_type, run_address), I32(run)
            )
        return run_pointers

    def part_pointers(self, pointers: Value, access_type: AccessType, part: int) -> Value:
        """Returns the host pointers of part `part` of each lane, from those of part 0."""
        offset = repeated(part * access_type.type.bytes, I64, pointers.type.count)
        return self.b.gep(pointers, [offset], source_etype=I8) if part else pointers

    def splits_pairs(self, lane_addresses: LaneAddresses) -> Value:
        """Returns true (an i1) if in some run of two lanes only one of both is active."""
        if lane_addresses.splits_pairs is not None:
            return lane_addresses.splits_pairs
        return self.lanes.splits_pairs(self.lanes.bits(lane_addresses.mask))

    def first_of_pairs(self, on: Value) -> Value:
        """Emits the mask of lane pairs whose first lane is active: a vector of 16 i1, of which
        element i is lane 2 i of `on`, a mask of 32 lanes."""
        both = ir.VectorType(I32, LANES // 2)
        firsts = ir.Constant(both, [I32(1 << lane) for lane in range(0, LANES, 2)])
        pair_bits = self.b.and_(self.lanes.splat(self.lanes.bits(on), LANES // 2), firsts)
        return self.b.icmp_unsigned("!=", pair_bits, zero(both))

    def run_pointer(self, lane_addresses: LaneAddresses, run: int, *, reverse: bool) -> Value:
        """Returns the host pointer of the first lane of a lane run; with `reverse` of the last one,
        by the constant stride."""
        pointer = self.pointer(lane_addresses.access_type, lane_addresses.firsts[run])
        if not reverse:
            return pointer
        last = lane_addresses.length - 1
        return self.b.gep(pointer, [I64(last * lane_addresses.stride)], source_etype=I8)

    def run_mask_of(
        self, lane_addresses: LaneAddresses, run: int, *, reverse: bool = False
    ) -> Value:
        """Returns the mask of one lane run, each lane repeated once for each of its parts, the last
        lane first with `reverse`; the access has a mask. A lane of equal runs is active if it is so
        in one of them."""
        length, parts = lane_addresses.length, lane_addresses.access_type.parts
        if length == LANES and parts == 1 and not reverse:
            return lane_addresses.on
        begin, order = run * length * lane_addresses.repeats, range(length)
        lanes = [begin + lane for lane in (order[::-1] if reverse else order) for _ in range(parts)]
        on = self._in_first_runs(lane_addresses)
        return self.b.shuffle_vector(on, on, selection(lanes))

    def _in_first_runs(self, lane_addresses: LaneAddresses) -> Value:
        """Returns a mask whose lanes of each first one of equal runs are active if they are so in
        one of these runs; other lanes are undefined. With one run, it is the mask of the access."""
        if lane_addresses.repeats == 1:
            return lane_addresses.on
        b, bits, distance = self.b, self.lanes.bits(lane_addresses.on), lane_addresses.length
        # Each step joins twice as many runs; the next ones follow the first.
        while distance < lane_addresses.length * lane_addresses.repeats:
            bits, distance = b.or_(bits, b.lshr(bits, I32(distance))), 2 * distance
        return self.lanes.mask(bits)

    def local_row(self, pointer: Value, number: int) -> Value:
        """Emits the address of another row of local memory, in which a row (128 bytes) holds one
        word of 4 bytes of each of the 32 lanes: the row `number` rows after the one at `pointer`, a
        host pointer. `number` is known at compile time."""
        return self.b.gep(pointer, [I64(number << LOCAL_ROW_BITS)], source_etype=I8)

    def gather(self, access_type: AccessType, pointers: Value, on: Value) -> Value:
        """Gathers one element of each lane in `on`; returns 32 lanes, 0 in others. The host has no
        gather of less than 4 bytes: a narrower element is extracted from the aligned word around
        it."""
        b, element = self.b, access_type.element
        if access_type.type.bytes >= WORD_BYTES:
            return gather(self.lanes, pointers, on, element)
        addresses = b.ptrtoint(pointers, vector(I64))
        inside = splat_constant(WORD_BYTES - 1, I64)
        # Bytes of the word beyond the allocation are dropped; to read them cannot fault, since an
        # aligned word does not cross a page.
        whole = b.inttoptr(b.and_(addresses, b.not_(inside)), vector(PTR))
        words = gather(self.lanes, whole, on, I32)
        bits = b.shl(b.trunc(b.and_(addresses, inside), vector(I32)), splat_constant(3, I32))
        return b.trunc(b.lshr(words, bits), vector(element))

    def prefetch(self, access_type: AccessType, address: Value, offset: range) -> None:
        """Prefetches the bytes at `offset` (a range, from an address) into the host's second-level
        cache, line by line. They may lie outside of any allocation: a prefetch cannot fault."""
        pointer = self.pointer(access_type, address)
        for line in range(offset.start, offset.stop, HOST_LINE):
            line_address = self.b.gep(pointer, [I64(line)], source_etype=I8)
            reads, second_level, data = I32(0), I32(2), I32(1)
            self.lanes.intrinsic(
                "llvm.prefetch.p0", ir.VoidType(), [line_address, reads, second_level, data]
            )
