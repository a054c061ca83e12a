"""Computes the registers of a block's warps from those of its first one, where they have shapes
that hold in the whole block (`analysis.shape_transfer.Formation`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from llvmlite import ir

from warploom.abi.environment import Slot
from warploom.analysis.shape_transfer import WarpLayout
from warploom.analysis.vector_shape import LANES, VectorShape
from warploom.core.types import ScalarType
from warploom.llvm.lanes import I1, I32, I64, Value, repeated
from warploom.lower.frame.frame import Frame

ROW = LANES // 2


class BlockWide(ABC):
    """Describes what the first warp says of the others. Values are those of a register as its shape
    in a warp keeps it, in 1 lane or in 2."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b

    @abstractmethod
    def fits(self) -> Value:
        """Returns whether the blocks of the launch are of this formation; at the entry."""

    @abstractmethod
    def thread_index(self, dimension: int, width: int) -> Value:
        """`%tid.x`, `.y` or `.z` in the running warp."""

    @abstractmethod
    def step(self, value: Value, stride: int) -> Value | None:
        """Returns what a warp has more than the one before it, as one lane of the value; None for
        nothing."""

    @abstractmethod
    def _extents(self, value: Value, stride: int) -> Sequence[Value]:
        """Returns how far what all lanes of the block have lies from the first, one way and the
        other: i64, some below 0."""

    def ahead(self, value: Value, stride: int) -> Value:
        """Return the value in the running warp."""
        b, step, width = self.b, self.step(value, stride), value.type.count
        if step is None:
            return value
        warp = self.frame.warp
        warp = b.trunc(warp, step.type) if step.type.width < 64 else warp
        return b.add(value, self.lanes.splat(b.mul(warp, step), width))

    def beyond(self, value: Value, shape: VectorShape, type: ScalarType) -> Value:
        """Returns whether some lane of the block leaves the range of a type."""
        b = self.b
        if type.bits >= 64:
            return ir.Constant(I1, 1)
        first = self.lanes.lane(value, 0)
        lowest = highest = (b.sext if type.is_signed else b.zext)(first, I64)
        for extent in self._extents(value, shape.stride):
            lowest = b.add(lowest, self.lanes.intrinsic("llvm.smin.i64", I64, [extent, I64(0)]))
            highest = b.add(highest, self.lanes.intrinsic("llvm.smax.i64", I64, [extent, I64(0)]))
        low = -(1 << type.bits - 1) if type.is_signed else 0
        below = b.icmp_signed("<", lowest, I64(low))
        return b.or_(below, b.icmp_signed(">", highest, I64(low + (1 << type.bits) - 1)))


class AlongX(BlockWide):
    """All threads along x: they go on from warp to warp as from lane to lane."""

    def fits(self) -> Value:
        b, frame = self.frame.prologue.b, self.frame
        depth = b.mul(frame.slot(Slot.NTID_Y), frame.slot(Slot.NTID_Z))
        return b.icmp_unsigned("==", depth, I64(1))

    def thread_index(self, dimension: int, width: int) -> Value:
        warp = self.b.trunc(self.frame.warp, I32)
        first = self.b.mul(warp, I32(LANES)) if dimension == 0 else I32(0)
        return self.lanes.fan(self.lanes.splat(first, 1), int(dimension == 0), width)

    def step(self, value: Value, stride: int) -> Value | None:
        return value.type.element(LANES * stride) if stride else None

    def _extents(self, value: Value, stride: int) -> Sequence[Value]:
        last = self.b.sub(self.frame.slot(Slot.THREADS), I64(1))
        return [self.b.mul(last, I64(stride))]


class InRows(BlockWide):
    """16 threads along x, the rest along y: a warp is two rows, and from row to row all goes on as
    from the first to the second."""

    def fits(self) -> Value:
        b, frame = self.frame.prologue.b, self.frame
        wide = b.icmp_unsigned("==", frame.slot(Slot.NTID_X), I64(ROW))
        return b.and_(wide, b.icmp_unsigned("==", frame.slot(Slot.NTID_Z), I64(1)))

    def thread_index(self, dimension: int, width: int) -> Value:
        b = self.b
        row = b.shl(b.trunc(self.frame.warp, I32), I32(1))
        rows = ir.Constant(ir.VectorType(I32, 2), [I32(0), I32(1)])
        down = b.add(self.lanes.splat(row, 2), rows) if dimension == 1 else repeated(0, I32, 2)
        return self.lanes.fan(down, int(dimension == 0), width)

    def step(self, value: Value, stride: int) -> Value | None:
        row = self._row(value)
        return None if row is None else self.b.shl(row, row.type(1))

    def _extents(self, value: Value, stride: int) -> Sequence[Value]:
        b, row = self.b, self._row(value)
        across = [I64((ROW - 1) * stride)]
        if row is None:
            return across
        last = b.sub(self.frame.slot(Slot.NTID_Y), I64(1))
        return [*across, b.mul(b.sext(row, I64), last)]

    def _row(self, value: Value) -> Value | None:
        """Returns what the second row has more than the first."""
        if value.type.count == 1:
            return None
        return self.b.sub(self.lanes.lane(value, 1), self.lanes.lane(value, 0))


LAYOUTS = {WarpLayout.ALONG_X: AlongX, WarpLayout.IN_ROWS: InRows}
"""By what formations say of a block."""
