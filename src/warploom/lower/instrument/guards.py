"""Emits reads of the guards of instructions, `@p` and `@!p`, and the counts and records of the
lanes in which they hold.
"""

from __future__ import annotations

from warploom.isa.instruction import Instruction
from warploom.llvm.lanes import I64, Value
from warploom.lower.frame.frame import Frame
from warploom.lower.instrument.recording import RecordingCode


class Guards:
    """Emits reads of guards in one warp function at the current insertion point. `recording` is
    None in launches that are not recorded."""

    def __init__(self, frame: Frame, recording: RecordingCode | None) -> None:
        """Shares the frame and its IR builder; emits nothing."""
        self.frame, self.lanes, self.b = frame, frame.lanes, frame.lanes.b
        self.recording = recording

    def counted(self, index: int, instruction: Instruction) -> Value | None:
        """Returns the guard's value as a mask, in inactive lanes too, and adds the number of active
        lanes in which it holds to the counter of the instruction (and records them, in a recorded
        launch); None, and nothing is counted, for an instruction without a guard."""
        held = self.held(instruction)
        if held is not None:
            active_holding = self.b.and_(self.lanes.bits(held), self.frame.active.bits())
            is_uniform = self.is_uniform(instruction)
            count = (
                self._uniform_count(instruction)
                if is_uniform
                else self.lanes.popcount(active_holding)
            )
            self.frame.counters.add(self.frame.layout.guarded[index], count)
            if self.recording:
                self.recording.guard(index, active_holding)
        return held

    def is_uniform(self, instruction: Instruction) -> bool:
        """Returns true if an instruction has a guard whose register has a vector shape in the code
        being emitted: as a predicate it is uniform then."""
        return instruction.guard is not None and self.frame.registers.has_shape(
            instruction.guard.register
        )

    def _uniform_count(self, instruction: Instruction) -> Value:
        """Returns how many lanes execute an instruction with a uniform guard: all active ones, or
        none.
        """
        living = self.lanes.popcount(self.frame.active.bits())
        return self.b.select(self.lanes.lane(self.uniform_value(instruction), 0), living, I64(0))

    def held(self, instruction: Instruction) -> Value | None:
        """Returns the guard's value as a mask, negated for `@!p`, also of inactive lanes; None for
        an instruction without a guard. Counts nothing."""
        if instruction.guard is None:
            return None
        held = self.frame.registers.load(instruction.guard.register)
        if self.frame.variant.baseline and instruction.guard.negated:
            # Baseline code is not optimized: one operation on an i32 instead of 32 on an i1.
            return self.lanes.mask(self.b.not_(self.lanes.bits(held)))
        return self.b.not_(held) if instruction.guard.negated else held

    def uniform_value(self, instruction: Instruction) -> Value | None:
        """Returns the value of a uniform guard in 1 lane, negated for `@!p`; None for an
        instruction without a guard."""
        if instruction.guard is None:
            return None
        held = self.frame.registers.load(instruction.guard.register, 1)
        return self.b.not_(held) if instruction.guard.negated else held
