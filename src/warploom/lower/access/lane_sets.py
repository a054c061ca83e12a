"""Emits the lookup of the lane set that executes an access, an active mask with the thread layout
of the warp, in the kernel's hash table. Its number there selects the entry of an inline cache of
address ranges (`abi.range_cache`).

A kernel has a small hash table of lane sets. The full mask of the common layout is FULL_SET without
a lookup. Example: `if (tid < 100)` makes warp 3 execute with mask 0xf, which gets a number of its
own in the table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from llvmlite import ir

from warploom.abi.environment import Slot
from warploom.abi.range_cache import (
    BUCKET,
    FULL_SET,
    HASH_SHIFT,
    LAYOUT_FACTOR,
    LAYOUT_SHIFT,
    MASK_FACTOR,
    NO_SET,
)
from warploom.isa.instruction import Instruction
from warploom.llvm.lanes import I1, I32, I64, LANES, Value
from warploom.lower.frame.frame import Frame
from warploom.shapes.warp_layout import RUNS


@dataclass(frozen=True)
class LaneSet:
    """Holds a lane set: its key (mask and layout), its number in the kernel's table, and whether it
    is full wherever code uses it."""

    key: Value
    number: Value
    is_full: bool = False


FULL_WARP = LaneSet(I64((1 << LANES) - 1), I64(FULL_SET), is_full=True)
"""All lanes of a warp with the common layout."""


class LaneSets:
    """Emits lookups in the kernel's table of lane sets: active masks with a thread layout's number.

    The table follows the access records; the layout is that of threads in the running warp. A lane
    set's number selects its entry in every range cache."""

    def __init__(self, frame: Frame) -> None:
        """Begins with no lane set looked up. If the variant's `warp_layout` has several lane runs
        in a warp, and not all warps of a block are `alike`, the key of a lane set includes the
        layout's number."""
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self._count = frame.layout.caches.sets
        self._begin = frame.layout.caches_at
        self._key_has_layout = (
            RUNS.get(frame.variant.warp_layout, 1) > 1 and not frame.variant.alike
        )
        self._block_set: LaneSet | None = None
        self._single_entry = True

    def begin(self, *, single_entry: bool) -> None:
        """Begins a basic block, in which the active mask does not change, and drops the last
        block's lookup. `single_entry`: code enters it only at its beginning, so one lookup
        dominates all accesses."""
        self._block_set, self._single_entry = None, single_entry

    def of(self, instruction: Instruction, on: Value) -> LaneSet:
        """Returns the lane set of the lanes `on` that execute an instruction of the basic block;
        unguarded instructions of a block with a single entry share one lookup, emitted at the first
        of them."""
        # A guarded instruction has lanes of its own, and code that enters in the middle of a block
        # has not run the block's lookup.
        if instruction.guard is not None or not self._single_entry:
            return self.of_bits(self.lanes.bits(on))
        if self._block_set is None:
            self._block_set = self.of_bits(self.lanes.bits(on))
        return self._block_set

    def of_bits(self, bits: Value) -> LaneSet:
        """Emits the lookup of a mask (an i32) in the kernel's table, which a full mask of the
        common layout (FULL_SET) skips. A lane set that the table does not have is not added; it
        gets NO_SET, whose entry never hits."""
        b = self.b
        key = b.zext(bits, I64)
        if self._key_has_layout:
            key = b.or_(key, b.shl(self._layout_of_warp(), I64(LAYOUT_SHIFT)))
        entry_block, search, done = b.block, *(b.append_basic_block(n) for n in ("find_set", "set"))
        b.cbranch(b.icmp_unsigned("==", key, FULL_WARP.key), done, search)
        b.position_at_end(search)
        bucket = self._bucket(key)
        table = self.lanes.slot(self.frame.records, self._begin)
        keys = b.load(self.lanes.slot(table, bucket), typ=ir.VectorType(I64, BUCKET), align=8)
        equal = b.icmp_unsigned("==", keys, self.lanes.splat(key, BUCKET))
        matches = b.zext(b.bitcast(equal, ir.IntType(BUCKET)), I64)
        # At most one key is equal, and the bucket is compared as one vector: no loop, no branch.
        index = self.lanes.intrinsic("llvm.cttz.i64", I64, [matches, I1(0)])
        # The numbers follow the keys; that of a set without a key, NO_SET, comes last.
        none = b.icmp_unsigned("==", matches, I64(0))
        index = b.select(none, I64(self._count), b.add(bucket, index))
        looked_up = self.lanes.slot(self.lanes.slot(table, self._count), index)
        looked_up = b.load(looked_up, typ=I64)
        b.branch(done)
        b.position_at_end(done)
        number = b.phi(I64)
        number.add_incoming(FULL_WARP.number, entry_block)
        number.add_incoming(looked_up, search)
        return LaneSet(key, number)

    def _bucket(self, key: Value) -> Value:
        """Returns the index of the first key in a key's bucket, an i64: the hash of
        `abi.range_cache.bucket_of`; 0 in a table of one bucket."""
        b, sets = self.b, self._count
        if sets == BUCKET:
            return I64(0)
        mask, layout = b.and_(key, I64(0xFFFFFFFF)), b.lshr(key, I64(LAYOUT_SHIFT))
        folded = b.and_(b.xor(mask, b.lshr(mask, I64(16))), I64(0xFFFF))
        mixed = b.add(b.mul(folded, I64(MASK_FACTOR)), b.mul(layout, I64(LAYOUT_FACTOR)))
        return b.and_(b.mul(b.lshr(mixed, I64(HASH_SHIFT)), I64(BUCKET)), I64(sets - 1))

    def full_warp(self) -> LaneSet:
        """Returns the set of all lanes of the running warp, marked `is_full`: a constant, or looked
        up if warps have several layouts."""
        return replace(self.of_bits(I32(-1)), is_full=True) if self._key_has_layout else FULL_WARP

    def _layout_of_warp(self) -> Value:
        """Returns the number, an i64, of the layout of threads in the running warp, from the table
        that the host stores after the thread indices."""
        b, warps = self.b, self.frame.slot(Slot.WARPS)
        at = b.add(b.mul(warps, I64(3 * LANES)), self.frame.warp)
        address = self.lanes.slot(self.frame.pointer(Slot.TIDS_AT), at, I32)
        return b.zext(b.load(address, typ=I32), I64)

    def has_no_key(self, lane_set: LaneSet) -> Value:
        """Returns true (an i1) if a lane set is not in the table and cannot be added: its bucket is
        full, which its last key shows (not 0), as buckets are filled in order."""
        b = self.b
        at = b.add(self._bucket(lane_set.key), I64(self._begin + BUCKET - 1))
        last = b.load(self.lanes.slot(self.frame.records, at), typ=I64)
        full = b.icmp_unsigned("!=", last, I64(0))
        return b.and_(full, b.icmp_unsigned("==", lane_set.number, I64(NO_SET)))
