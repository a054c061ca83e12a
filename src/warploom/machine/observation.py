"""An observer of a launch, as both machines receive it: functions in machine code, by address, and
an array that is their state (`simt.event_layout`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.core.errors import WarploomError
from warploom.ir.variant import Observing
from warploom.program.program import Program
from warploom.simt import event_layout as words

Words = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Observation:
    """The functions of an observer, by the kinds of events that they take, and their state, which
    is written in place. `name` is the observer's in errors, `compiled` what holds the functions."""

    name: str
    functions: Mapping[str, int]
    state: npt.NDArray[Any]
    compiled: object = None

    @property
    def wanted(self) -> Observing:
        """Return the kinds of events that it takes."""
        return Observing(*(kind in self.functions for kind in words.KINDS))

    def begin(self, program: Program) -> ObservedLaunch:
        """Return what a launch of a program calls it by."""
        lines = np.array([source_line(program, i) for i in range(len(program.instructions))])
        table = np.zeros(words.TABLE_WORDS, np.int64)
        for number, kind in enumerate(words.KINDS):
            table[number] = self.functions.get(kind, 0)
        lines = lines.astype(np.int64)
        table[words.LINES_AT] = lines.ctypes.data
        table[words.STATE_AT] = self.state.ctypes.data
        return ObservedLaunch(self, table, lines)


@dataclass(frozen=True, eq=False)
class ObservedLaunch:
    """The table by which a launch calls an observer."""

    observation: Observation
    table: Words
    lines: Words

    def check(self) -> None:
        """Raise WarploomError where a function of the observer raised an exception."""
        failed = int(self.table[words.FAILED])
        if failed:
            raise WarploomError(
                f"on_{words.KINDS[failed - 1]} of the observer {self.observation.name} raised an"
                f" exception, and was not called again. Look for an index beyond its state, or a"
                f" division by zero."
            )


def source_line(program: Program, instruction: int) -> int:
    """Return the line of the source from which an instruction comes; of the PTX where that does not
    say."""
    return int(program.line(instruction).rpartition(":")[2])
