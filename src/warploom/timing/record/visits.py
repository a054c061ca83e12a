"""Counts how often a warp had executed the instruction of each state in its timeline before, one
state after the other (`VisitCounter`), so that a timeline can show iterations of loops.

A state names the operation that the warp was about to issue; the record has the basic blocks
through which the warp went.
"""

from __future__ import annotations

from collections import Counter

from warploom.timing.record.record import Record
from warploom.timing.records import StreamEntry, TimedOperation, TimedWarp
from warploom.timing.work.operations import MachineWork


class VisitCounter:
    """Follows a warp through its stream (its path of basic blocks), given its states in the order
    of time, and counts how often it has executed each operation."""

    def __init__(self, record: Record, work: MachineWork, warp: int) -> None:
        """Begins at the first basic block of the warp's stream. `record` and `work` are those of
        the replay; `warp`: the warp's number in the launch."""
        self._operations = work.operations
        first, stop = record.streams[record.warps[warp, TimedWarp.stream]].tolist()
        blocks = record.entries[first:stop, StreamEntry.block]
        self._operation_ranges: list[list[int]] = work.blocks[blocks].tolist()
        self._entry = self._issued = 0
        self._operation = -1
        self._finished: Counter[int] = Counter()
        """How often the warp executed each operation, in basic blocks that it has left."""

    def nth(self, operation: int, *, selected: bool) -> int:
        """Returns how often the warp had executed an operation (left a basic block that has it)
        before its next state, in which it waits to issue the operation or, if `selected`, issues
        one of its slots. Must be called for all states of the warp in the order of time: each call
        advances to the operation's basic block.

        Operations of a basic block issue in order, so a state whose operation is before the last
        one belongs to a later execution of a block. So does a state of an operation that has
        already issued all of its slots: the parts of a diverged warp issue it in turn."""
        slots = int(self._operations[operation, TimedOperation.slots])
        over = operation == self._operation and self._issued >= slots
        if over or operation < self._operation or not self._is_in_block(operation):
            self._advance_to(operation)
        if operation != self._operation:
            self._operation, self._issued = operation, 0
        self._issued += selected
        return self._finished[operation]

    def _is_in_block(self, operation: int) -> bool:
        """Returns whether the current basic block has the operation."""
        start, stop = self._operation_ranges[self._entry]
        return start <= operation < stop

    def _advance_to(self, operation: int) -> None:
        """Leaves basic blocks, counting their operations as executed, up to the next one after the
        current that has the operation; the last block of the stream is not left."""
        while self._entry + 1 < len(self._operation_ranges):
            self._finished.update(range(*self._operation_ranges[self._entry]))
            self._entry += 1
            if self._is_in_block(operation):
                break
        self._operation = -1
