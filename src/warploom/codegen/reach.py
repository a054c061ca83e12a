"""Locates the accesses of a group from the register of its first one."""

from __future__ import annotations

from functools import reduce

from warploom.codegen.groups import Group
from warploom.codegen.lanes import I64, Lanes, Value


class Reach:
    """Emits such places. Inside of their space no sum begins again at 0."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes, self.b = lanes, lanes.b

    def span(self, group: Group) -> tuple[Value, Value]:
        """Returns how far the first byte of a group lies behind where its register leads, and the
        end of the last one."""
        if not group.strides:
            start, stop = group.accesses.span
            return I64(start), I64(stop)
        behind = [self._ahead(group, index, 0) for index, _ in group.members]
        first, last = (
            reduce(lambda x, y: self.lanes.intrinsic(f"llvm.{name}.i64", I64, [x, y]), behind)
            for name in ("smin", "smax")
        )
        start, stop = group.accesses.span
        return self.b.add(first, I64(start)), self.b.add(last, I64(stop))

    def places(self, group: Group, index: int) -> list[Value]:
        """Returns where the first lane of each run reaches in an access of a group."""
        ahead = self._ahead(group, index, dict(group.members)[index])
        return [self.b.add(first, ahead) for first in group.safe or group.firsts]

    def begins(self, group: Group, index: int) -> Value:
        """Returns the same as a vector."""
        ahead = self._ahead(group, index, dict(group.members)[index])
        begins = group.bases if group.begins is None else group.begins
        return self.b.add(begins, self.lanes.splat(ahead, group.base.width))

    def _ahead(self, group: Group, index: int, offset: int) -> Value:
        """Returns how far an access reaches behind where the group's register leads."""
        b, ahead = self.b, I64(offset)
        for stride, laps in group.accesses.ahead(index).items():
            ahead = b.add(b.mul(group.strides[stride], I64(laps)), ahead)
        return ahead
