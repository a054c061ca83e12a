"""The active mask of a warp, and the lanes of it that have not exited."""

from __future__ import annotations

from warploom.llvm.lanes import I1, I32, Value
from warploom.lower.frame.function_frame import FunctionFrame


class ActiveLanes:
    """Reads and writes the active mask.

    `live` is the address of the bits of all lanes that have not exited, `fewer` that of an i1:
    whether threads of the block may have ended, where all its warps run in one call.
    """

    def __init__(self, frame: FunctionFrame) -> None:
        self.lanes = frame.lanes
        self._active = frame.variable(I32)
        self.live, self.fewer = frame.variable(I32), frame.variable(I1)

    def mask(self) -> Value:
        """Return the active mask, here and now."""
        return self.lanes.mask(self.bits())

    def bits(self) -> Value:
        """Returns the bits of the active mask, as an i32. It is kept so, since most code counts its
        lanes or compares it with another mask."""
        return self.lanes.b.load(self._active, typ=I32)

    def set(self, bits: Value) -> None:
        """Makes these lanes, as bits, the active ones from here on."""
        self.lanes.b.store(bits, self._active)

    def forget(self, gone: Value) -> None:
        """Forget these lanes, as bits, which have exited."""
        b = self.lanes.b
        b.store(I1(1), self.fewer)
        b.store(b.and_(b.load(self.live, typ=I32), b.not_(gone)), self.live)
