"""Records what is in memory: allocations when a launch begins, and what accesses leave there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from warploom.core.errors import Allocation
from warploom.machine.memory.device_memory import DeviceMemory
from warploom.machine.reference.state import Warp, WarpAccess
from warploom.observe import schema
from warploom.observe.tables import Numbered
from warploom.ptx.ir import Space

NO_CHANGES = schema.Changes(0, b"", b"", ())
"""Where nothing is recorded of what accesses leave in memory."""


def allocations_at(
    memory: DeviceMemory, live: Sequence[Allocation], most: int
) -> tuple[schema.Allocated, ...]:
    """Returns the live allocations, those of up to `most` bytes with their contents."""
    return tuple(
        schema.Allocated(
            one.address,
            one.size,
            one.name,
            first=memory.read(one.address, one.size) if one.size <= most else b"",
        )
        for one in live
    )


class ChangeLog:
    """Keeps what accesses that write leave at their addresses."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int]] = []
        self._values: Numbered[bytes, bytes] = Numbered()
        self._pending: list[tuple[int, WarpAccess]] = []

    def expect(self, number: int, access: WarpAccess) -> None:
        """Note that access `number` of the trace is about to write, if it does."""
        if access.op != "load" and access.space in (Space.GLOBAL, Space.SHARED):
            self._pending.append((number, access))

    def settle(self, warp: Warp) -> None:
        """Read what the accesses noted have left, now that their instruction is done."""
        for number, access in self._pending:
            parts = [_read_after(warp, access, address) for address in access.addresses]
            after = b"".join(parts)
            if len(after) < access.size * len(parts):  # in another block's shared memory
                continue
            found = self._values.find(after)
            self._rows.append((number, self._values.add(after, after) if found is None else found))
        self._pending.clear()

    def recorded(self) -> schema.Changes:
        """Returns the columns."""
        rows: npt.NDArray[np.uint32] = np.array(self._rows, "<u4").reshape(-1, 2)
        access, value = rows.T
        return schema.Changes(
            len(rows), access.tobytes(), value.tobytes(), tuple(self._values.rows)
        )


def _read_after(warp: Warp, access: WarpAccess, address: int) -> bytes:
    if access.space is Space.SHARED:
        return warp.block.shared[address : address + access.size].tobytes()
    return warp.run.memory.read(address, access.size)
