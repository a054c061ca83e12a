"""Records the contents of memory in a trace: allocations at the start of a launch, and the bytes
that accesses write."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from warploom.core.errors import Allocation
from warploom.isa.instruction import Space
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.reference.state import Warp, WarpAccess
from warploom.observe import schema
from warploom.observe.tables import Numbered

NO_CHANGES = schema.Changes(0, b"", b"", ())
"""The record of a launch in which written bytes are not recorded."""


def allocations_at(
    memory: DeviceMemory, live: Sequence[Allocation], most: int
) -> tuple[schema.Allocated, ...]:
    """Returns the live allocations, with contents for those of up to `most` bytes."""
    return tuple(
        schema.Allocated(
            allocation.address,
            allocation.size,
            allocation.name,
            first=memory.read(allocation.address, allocation.size)
            if allocation.size <= most
            else b"",
        )
        for allocation in live
    )


class ChangeLog:
    """Records the bytes that writing accesses leave at their addresses."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int]] = []
        self._values: Numbered[bytes, bytes] = Numbered()
        self._pending: list[tuple[int, WarpAccess]] = []

    def expect(self, number: int, access: WarpAccess) -> None:
        """Queues access `number` of the trace if it will write."""
        if access.op != "load" and access.space in (Space.GLOBAL, Space.SHARED):
            self._pending.append((number, access))

    def settle(self, warp: Warp) -> None:
        """Records the bytes that the queued accesses have written, after their instruction was
        executed."""
        for number, access in self._pending:
            parts = [_read_after(warp, access, address) for address in access.addresses]
            after = b"".join(parts)
            if len(after) < access.size * len(parts):  # in another block's shared memory
                continue
            number_of_value = self._values.find(after)
            self._rows.append(
                (
                    number,
                    self._values.add(after, after) if number_of_value is None else number_of_value,
                )
            )
        self._pending.clear()

    def recorded(self) -> schema.Changes:
        """Returns the columns of the trace."""
        rows: npt.NDArray[np.uint32] = np.array(self._rows, "<u4").reshape(-1, 2)
        access, value = rows.T
        return schema.Changes(
            len(rows), access.tobytes(), value.tobytes(), tuple(self._values.rows)
        )


def _read_after(warp: Warp, access: WarpAccess, address: int) -> bytes:
    if access.space is Space.SHARED:
        return warp.block.shared[address : address + access.size].tobytes()
    return warp.run.memory.read(address, access.size)
