"""Counts which time it is that a warp comes to an instruction.

A state of the timeline says which operation was next, the record through which basic blocks the
warp went."""

from __future__ import annotations

from collections import Counter

from warploom.timing import layout as w
from warploom.timing.record.records import Record
from warploom.timing.work.operations import MachineWork


class VisitCounter:
    """Goes along a warp's way through the code, as states tell of it in the order of time."""

    def __init__(self, record: Record, work: MachineWork, warp: int) -> None:
        self._operations = work.operations
        first, stop = record.streams[record.warps[warp, 0]].tolist()
        blocks = record.entries[first:stop, w.ENTRY_BLOCK]
        self._operation_ranges: list[list[int]] = work.blocks[blocks].tolist()
        self._entry = self._issued = 0
        self._operation = -1
        self._finished: Counter[int] = Counter()
        """How often the warp went through each operation, in blocks that it has left."""

    def nth(self, operation: int, *, selected: bool) -> int:
        """Returns how often the warp had come before to the operation that its next state is about:
        one in which it waits to be issued or, if `selected`, one of its slots is.

        Operations of a block issue in their order, so what does not come later is of another time;
        so is what has been issued whole, as by the parts of a warp that do the same in turn.
        """
        slots = int(self._operations[operation, w.OP_SLOTS])
        over = operation == self._operation and self._issued >= slots
        if over or operation < self._operation or not self._is_in_block(operation):
            self._advance_to(operation)
        if operation != self._operation:
            self._operation, self._issued = operation, 0
        self._issued += selected
        return self._finished[operation]

    def _is_in_block(self, operation: int) -> bool:
        start, stop = self._operation_ranges[self._entry]
        return start <= operation < stop

    def _advance_to(self, operation: int) -> None:
        """Leave the block for the next one that has the operation; the last one is not left."""
        while self._entry + 1 < len(self._operation_ranges):
            self._finished.update(range(*self._operation_ranges[self._entry]))
            self._entry += 1
            if self._is_in_block(operation):
                break
        self._operation = -1
