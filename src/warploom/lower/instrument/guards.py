"""The guards of instructions, `@p` and `@!p`: in which lanes they hold, and how often."""

from __future__ import annotations

from warploom.llvm.lanes import I64, Value
from warploom.lower.frame.frame import Frame
from warploom.lower.instrument.recording import RecordingCode
from warploom.ptx.ir import Instruction


class Guards:
    """Reads the guards of one warp function at the place where code goes now."""

    def __init__(self, frame: Frame, recording: RecordingCode | None) -> None:
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self.recording = recording

    def counted(self, index: int, made: Instruction) -> Value | None:
        """Return the guard's value, counted; None where there is none."""
        held = self.held(made)
        if held is not None:
            on = self.b.and_(self.lanes.bits(held), self.frame.active.bits())
            agrees = self.agrees(made)
            count = self._counted_together(made) if agrees else self.lanes.popcount(on)
            self.frame.counters.add(self.frame.layout.guarded[index], count)
            if self.recording:
                self.recording.guard(index, on)
        return held

    def agrees(self, made: Instruction) -> bool:
        """Returns whether all lanes are known to agree on an instruction's guard."""
        return made.guard is not None and self.frame.registers.has_shape(made.guard.register)

    def _counted_together(self, made: Instruction) -> Value:
        """Returns how many lanes execute an instruction on whose guard all agree."""
        living = self.lanes.popcount(self.frame.active.bits())
        return self.b.select(self.lanes.lane(self.agreed(made), 0), living, I64(0))

    def held(self, made: Instruction) -> Value | None:
        """Return the guard's value; None where there is none."""
        if made.guard is None:
            return None
        held = self.frame.registers.load(made.guard.register)
        if self.frame.variant.baseline and made.guard.negated:
            return self.lanes.mask(self.b.not_(self.lanes.bits(held)))
        return self.b.not_(held) if made.guard.negated else held

    def agreed(self, made: Instruction) -> Value | None:
        """Return the guard's value in 1 lane, where all lanes agree on it; None where there is
        none."""
        if made.guard is None:
            return None
        held = self.frame.registers.load(made.guard.register, 1)
        return self.b.not_(held) if made.guard.negated else held
