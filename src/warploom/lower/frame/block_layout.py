"""Emits the value of an affine register in any warp of a thread block from that in the first warp.

In a block whose threads are all along x, or 16 along x and the others along y, affine values
continue from warp to warp (`shapes.warp_layout.WarpLayout`), so that a warp loop evaluates
them once for all warps:

    ALONG_X   %tid.x       warp w: value + 32 * w * stride
    IN_ROWS   2 values     warp w: value + 2 * w * (second row's value - first row's value)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from llvmlite import ir

from warploom.abi.environment import Slot
from warploom.core.types import ScalarType
from warploom.llvm.lanes import I1, I32, I64, Value, repeated
from warploom.lower.frame.frame import Frame
from warploom.shapes.vector_shape import LANES, VectorShape
from warploom.shapes.warp_layout import WarpLayout

ROW_LANES = LANES // 2


class BlockLayout(ABC):
    """Extrapolates affine values of the first warp to the other warps of a block, for warp loops. A
    value is a vector of one element for each run of a warp: 1, or 2 in blocks with 16 threads along
    x."""

    def __init__(self, frame: Frame) -> None:
        """Stores the frame, whose block size and running warp the values depend on."""
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b

    @abstractmethod
    def matches_launch(self) -> Value:
        """Returns whether the launch's blocks have this layout, an i1 emitted in the prologue."""

    @abstractmethod
    def thread_index(self, dimension: int, width: int) -> Value:
        """Returns `%tid.x`, `.y` or `.z` of the running warp, in `width` lanes."""

    @abstractmethod
    def step(self, value: Value, stride: int) -> Value | None:
        """Returns the difference of the value between two successive warps, a scalar of its element
        type; None if it is 0. `value` has one element for each lane run, `stride` is the difference
        from lane to lane."""

    @abstractmethod
    def _span(self, value: Value, stride: int) -> Sequence[Value]:
        """Returns the differences (i64, of either sign) from the block's first thread to its last
        one along each axis; each extreme value in the block is the first plus a sum of some of
        these."""

    def in_running_warp(self, value: Value, stride: int) -> Value:
        """Returns the value of the running warp: the first warp's, `value`, plus the warp's number
        times the difference between warps (`step`; None: none), in all elements. `stride` is the
        difference from lane to lane."""
        b, step, width = self.b, self.step(value, stride), value.type.count
        if step is None:
            return value
        warp = self.frame.warp
        warp = b.trunc(warp, step.type) if step.type.width < 64 else warp
        return b.add(value, self.lanes.splat(b.mul(warp, step), width))

    def overflows(self, value: Value, shape: VectorShape, type: ScalarType) -> Value:
        """Returns whether an affine value, given for the first warp, leaves the range of `type` in
        some thread of the block, an i1; always true for 64-bit types, which have no wider type to
        test it in."""
        b = self.b
        if type.bits >= 64:
            return ir.Constant(I1, 1)
        # In i64, sums of values of at most 32 bits and of their differences cannot wrap around.
        first_value = self.lanes.lane(value, 0)
        lowest = highest = (b.sext if type.is_signed else b.zext)(first_value, I64)
        # The least value adds all negative differences, the greatest all positive ones.
        for extent in self._span(value, shape.stride):
            lowest = b.add(lowest, self.lanes.intrinsic("llvm.smin.i64", I64, [extent, I64(0)]))
            highest = b.add(highest, self.lanes.intrinsic("llvm.smax.i64", I64, [extent, I64(0)]))
        low = -(1 << type.bits - 1) if type.is_signed else 0
        below = b.icmp_signed("<", lowest, I64(low))
        return b.or_(below, b.icmp_signed(">", highest, I64(low + (1 << type.bits) - 1)))


class LinearBlockLayout(BlockLayout):
    """Extrapolates in blocks with all threads along x: the stride from lane to lane continues from
    warp to warp."""

    def matches_launch(self) -> Value:
        """Returns whether the block has one thread along y and along z, an i1."""
        b, frame = self.frame.prologue.b, self.frame
        depth = b.mul(frame.slot(Slot.NTID_Y), frame.slot(Slot.NTID_Z))
        return b.icmp_unsigned("==", depth, I64(1))

    def thread_index(self, dimension: int, width: int) -> Value:
        """Returns `%tid.x` (dimension 0) as the warp's number times 32 plus the lane, `%tid.y` and
        `%tid.z` as zeros, in `width` lanes; a width of 1 gives lane 0's index."""
        warp = self.b.trunc(self.frame.warp, I32)
        first_index = self.b.mul(warp, I32(LANES)) if dimension == 0 else I32(0)
        offsets = VectorShape(1, int(dimension == 0)).offsets(width)
        return self.lanes.expand(self.lanes.splat(first_index, 1), width, offsets)

    def step(self, value: Value, stride: int) -> Value | None:
        """Returns 32 times the stride, a constant; None if the stride is 0."""
        return value.type.element(LANES * stride) if stride else None

    def _span(self, value: Value, stride: int) -> Sequence[Value]:
        """Returns one difference, along x: that of the block's last thread from its first."""
        last = self.b.sub(self.frame.slot(Slot.THREADS), I64(1))
        return [self.b.mul(last, I64(stride))]


class HalfWarpRowLayout(BlockLayout):
    """Extrapolates in blocks with 16 threads along x and the others along y: a warp is two rows,
    and the difference of the first two rows continues from row to row."""

    def matches_launch(self) -> Value:
        """Returns whether the block has 16 threads along x and one along z, an i1."""
        b, frame = self.frame.prologue.b, self.frame
        wide = b.icmp_unsigned("==", frame.slot(Slot.NTID_X), I64(ROW_LANES))
        return b.and_(wide, b.icmp_unsigned("==", frame.slot(Slot.NTID_Z), I64(1)))

    def thread_index(self, dimension: int, width: int) -> Value:
        """Returns `%tid.x` (dimension 0) as the lane modulo 16, `%tid.y` as the warp's two row
        numbers, `%tid.z` as zeros, in `width` lanes; a width of 2 gives the index of each row's
        first lane, a width of 1 that of lane 0."""
        if dimension != 1:
            shape = VectorShape(1, int(dimension == 0), repeats=LANES // ROW_LANES)
            return self.lanes.expand(repeated(0, I32, 1), width, shape.offsets(width))
        row = self.b.shl(self.b.trunc(self.frame.warp, I32), I32(1))
        rows = ir.Constant(ir.VectorType(I32, 2), [I32(0), I32(1)])
        return self.lanes.expand(self.b.add(self.lanes.splat(row, 2), rows), width)

    def step(self, value: Value, stride: int) -> Value | None:
        """Returns twice the difference of the two rows, None if the value is uniform."""
        # A warp has two rows of 16 threads.
        row = self._row_step(value)
        return None if row is None else self.b.shl(row, row.type(1))

    def _span(self, value: Value, stride: int) -> Sequence[Value]:
        """Returns the difference of a row's last thread from its first, and, unless the value is
        uniform, that of the block's last row from the first."""
        b, row = self.b, self._row_step(value)
        across = [I64((ROW_LANES - 1) * stride)]
        if row is None:
            return across
        last = b.sub(self.frame.slot(Slot.NTID_Y), I64(1))
        return [*across, b.mul(b.sext(row, I64), last)]

    def _row_step(self, value: Value) -> Value | None:
        """Returns the difference of a value between the warp's second row and its first, None if
        the value has one element: is uniform in the warp."""
        if value.type.count == 1:
            return None
        return self.b.sub(self.lanes.lane(value, 1), self.lanes.lane(value, 0))


LAYOUTS = {WarpLayout.ALONG_X: LinearBlockLayout, WarpLayout.IN_ROWS: HalfWarpRowLayout}
"""The extrapolation for each layout."""
