"""Emits which set of lanes executes an access: the keys of a kernel's access caches
(`abi.range_cache`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from llvmlite import ir

from warploom.abi.environment import ROW_WIDTH, Slot
from warploom.abi.range_cache import (
    BUCKET,
    HASH_SHIFT,
    LAYOUT_FACTOR,
    LAYOUT_SHIFT,
    MASK_FACTOR,
)
from warploom.analysis.shape_transfer import RUNS, OperandShapes
from warploom.llvm.lanes import I1, I32, I64, LANES, Value
from warploom.lower.frame.frame import Frame
from warploom.ptx.ir import Instruction


@dataclass(frozen=True)
class LaneSet:
    """Lanes that execute an access: their key, its number among those of the kernel, and whether
    they are all lanes wherever code uses what it finds of them."""

    key: Value
    number: Value
    is_full: bool = False


EVERYONE = LaneSet(I64((1 << LANES) - 1), I64(0), is_full=True)
"""All lanes of a warp whose layout is that of all."""


class LaneSets:
    """Emits looks for sets of lanes among those of the kernel, at the place where code goes now."""

    def __init__(self, frame: Frame, reading: OperandShapes) -> None:
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self._count = frame.layout.caches.sets
        self._begin = ROW_WIDTH * len(frame.layout.rows)
        self._layouts = RUNS.get(reading.warp_layout, 1) > 1 and not frame.variant.alike
        self._together: LaneSet | None = None
        self._straight = True

    def begin(self, *, straight: bool) -> None:
        """Begin a basic block, in which the active lanes stay the same. `straight`: code comes to
        it at its begin only."""
        self._together, self._straight = None, straight

    def of(self, made: Instruction, on: Value) -> LaneSet:
        """Returns the set of the lanes `on` that execute an instruction of the block."""
        if made.guard is not None or not self._straight:
            return self.of_bits(self.lanes.bits(on))
        if self._together is None:
            self._together = self.of_bits(self.lanes.bits(on))
        return self._together

    def of_bits(self, bits: Value) -> LaneSet:
        """Returns the set of the lanes in an i32."""
        b = self.b
        key = b.zext(bits, I64)
        if self._layouts:
            key = b.or_(key, b.shl(self._layout_of_warp(), I64(LAYOUT_SHIFT)))
        before, search, done = b.block, *(b.append_basic_block(n) for n in ("lanes", "set"))
        b.cbranch(b.icmp_unsigned("==", key, EVERYONE.key), done, search)
        b.position_at_end(search)
        bucket = self._bucket(key)
        keys = self.lanes.slot(self.lanes.slot(self.frame.rows, self._begin), bucket)
        keys = b.load(keys, typ=ir.VectorType(I64, BUCKET), align=8)
        equal = b.icmp_unsigned("==", keys, self.lanes.splat(key, BUCKET))
        some = b.zext(b.bitcast(equal, ir.IntType(BUCKET)), I64)
        found = self.lanes.intrinsic("llvm.cttz.i64", I64, [some, I1(0)])
        none = b.icmp_unsigned("==", some, I64(0))
        found = b.select(none, I64(self._count), b.add(bucket, found))
        b.branch(done)
        b.position_at_end(done)
        number = b.phi(I64)
        number.add_incoming(EVERYONE.number, before)
        number.add_incoming(found, search)
        return LaneSet(key, number)

    def _bucket(self, key: Value) -> Value:
        """Return the number of the first key of a key's bucket (`bucket_of`)."""
        b, sets = self.b, self._count
        if sets == BUCKET:
            return I64(0)
        mask, layout = b.and_(key, I64(0xFFFFFFFF)), b.lshr(key, I64(LAYOUT_SHIFT))
        folded = b.and_(b.xor(mask, b.lshr(mask, I64(16))), I64(0xFFFF))
        mixed = b.add(b.mul(folded, I64(MASK_FACTOR)), b.mul(layout, I64(LAYOUT_FACTOR)))
        return b.and_(b.mul(b.lshr(mixed, I64(HASH_SHIFT)), I64(BUCKET)), I64(sets - 1))

    def everyone(self) -> LaneSet:
        """Returns the set of all lanes of the running warp."""
        return replace(self.of_bits(I32(-1)), is_full=True) if self._layouts else EVERYONE

    def _layout_of_warp(self) -> Value:
        """Return the number of the running warp's layout, as the host has it behind the indices."""
        b, warps = self.b, self.frame.slot(Slot.WARPS)
        at = b.add(b.mul(warps, I64(3 * LANES)), self.frame.warp)
        place = self.lanes.slot(self.frame.pointer(Slot.TIDS_AT), at, I32)
        return b.zext(b.load(place, typ=I32), I64)

    def is_strange(self, who: LaneSet) -> Value:
        """Return whether lanes have no key and never will: their bucket is full."""
        b = self.b
        at = b.add(self._bucket(who.key), I64(self._begin + BUCKET - 1))
        last = b.load(self.lanes.slot(self.frame.rows, at), typ=I64)
        full = b.icmp_unsigned("!=", last, I64(0))
        return b.and_(full, b.icmp_unsigned("==", who.number, I64(self._count)))
