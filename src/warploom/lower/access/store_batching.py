"""Stores that are put off to the last of their group, and are then done lane by lane together.

Where a column is written, each lane has a line of its own, and all lines have their place in the
same few ways of a cache: by the next store it has forgotten the lines of this one. What one lane
stores, one word behind the other, comes while its line is there.

It is done where all lanes are on and the lanes' places follow by one step and do not overlap, so
that the order does not matter; where all are inside of the allocation that was reached last; and
where each store is like an earlier one of its instruction (`cost.pattern_table`), so that its cost
is known, and that it is aligned.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from llvmlite import ir

from warploom.abi.access_type import record_memory_change
from warploom.cost.pattern_table import MASK, OFFSETS, REPEATS, STEP
from warploom.helpers.range_cache_filling import FURTHEST
from warploom.llvm.folding import FoldingBuilder
from warploom.llvm.lanes import (
    I8,
    I32,
    I64,
    LANES,
    PTR,
    Lanes,
    Value,
    lane_numbers,
)
from warploom.lower.access.group_addresses import GroupAddresses
from warploom.lower.access.groups import Group
from warploom.lower.access.memory import MemoryCode
from warploom.lower.access.pattern_places import pattern_place
from warploom.lower.access.transfers import Transfers

ALL_LANES = (1 << LANES) - 1
SIGNATURE = ir.FunctionType(ir.VoidType(), [PTR, I64, PTR])
"""`puts(first, step, data)`: where lane 0 reaches, the bytes from lane to lane, what is stored:
for each store 32 elements."""


@dataclass
class _Pending:
    """Stores that are put off: where lane 0 and the next begin, and all bytes between the first
    and the last place."""

    group: Group
    first: Value
    step: Value
    extent: Value
    kept: int = 0
    """How many of the stores have come."""


class StoreBatch:
    """Emits the stores of a warp function that are put off: of one group at a time."""

    def __init__(self, memory: MemoryCode) -> None:
        self.memory, self._group_addresses = memory, GroupAddresses(memory.lanes)
        self._transfers = Transfers(memory.lanes, memory.places.pointer)
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b
        self._pending: _Pending | None = None

    def forget(self) -> None:
        """Code is made of which none of the stores lies behind."""
        self._pending = None

    def look(self, group: Group, bases: Value) -> Value:
        """Returns whether the stores of a group can be put off, if all lanes are on: `bases` is
        where their register leads. From then on it is their turn."""
        b, index = self.b, group.members[0][0]
        start, stop = group.accesses.span
        first = self.lanes.lane(bases, 0)
        step = b.sub(self.lanes.lane(bases, 1), first)
        extent = b.add(b.mul(step, I64(LANES - 1)), I64(stop - start))
        steps = b.mul(self.lanes.splat(step), lane_numbers(I64))
        other = b.icmp_unsigned("!=", bases, b.add(self.lanes.splat(first), steps))
        begin = b.add(first, I64(start))
        conditions = [
            b.not_(self.lanes.any(other)),
            b.icmp_unsigned("<", b.sub(step, I64(stop - start)), I64(FURTHEST)),
            self.memory.places.within(index, group.shape.space, begin, extent),
        ]
        self._pending = _Pending(group, first, step, extent)
        for number in range(len(group.members)):
            conditions += self._is_known(self._pending, number)
        return reduce(b.and_, conditions)

    def _pattern(self, pending: _Pending, number: int) -> tuple[Value, Value]:
        """Returns where the pattern of a store is kept, and what its first offset must be."""
        index, offset = pending.group.members[number]
        first_byte = self.b.add(pending.first, I64(offset))
        rules = self.frame.layout.rules
        place = pattern_place(self.lanes, rules, I64(ALL_LANES), first_byte)
        row = self.memory.places.row(index, pending.group.shape.space)
        return self.lanes.slot(row, place.at), self.b.sub(first_byte, place.base)

    def _is_known(self, pending: _Pending, number: int) -> list[Value]:
        """Returns whether a store of its instruction with these places has been counted."""
        pattern, offset = self._pattern(pending, number)
        wanted = ((MASK, I64(ALL_LANES)), (STEP, pending.step), (OFFSETS, offset))
        return [
            self.b.icmp_unsigned("==", self.b.load(self.lanes.slot(pattern, word), typ=I64), value)
            for word, value in wanted
        ]

    def disjoint(self, group: Group) -> Value | None:
        """Returns whether the places of a group of loads lie apart from those of the stores that
        are put off; None where they do anyway."""
        pending, b = self._pending, self.b
        if pending is None or group.shape.space is not pending.group.shape.space:
            return None
        start, stop = self._group_addresses.span(group)
        begin = b.add(pending.first, I64(pending.group.accesses.span[0]))
        either = b.add(pending.extent, b.sub(b.sub(stop, start), I64(1)))
        # How far a last byte lies behind the first that is stored to: less than both together are
        # long, where they meet.
        lasts = [b.add(first, b.sub(stop, I64(1))) for first in group.firsts]
        found = [b.icmp_unsigned(">=", b.sub(last, begin), either) for last in lasts]
        return reduce(b.and_, found)

    def keep(self, value: Value) -> None:
        """Put the next store off."""
        pending = self._pending
        assert pending is not None
        at = self.memory.places.at(pending.kept * pending.group.shape.part_bytes)
        self.b.store(value, at, align=64)
        pending.kept += 1
        if pending.kept == len(pending.group.members):
            self.do()
            self._pending = None

    def do(self) -> None:
        """Do what was put off so far, and count it."""
        pending, b = self._pending, self.b
        if pending is None or pending.kept == 0:
            return
        shape, members = pending.group.shape, pending.group.members
        offsets = [offset for _, offset in members[: pending.kept]]
        # Where code leaves too early, they go one after the other: that is rare.
        together = pending.kept == len(members)
        parts = [offsets] if together else [[offset] for offset in offsets]
        for number, part in enumerate(parts):
            puts = _function(self.frame.module, shape.element, [o - part[0] for o in part])
            pointer = self._transfers.pointer(shape, b.add(pending.first, I64(part[0])))
            data = self.memory.places.at(number * shape.part_bytes)
            b.call(puts, [pointer, pending.step, data])
        self._count(pending)
        record_memory_change(self.lanes, self.frame.environment, I64(pending.kept))

    def _count(self, pending: _Pending) -> None:
        """Count each of those that have come as one more like an earlier one."""
        for number in range(pending.kept):
            pattern, _ = self._pattern(pending, number)
            self.lanes.add_to(self.lanes.slot(pattern, REPEATS), I64(1))


def _function(module: ir.Module, element: ir.IntType, offsets: list[int]) -> Value:
    """Return the function that does the stores of one element and these offsets, made once."""
    name = ".".join(["puts", str(element), *map(str, offsets)])
    if name not in module.globals:
        function = ir.Function(module, SIGNATURE, name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        function.args[2].add_attribute("noalias")
        _emit(Lanes(module, FoldingBuilder()), function, element, offsets)
    return module.globals[name]


def _emit(lanes: Lanes, function: ir.Function, element: ir.IntType, offsets: list[int]) -> None:
    """Emit a loop over the lanes."""
    start, lap, done = (function.append_basic_block(name) for name in ("start", "lane", "done"))
    b, (first, step, data) = lanes.b, function.args
    b.position_at_end(start)
    b.branch(lap)
    b.position_at_end(lap)
    lane, place = b.phi(I32), b.phi(PTR)
    for number, offset in enumerate(offsets):
        at = b.add(lane, I32(number * LANES))
        value = b.load(b.gep(data, [at], source_etype=element), typ=element)
        b.store(value, b.gep(place, [I64(offset)], source_etype=I8), align=element.width // 8)
    following, behind = b.add(lane, I32(1)), b.gep(place, [step], source_etype=I8)
    for value, begun, next_one in ((lane, I32(0), following), (place, first, behind)):
        value.add_incoming(begun, start)
        value.add_incoming(next_one, lap)
    b.cbranch(b.icmp_unsigned("<", following, I32(LANES)), lap, done)
    b.position_at_end(done)
    b.ret_void()
