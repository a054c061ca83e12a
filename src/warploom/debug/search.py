"""States what a search through the positions of a launch asks of what it looks for."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from warploom.debug.stepper import Stepper


class Search(Protocol):
    """Recognizes the positions that a search looks for."""

    @property
    def watch(self) -> npt.NDArray[np.int64] | None:
        """Returns the words of `lower.instrument.watchpoints`, where it counts accesses."""
        ...

    @property
    def blocks(self) -> range | None:
        """Returns the blocks of the grid in which alone it can be; None for any."""
        ...

    def may_hit(self, counts: npt.NDArray[np.int64], *, watched: bool) -> bool:
        """Returns whether it may be in an interval with these counts; the last of them is of
        accesses to what it watches, if those were `watched`."""
        ...

    def before(self, stepper: Stepper) -> bool:
        """Returns whether it is here, where a warp is about to execute an instruction."""
        ...

    def after(self, stepper: Stepper) -> bool:
        """Returns whether it is what the last instruction has done."""
        ...
