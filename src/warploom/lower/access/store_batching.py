"""Emits stores to columns that are deferred to the last one of their access group (stores of a
block from one base register) and then performed lane by lane, for the host's cache.

Where a warp writes columns, each lane writes to a cache line of its own, and power-of-two strides
map all lines to a few sets of the host's cache: by the next store the line has been evicted. All
words of one lane, stored together, use the line while it is present:

    st [%rd1], a; st [%rd1+4], b     stride of 4096 bytes
    ->  for lane in 0..31:  store a[lane], b[lane] at %rd1[0] + 4096 * lane

Stores are deferred only if all lanes are active, and their addresses are strided, disjoint (so that
the order does not matter) and inside of the allocation accessed last. Each store must also repeat a
pattern that its record has counted (`cost.pattern_table`), which gives its cost and implies its
alignment. Otherwise the block's slow version stores at once. Which stores form such groups is
decided by `passes.store_batching`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from llvmlite import ir

from warploom.abi.access_type import record_memory_change
from warploom.cost.pattern_table import StoredPattern
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
from warploom.lower.access.groups import GroupValues
from warploom.lower.access.memory import MemoryCode
from warploom.lower.access.pattern_slots import pattern_slot
from warploom.lower.access.transfers import Transfers

ALL_LANES = (1 << LANES) - 1
SIGNATURE = ir.FunctionType(ir.VoidType(), [PTR, I64, PTR])
"""The signature of `puts(first, step, data)`: the address in lane 0, bytes from lane to lane, and
the stored elements, 32 for each store."""


@dataclass
class _Pending:
    """Holds deferred stores: the base address in lane 0, the bytes from lane to lane, and the
    number of bytes from the first to the last one that is stored, both included."""

    group: GroupValues
    first_base: Value
    step: Value
    extent: Value
    count: int = 0
    """The number of stores appended so far."""


class StoreBatch:
    """Emits deferred stores, for one access group at a time: all are done at the group's last one.

    A group's stores (of one element type, at constant offsets from one register) are pending from
    its first to its last one, which performs all of them lane by lane."""

    def __init__(self, memory: MemoryCode) -> None:
        """Creates the batch, in which no store is pending."""
        self.memory, self._group_addresses = memory, GroupAddresses(memory.lanes)
        self._transfers = Transfers(memory.lanes, memory.storage.pointer)
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b
        self._pending: _Pending | None = None

    def reset(self) -> None:
        """Resets the batch: no pending store dominates the code emitted next."""
        self._pending = None

    def begin(self, group: GroupValues, bases: Value) -> Value:
        """Makes the stores of a group the pending ones. Returns true (an i1) if they can be
        deferred, provided that all lanes are active: `bases`, the lanes' base addresses, rise by
        one step, no shorter than the bytes that a lane's stores span and less than FURTHEST longer;
        all bytes lie in the allocation accessed last (or the space); and each store's pattern is in
        its access record."""
        b, index = self.b, group.members[0][0]
        start, stop = group.accesses.span
        first_base = self.lanes.lane(bases, 0)
        step = b.sub(self.lanes.lane(bases, 1), first_base)
        extent = b.add(b.mul(step, I64(LANES - 1)), I64(stop - start))
        steps = b.mul(self.lanes.splat(step), lane_numbers(I64))
        is_irregular = b.icmp_unsigned("!=", bases, b.add(self.lanes.splat(first_base), steps))
        begin = b.add(first_base, I64(start))
        conditions = [
            b.not_(self.lanes.any(is_irregular)),
            # The step is at least as long as the bytes that a lane stores, so lanes do not overlap,
            # and too short for a sum to wrap around.
            b.icmp_unsigned("<", b.sub(step, I64(stop - start)), I64(FURTHEST)),
            self.memory.storage.is_within(index, group.access_type.space, begin, extent),
        ]
        # Set though the conditions may fail: code of the fast version goes on as if they held, and
        # the exit flushes nothing, since no store has been appended yet.
        self._pending = _Pending(group, first_base, step, extent)
        for number in range(len(group.members)):
            conditions += self._pattern_matches(self._pending, number)
        return reduce(b.and_, conditions)

    def _pattern(self, pending: _Pending, number: int) -> tuple[Value, Value]:
        """Returns, for pending store number `number`, the address of the pattern in its access
        record that it must match to be counted as its repetition, all lanes being active, and lane
        0's distance in bytes from the start of its aligned unit (`pattern_slot`)."""
        index, offset = pending.group.members[number]
        first_byte = self.b.add(pending.first_base, I64(offset))
        rules = self.frame.layout.rules
        location = pattern_slot(self.lanes, rules, I64(ALL_LANES), first_byte)
        record = self.memory.storage.record_address(index, pending.group.access_type.space)
        return self.lanes.slot(record, location.at), self.b.sub(first_byte, location.base)

    def _pattern_matches(self, pending: _Pending, number: int) -> list[Value]:
        """Returns conditions (i1) that hold if the access record has the pattern of pending store
        `number`: all lanes, the step of the pending stores and the offset of lane 0. Strided lanes
        have no other differences."""
        pattern, offset = self._pattern(pending, number)
        expected = (
            (StoredPattern.mask, I64(ALL_LANES)),
            (StoredPattern.step, pending.step),
            (StoredPattern.offsets, offset),
        )
        return [
            self.b.icmp_unsigned("==", self.b.load(self.lanes.slot(pattern, word), typ=I64), value)
            for word, value in expected
        ]

    def disjoint(self, group: GroupValues) -> Value | None:
        """Returns true (an i1) if all lane runs of a group are disjoint from the byte range from
        the first to the last pending store of all lanes; None if no store is pending in their
        space."""
        pending, b = self._pending, self.b
        if pending is None or group.access_type.space is not pending.group.access_type.space:
            return None
        start, stop = self._group_addresses.span(group)
        begin = b.add(pending.first_base, I64(pending.group.accesses.span[0]))
        overlap_span = b.add(pending.extent, b.sub(b.sub(stop, start), I64(1)))
        # Ranges overlap exactly if the load's last byte is less than both lengths together, minus
        # one, after the first stored byte (modulo 2^64).
        lasts = [b.add(run_first, b.sub(stop, I64(1))) for run_first in group.firsts]
        conditions = [b.icmp_unsigned(">=", b.sub(last, begin), overlap_span) for last in lasts]
        return reduce(b.and_, conditions)

    def append(self, value: Value) -> None:
        """Stores the 32 lanes of the next store's element to the data buffer; after the last store
        of the group, emits all of them (`flush`), and none is pending any more."""
        pending = self._pending
        assert pending is not None
        at = self.memory.storage.at(pending.count * pending.group.access_type.part_bytes)
        self.b.store(value, at, align=64)
        pending.count += 1
        if pending.count == len(pending.group.members):
            self.flush()
            self._pending = None

    def flush(self) -> None:
        """Emits the stores that were appended so far: all of the group by one call; if only some
        were appended (at an exit before the last), each by a call of its own. Counts them in their
        patterns and as memory changes. Nothing if there are none. They stay pending, for code after
        the exit."""
        pending, b = self._pending, self.b
        if pending is None or pending.count == 0:
            return
        access_type, members = pending.group.access_type, pending.group.members
        offsets = [offset for _, offset in members[: pending.count]]
        # On an early exit, which is rare, stores go one after the other: a function for every
        # prefix of the group would be more code.
        together = pending.count == len(members)
        parts = [offsets] if together else [[offset] for offset in offsets]
        for number, part in enumerate(parts):
            function = _store_function(
                self.frame.module, access_type.element, [o - part[0] for o in part]
            )
            pointer = self._transfers.pointer(access_type, b.add(pending.first_base, I64(part[0])))
            data = self.memory.storage.at(number * access_type.part_bytes)
            b.call(function, [pointer, pending.step, data])
        self._count(pending)
        record_memory_change(self.lanes, self.frame.environment, I64(pending.count))

    def _count(self, pending: _Pending) -> None:
        """Counts each store appended so far as a repetition of its pattern in its access record."""
        for number in range(pending.count):
            pattern, _ = self._pattern(pending, number)
            self.lanes.add_to(self.lanes.slot(pattern, StoredPattern.repeats), I64(1))


def _store_function(module: ir.Module, element: ir.IntType, offsets: list[int]) -> Value:
    """Returns the function that stores 32 lanes of one element type at each of these byte offsets
    from the lane's address (arguments: SIGNATURE); creates it in the module on first use."""
    name = ".".join(["puts", str(element), *map(str, offsets)])
    if name not in module.globals:
        function = ir.Function(module, SIGNATURE, name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        function.args[2].add_attribute("noalias")
        _emit_lane_loop(Lanes(module, FoldingBuilder()), function, element, offsets)
    return module.globals[name]


def _emit_lane_loop(
    lanes: Lanes, function: ir.Function, element: ir.IntType, offsets: list[int]
) -> None:
    """Emits the body of a store function: a loop over the 32 lanes, each of which stores its
    elements (number n of 32 lanes at the data's n-th vector) at all `offsets` from its address,
    lane 0's plus `step` bytes for each lane."""
    start, loop_block, done = (
        function.append_basic_block(name) for name in ("start", "lane", "done")
    )
    b, (first_pointer, step, data) = lanes.b, function.args
    b.position_at_end(start)
    b.branch(loop_block)
    b.position_at_end(loop_block)
    lane, location = b.phi(I32), b.phi(PTR)
    for number, offset in enumerate(offsets):
        at = b.add(lane, I32(number * LANES))
        value = b.load(b.gep(data, [at], source_etype=element), typ=element)
        b.store(value, b.gep(location, [I64(offset)], source_etype=I8), align=element.width // 8)
    following, next_pointer = b.add(lane, I32(1)), b.gep(location, [step], source_etype=I8)
    for value, initial, next_value in (
        (lane, I32(0), following),
        (location, first_pointer, next_pointer),
    ):
        value.add_incoming(initial, start)
        value.add_incoming(next_value, loop_block)
    b.cbranch(b.icmp_unsigned("<", following, I32(LANES)), loop_block, done)
    b.position_at_end(done)
    b.ret_void()
