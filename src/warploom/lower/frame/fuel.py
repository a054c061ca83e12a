"""Emits the count-down of the warp instructions that a turn may execute (fuel). A turn of a warp
ends at the first back edge of a loop at which it is used up.
"""

from __future__ import annotations

from warploom.abi.environment import Slot
from warploom.isa.kinds import Needs
from warploom.llvm.lanes import I1, I32, I64, Value
from warploom.lower.frame.function_frame import FunctionFrame


class Fuel:
    """Counts down the warp instructions of a turn; `left` is the address of the number left, an
    i64, which may fall below 0 before the next back edge: blocks subtract their lengths, back edges
    test it."""

    def __init__(self, frame: FunctionFrame) -> None:
        """Allocates the budget, and in programs that wait for phases of mbarriers a flag of failed
        waits."""
        self.frame, self.lanes = frame, frame.lanes
        self.left = frame.variable(I64)
        waits = Needs.FAILED_WAITS in frame.program.needs
        self._failed_wait = frame.variable(I1) if waits else None
        """The address of an i1: lanes have polled an incomplete phase of an mbarrier in this
        turn."""

    def begin_turn(self) -> None:
        """Loads the turn's budget from the environment and clears the flag of failed waits."""
        self.lanes.b.store(self.frame.slot(Slot.FUEL), self.left)
        if self._failed_wait is not None:
            self.lanes.b.store(I1(0), self._failed_wait)

    def fail_wait(self, lanes: Value) -> None:
        """Ends the turn at the next back edge if `lanes` (an i32) has some: those that have polled
        a phase of an mbarrier that is not complete. Other warps have to run for it to complete."""
        assert self._failed_wait is not None
        b = self.lanes.b
        some = b.icmp_unsigned("!=", lanes, I32(0))
        b.store(b.or_(some, b.load(self._failed_wait, typ=I1)), self._failed_wait)

    def ends_turn(self) -> Value:
        """Returns whether the turn ends at a back edge, an i1: `left` has fallen below 0, or lanes
        have polled an incomplete phase of an mbarrier in this turn.
        """
        b = self.lanes.b
        # A test at back edges is enough: without one, each side of a branch only runs forwards, so
        # that every turn ends.
        used_up = b.icmp_signed("<", self.frame.get(self.left), I64(0))
        if self._failed_wait is None:
            return used_up
        return b.or_(used_up, b.load(self._failed_wait, typ=I1))

    def record(self) -> None:
        """Stores the rest of the budget, and in programs that wait for mbarriers whether a wait has
        failed, in the environment, where `run` reads them after the turn.
        """
        b = self.lanes.b
        self.frame.record(Slot.FUEL, b.load(self.left, typ=I64))
        if self._failed_wait is not None:
            failed = b.zext(b.load(self._failed_wait, typ=I1), I64)
            self.frame.record(Slot.FAILED_WAIT, failed)
