"""Where the memory instructions of a warp find things: counts, spaces, room for operands."""

from __future__ import annotations

from llvmlite import ir

from warploom.codegen.access import DATA_BYTES
from warploom.codegen.environment import ROW_WIDTH, Slot, local_stride
from warploom.codegen.frame import Frame
from warploom.codegen.lanes import I8, I64, PTR, Value
from warploom.ptx.ir import Space


class Places:
    """The places of one warp function. Access rows are numbered by instruction and space."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self.rows: dict[tuple[int, Space], int] = {
            (row.instruction, row.space): i for i, row in enumerate(frame.layout.rows)
        }
        self._data = frame.prologue.alloca(ir.ArrayType(I8, DATA_BYTES), align=64)

    def row(self, index: int, space: Space) -> Value:
        """The counts of an access row."""
        return self.lanes.slot(self.frame.rows, self.number(index, space) * ROW_WIDTH)

    def number(self, index: int, space: Space) -> int:
        """The number of an access row."""
        return self.rows.get((index, space), 0)

    def cache(self, index: int, space: Space) -> Value:
        """The bounds of the allocation that an access row reached last."""
        row = self.rows.get((index, space), 0)
        return self.lanes.slot(self.frame.pointer(Slot.CACHE_AT), 2 * row)

    def at(self, offset: int) -> Value:
        """A place in the room in which operands and results of out-of-line accesses pass."""
        return self.b.gep(self._data, [I64(offset)], source_etype=I8)

    def space(self, space: Space) -> tuple[Value, Value]:
        """Where a space begins on the host, and its length in bytes; zeros for global memory."""
        frame, b = self.frame, self.b
        if space is Space.SHARED:
            return frame.pointer(Slot.SHARED_AT), frame.slot(Slot.SHARED_BYTES)
        if space is Space.PARAM:
            return frame.pointer(Slot.PARAMETERS_AT), I64(frame.program.parameter_bytes)
        if space is Space.LOCAL:
            size = frame.program.local_bytes
            offset = b.mul(frame.warp, I64(local_stride(size)))
            return b.gep(frame.pointer(Slot.LOCAL_AT), [offset], source_etype=I8), I64(size)
        return ir.Constant(PTR, None), I64(0)
