"""The instructions that a warp may still execute in its turn."""

from __future__ import annotations

from warploom.abi.environment import Slot
from warploom.llvm.lanes import I1, I32, I64, Value
from warploom.lower.frame.function_frame import FunctionFrame
from warploom.program.effects.tensor_waits import waits_for_phases


class Fuel:
    """Counts down the instructions of a turn; `left` is the address of what is left of them."""

    def __init__(self, frame: FunctionFrame) -> None:
        self.frame, self.lanes = frame, frame.lanes
        self.left = frame.variable(I64)
        waits = waits_for_phases(frame.program)
        self._failed_wait = frame.variable(I1) if waits else None
        """Whether lanes have waited in vain for a phase of an mbarrier in this turn."""

    def begin_turn(self) -> None:
        """Give the running warp the instructions of a turn."""
        self.lanes.b.store(self.frame.slot(Slot.FUEL), self.left)
        if self._failed_wait is not None:
            self.lanes.b.store(I1(0), self._failed_wait)

    def fail_wait(self, lanes: Value) -> None:
        """Have the turn end at the next way back where some of these lanes, as bits, have waited
        in vain for a phase of an mbarrier."""
        assert self._failed_wait is not None
        b = self.lanes.b
        some = b.icmp_unsigned("!=", lanes, I32(0))
        b.store(b.or_(some, b.load(self._failed_wait, typ=I1)), self._failed_wait)

    def ends_turn(self) -> Value:
        """Returns whether the turn of the running warp ends at the next way back: its instructions
        are used up, or lanes have waited in vain for a phase of an mbarrier."""
        b = self.lanes.b
        used_up = b.icmp_signed("<", self.frame.get(self.left), I64(0))
        if self._failed_wait is None:
            return used_up
        return b.or_(used_up, b.load(self._failed_wait, typ=I1))

    def record(self) -> None:
        """Writes what is left of the turn into the environment."""
        b = self.lanes.b
        self.frame.record(Slot.FUEL, b.load(self.left, typ=I64))
        if self._failed_wait is not None:
            failed = b.zext(b.load(self._failed_wait, typ=I1), I64)
            self.frame.record(Slot.FAILED_WAIT, failed)
