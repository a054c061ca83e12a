"""Locates the accesses of a group from the register of its first one."""

from __future__ import annotations

from warploom.llvm.lanes import I64, Lanes, Value
from warploom.lower.access.groups import Group


class GroupAddresses:
    """Emits such places. Inside of their space no sum begins again at 0."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes, self.b = lanes, lanes.b

    def span(self, group: Group) -> tuple[Value, Value]:
        """Returns how far the first byte of a group lies behind where its register leads, and the
        end of the last one."""
        start, stop = group.accesses.span
        return I64(start), I64(stop)

    def places(self, group: Group, index: int) -> list[Value]:
        """Returns where the first lane of each run reaches in an access of a group."""
        ahead = I64(dict(group.members)[index])
        return [self.b.add(first, ahead) for first in group.safe or group.firsts]

    def begins(self, group: Group, index: int) -> Value:
        """Returns the same as a vector."""
        ahead = I64(dict(group.members)[index])
        begins = group.bases if group.begins is None else group.begins
        return self.b.add(begins, self.lanes.splat(ahead, group.base.width))
