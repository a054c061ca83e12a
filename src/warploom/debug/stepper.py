"""The reference machine at one point of a launch, one warp instruction at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from warploom.core.errors import DeadlockError, InstructionLimit, KernelFault
from warploom.isa.instruction import Instruction
from warploom.machine.reference.block import Grid
from warploom.machine.reference.operands import guard_mask
from warploom.machine.reference.state import Warp, WarpAccess

KernelError = KernelFault | DeadlockError | InstructionLimit
ERRORS = (KernelFault, DeadlockError, InstructionLimit)

Edit = Callable[["Stepper"], None]
"""A change of the state that the user makes at some position."""

Edits = Mapping[int, Sequence[Edit]]
"""Changes by the position at which they are made."""


@dataclass
class Events:
    """The accesses of the last instruction."""

    accesses: list[WarpAccess] = field(default_factory=list[WarpAccess])

    def issued(self, warp: Warp, instruction: int, mask: int) -> None:
        """Begins with an instruction."""
        self.accesses.clear()

    def accessed(self, warp: Warp, access: WarpAccess) -> None:
        """Records an access."""
        self.accesses.append(access)


class Stepper:
    """Stands before a warp instruction of a launch: `warp` is about to execute it. `error` is what
    has stopped the launch, if it did not end well: a fault is found before its instruction does
    anything, so that the stepper still stands before it. `last` and `executed` are the warp and the
    number of the instruction that was executed last."""

    def __init__(self, grid: Grid, events: Events, edits: Edits) -> None:
        self.grid, self.events, self._edits = grid, events, edits
        self.error: KernelError | None = None
        self.last: Warp | None = None
        self.executed = -1
        self.divergences = self.reconvergences = 0
        self._faulted: Warp | None = None
        self._settle()

    @property
    def position(self) -> int:
        """Returns the number of warp instructions that the launch has executed before."""
        return self.grid.run.issued - (self._faulted is not None)

    @property
    def ended(self) -> bool:
        """Returns whether the launch has ended, well or by an error."""
        return self.error is not None or self.grid.warp is None

    @property
    def has_warp(self) -> bool:
        """Returns whether some warp is about to execute an instruction, or has failed to."""
        return self._faulted is not None or self.grid.warp is not None

    @property
    def warp(self) -> Warp:
        """Returns the warp that executes the next instruction."""
        found = self._faulted or self.grid.warp
        assert found is not None
        return found

    @property
    def index(self) -> int:
        """Returns the number of the next instruction."""
        return self.warp.next

    @property
    def instruction(self) -> Instruction:
        """Returns the next instruction."""
        return self.grid.run.program.instructions[self.warp.next]

    @property
    def executing(self) -> int:
        """Returns the lanes that execute the next instruction: active, and their guard holds."""
        return self.warp.splits.active & guard_mask(self.warp, self.instruction)

    def step(self) -> None:
        """Executes an instruction, and those after it that are not counted."""
        warp, run = self.warp, self.grid.run
        self.last, self.executed, before = warp, warp.next, run.issued
        tally, index = run.tally, warp.next
        diverged_before = int(tally.divergent[index])
        reconverged_before = int(tally.reconvergences.sum())
        try:
            self.grid.step()
        except ERRORS as error:
            self.error = error
            if run.issued > before:
                self._faulted = warp
            return
        self.divergences = int(tally.divergent[index]) - diverged_before
        self._settle()
        self.reconvergences = int(tally.reconvergences.sum()) - reconverged_before

    def lock(self, warp: tuple[int, int] | None) -> None:
        """Runs only one warp from here on, by its block and number; None: all warps."""
        self.grid.lock(warp)
        self._begin()

    def edit(self) -> None:
        """Applies the changes of this position."""
        for edit in self._edits.get(self.position, ()):
            edit(self)

    def _settle(self) -> None:
        """Advances to the next instruction that is counted, and applies the changes of that
        position."""
        self._begin()
        if self._edits:
            self.edit()

    def _begin(self) -> None:
        hidden = self.grid.run.program.hidden
        try:
            while self.grid.begin() and self.warp.next in hidden:
                self.grid.step()
        except ERRORS as error:
            self.error = error
