"""Emits reads and writes of a warp's active mask, and of the mask of lanes that have not exited."""

from __future__ import annotations

from warploom.llvm.lanes import I1, I32, Value
from warploom.lower.frame.function_frame import FunctionFrame


class ActiveLanes:
    """Holds the masks of the running warp, in stack slots that LLVM promotes to registers: the
    active mask (`bits`, `mask`, `set`), and

    `live`: the address of an i32, the lanes that have not exited. `fewer`: the address of an i1,
    set once some thread of the block may have exited; calls that run all warps of a block use
    it."""

    def __init__(self, frame: FunctionFrame) -> None:
        """Allocates the stack slots, which are zero at the function's entry."""
        self.lanes = frame.lanes
        self._active = frame.variable(I32)
        self.live, self.fewer = frame.variable(I32), frame.variable(I1)

    def mask(self) -> Value:
        """Returns the active mask as `<32 x i1>`."""
        return self.lanes.mask(self.bits())

    def bits(self) -> Value:
        """Returns the active mask as an i32, the form in which it is stored: most code counts its
        lanes or compares it with another mask."""
        return self.lanes.b.load(self._active, typ=I32)

    def set(self, bits: Value) -> None:
        """Emits a store of the active mask, an i32."""
        self.lanes.b.store(bits, self._active)

    def forget(self, gone: Value) -> None:
        """Removes the lanes `gone` (an i32), which have exited, from the live mask, and sets
        `fewer`; the caller changes the active mask."""
        b = self.lanes.b
        b.store(I1(1), self.fewer)
        b.store(b.and_(b.load(self.live, typ=I32), b.not_(gone)), self.live)
