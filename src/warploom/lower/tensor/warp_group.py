"""`wgmma` in a warp's code: each warp of a group multiplies its own 16 rows.

A product completes where it stands. In code that follows other orders than the default it may
also complete where the warp waits for it (`simt.product_groups`), with what registers and shared
memory hold then.
"""

from __future__ import annotations

from warploom.abi.environment import Slot
from warploom.core.types import PRED, U32, U64
from warploom.isa.ops.wgmma import is_group_product
from warploom.llvm.lanes import I1, I32, I64, Value
from warploom.lower.access.memory import MemoryCode
from warploom.lower.frame.in_flight import Entry, FlightCode, Word
from warploom.lower.operations.moves import Result
from warploom.lower.tensor.group_sums import GroupSums
from warploom.program.warp_groups import group_operands
from warploom.ptx.ir import Immediate, Instruction
from warploom.simt.schedule_layout import GROUP_WARPS

PART_OF_A_WARP_GROUP, TOO_MANY_IN_FLIGHT = 21, 22
"""Kinds of faults (`machine.faults.fault_errors.FaultKind`)."""


class WarpGroupCode:
    """Emits the `wgmma` of one warp function. `delays`: its code is for orders under which products
    may complete late."""

    def __init__(self, memory: MemoryCode, *, delays: bool) -> None:
        self.memory, self.operands, self.frame = memory, memory.operands, memory.frame
        self.lanes, self.b = memory.lanes, memory.b
        self.flight, self.delays = FlightCode(memory.frame), delays
        self.sites = {
            index: group_operands(instruction)
            for index, instruction in enumerate(self.frame.program.instructions)
            if is_group_product(instruction.operation)
        }
        self.sums = GroupSums(memory, self.sites)

    def emit(self, index: int, instruction: Instruction, on: Value) -> list[Result]:
        """Emit any of them but the fence; gives the sums of a product that completes where it
        stands."""
        if is_group_product(instruction.operation):
            return self._issue(index, on)
        if self.delays and self.sites:
            if "commit_group" in instruction.operation.modifiers:
                self.lanes.when(self.lanes.any(on), lambda: self.flight.add(Word.GROUP))
            else:
                newest = instruction.operands[0]
                assert isinstance(newest, Immediate)
                self.lanes.when(self.lanes.any(on), lambda: self._wait(newest.value))
        return []

    # ---- issue ----------------------------------------------------------------------------------

    def _issue(self, index: int, on: Value) -> list[Result]:
        if not self.delays:
            self._check_group(index, on)
            return self.sums.emit(self._entry(index, on), index)
        with self.b.if_then(self.lanes.any(on)):
            self._check_group(index, on)
            entry = self._entry(index, on)
            with self.b.if_else(self.flight.is_late()) as (late, at_once):
                with late:
                    self._check_registers(index, on)
                    self.flight.append(entry)
                with at_once:
                    self._complete(entry, index)
        return []

    def _entry(self, index: int, on: Value) -> Entry:
        """Return a product as it is issued."""
        operands = self.sites[index]
        lane = self._lowest_lane(on)
        a, b = (
            self.lanes.lane(self.operands.read(operand, U64), lane)
            for operand in operands.descriptors
        )
        return Entry(
            I64(index),
            self.flight.get(Word.GROUP) if self.delays else I64(0),
            self.lanes.bits(on),
            self.lanes.bits(self.operands.read(operands.scale_d, PRED)),
            (a, b),
            None if operands.metadata is None else self.operands.read(operands.metadata[0], U32),
        )

    def _lowest_lane(self, on: Value) -> Value:
        """Return the lowest lane of a mask, as an i32."""
        return self.lanes.intrinsic("llvm.cttz.i32", I32, [self.lanes.bits(on), I1(0)])

    def _check_group(self, index: int, on: Value) -> None:
        """Stop the launch where the block has only some warps of the group."""
        b = self.b
        last = b.or_(self.frame.warp, I64(GROUP_WARPS - 1))
        missing = b.icmp_unsigned(">=", last, self.frame.slot(Slot.WARPS))
        self._fault_where(missing, PART_OF_A_WARP_GROUP, index, on)

    def _check_registers(self, index: int, on: Value) -> None:
        """Stop the launch where no more products can be kept."""
        self._fault_where(self.flight.is_full(), TOO_MANY_IN_FLIGHT, index, on)

    def _fault_where(self, bad: Value, kind: int, index: int, on: Value) -> None:
        with self.b.if_then(bad, likely=False):
            self.frame.fault(kind, index, self._lowest_lane(on), I64(0), I64(0))

    # ---- completion -----------------------------------------------------------------------------

    def _wait(self, newest: int) -> None:
        """Complete, oldest first, the products of all committed groups but the newest `newest`."""
        b, flight = self.b, self.flight

        def is_committed(entry: Entry) -> Value:
            return b.icmp_unsigned("<", b.add(entry.group, I64(newest)), flight.get(Word.GROUP))

        flight.complete(is_committed, self.sites, self._complete)

    def _complete(self, entry: Entry, index: int) -> None:
        """Compute a product, and write its sums."""
        mask = self.lanes.mask(entry.on)
        for operand, value, type in self.sums.emit(entry, index):
            self.operands.write(operand, value, type, mask)
