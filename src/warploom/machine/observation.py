"""Describes a user-defined observer (functions that are called on events of a launch) for both
machines: the addresses of its compiled functions, and the array that is their state.

`observe.observer` compiles the functions; `simt.event_layout` defines the table and the events that
they are called with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.core.errors import WarploomError
from warploom.ir.variant import Observing
from warploom.program.program import Program
from warploom.simt.event_layout import KINDS, ObserverTable

Words = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Observation:
    """An observer: the addresses of its functions by event kind, and the state array that they
    write in place. `name` is the observer's name in errors, `compiled` holds the functions
    alive."""

    name: str
    functions: Mapping[str, int]
    state: npt.NDArray[Any]
    compiled: object = None

    @property
    def wanted(self) -> Observing:
        """Returns the kinds of events for which the observer has a function, as flags by which
        code is compiled."""
        return Observing(*(kind in self.functions for kind in KINDS))

    def begin(self, program: Program) -> ObservedLaunch:
        """Returns a new table through which a launch of a program calls the observer: addresses of
        functions (0 for kinds without one), of the array of source lines by instruction, and of the
        state."""
        source_lines = np.array([source_line(program, i) for i in range(len(program.instructions))])
        table = ObserverTable(np.zeros(ObserverTable.WORDS, np.int64), 0)
        table.callbacks[:] = [self.functions.get(kind, 0) for kind in KINDS]
        # The object keeps the array alive, since the table holds only its address.
        source_lines = source_lines.astype(np.int64)
        table.lines_at = source_lines.ctypes.data
        table.state_at = self.state.ctypes.data
        return ObservedLaunch(self, table, source_lines)


@dataclass(frozen=True, eq=False)
class ObservedLaunch:
    """The table through which a launch calls an observer (`simt.event_layout`), with the arrays
    that it points to."""

    observation: Observation
    table: ObserverTable
    lines: Words

    def check(self) -> None:
        """Raises WarploomError if a function of the observer raised an exception."""
        failed = self.table.failed  # 1 plus the kind, 0 if none has failed
        if failed:
            raise WarploomError(
                f"observer {self.observation.name}: on_{KINDS[failed - 1]} raised an "
                "exception and was not called again. Look for an out-of-range index into its "
                "state, or a division by zero."
            )


def source_line(program: Program, instruction: int) -> int:
    """Returns the source line of an instruction, or its line of the PTX if the PTX has no line
    information."""
    return int(program.line(instruction).rpartition(":")[2])
