"""Emits the addresses of the loads or stores of an access group (accesses of a block at constant
offsets from one base register) from that register.

    ld [%rd1]; ld [%rd1+16]; ld [%rd1+32]   one base, members at offsets 0, 16, 32

The guard has compared the whole span of the group, so the sums cannot wrap around.
"""

from __future__ import annotations

from warploom.llvm.lanes import I64, Lanes, Value
from warploom.lower.access.groups import GroupValues


class GroupAddresses:
    """Emits the addresses of the members of access groups: loads or stores at constant offsets from
    one base register."""

    def __init__(self, lanes: Lanes) -> None:
        """Stores the lane vectors' emitter, through whose builder addresses are emitted."""
        self.lanes, self.b = lanes, lanes.b

    def span(self, group: GroupValues) -> tuple[Value, Value]:
        """Returns the byte range that a lane run accesses in all members, as two constant offsets
        from the run's base address: its first byte, and the end of its last one. Of a group of
        deferred stores it is the range of each lane, from the lane's base address."""
        start, stop = group.accesses.span
        return I64(start), I64(stop)

    def firsts(self, group: GroupValues, index: int) -> list[Value]:
        """Returns the address of the first lane of each lane run (scalars; where each lane is a
        run, lane 0's alone), for the member at instruction `index`. Where the guard set
        `safe_firsts`, a run without active lanes has another run's address, which is safe to
        read."""
        offset = I64(dict(group.members)[index])
        return [
            self.b.add(run_address, offset) for run_address in group.safe_firsts or group.firsts
        ]

    def first_vector(self, group: GroupValues, index: int) -> Value:
        """Returns the addresses of the first lane of each lane run as one vector, for the member at
        instruction `index`; where the guard set `first_vector`, a run without active lanes has
        another run's, which is safe to read."""
        offset = I64(dict(group.members)[index])
        first_vector = group.bases if group.first_vector is None else group.first_vector
        return self.b.add(first_vector, self.lanes.splat(offset, group.base.width))
