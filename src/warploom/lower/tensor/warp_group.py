"""Emits `wgmma` instructions: each warp of a warp group (four warps) multiplies its own 16 rows.

By default a product completes when it is issued. Code for other schedules may complete it where the
warp waits for it (`simt.product_groups`), with the contents that registers and shared memory have
then."""

from __future__ import annotations

from warploom.abi.environment import Slot
from warploom.core.types import PRED, U32, U64
from warploom.isa.instruction import Immediate, Instruction
from warploom.isa.kinds import OpKind
from warploom.llvm.lanes import I1, I32, I64, Value
from warploom.lower.access.memory import MemoryCode
from warploom.lower.frame.in_flight import InFlightCode, InFlightOperation, RingWord
from warploom.lower.operations.moves import Result
from warploom.lower.tensor.group_sums import GroupSums
from warploom.program.warp_groups import group_operands
from warploom.simt.schedule_layout import GROUP_WARPS

PART_OF_A_WARP_GROUP, TOO_MANY_IN_FLIGHT = 21, 22
"""Kinds of faults (`machine.faults.fault_errors.FaultKind`)."""


class WarpGroupCode:
    """Emits the `wgmma` instructions of one warp function. `delays`: the code is for schedules in
    which products may complete late."""

    def __init__(self, memory: MemoryCode, *, delays: bool) -> None:
        """Finds the operands of the program's products (`sites`, by instruction), which may be in
        flight. If there are any, allocates the buffer on the stack in which a product is computed
        (`GroupSums`)."""
        self.memory, self.operands, self.frame = memory, memory.operands, memory.frame
        self.lanes, self.b = memory.lanes, memory.b
        self.flight, self.delays = InFlightCode(memory.frame), delays
        self.sites = {
            index: group_operands(instruction)
            for index, instruction in enumerate(self.frame.program.instructions)
            if instruction.operation.kind is OpKind.GROUP_PRODUCT
        }
        self.sums = GroupSums(memory, self.sites)

    def emit(self, index: int, instruction: Instruction, on: Value) -> list[Result]:
        """Emits a `wgmma` product, commit or wait; returns the registers of a product with their
        sums, in code where all complete at once, else an empty list. Commits and waits have code,
        which runs if some lane executes, only where products may complete late."""
        if instruction.operation.kind is OpKind.GROUP_PRODUCT:
            return self._issue(index, on)
        if self.delays and self.sites:
            if instruction.operation.kind is OpKind.GROUP_COMMIT:
                self.lanes.when(self.lanes.any(on), lambda: self.flight.add(RingWord.GROUP))
            else:
                newest = instruction.operands[0]
                assert isinstance(newest, Immediate)
                self.lanes.when(self.lanes.any(on), lambda: self._wait(newest.value))
        return []

    # ---- issue ----------------------------------------------------------------------------------

    def _issue(self, index: int, on: Value) -> list[Result]:
        """Emits a product, after the check that its warp group is complete. In code where all
        complete at once it returns the sums; else the run-time test `is_late` decides whether it is
        appended to those in flight (a fault if the ring is full), or computed and its registers
        written here, and the list is empty."""
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

    def _entry(self, index: int, on: Value) -> InFlightOperation:
        """Returns the description of a product while it is in flight: its number and group (0 if
        all complete at once); the executing lanes; the lanes that accumulate, whose `scale-d` is
        true (executing or not). Then the descriptors of A and B of the lowest executing lane, that
        of B twice if A is in registers, and the metadata of a sparse A."""
        operands = self.sites[index]
        lane = self._lowest_lane(on)
        a, b = (
            self.lanes.lane(self.operands.read(operand, U64), lane)
            for operand in operands.descriptors
        )
        return InFlightOperation(
            I64(index),
            self.flight.get(RingWord.GROUP) if self.delays else I64(0),
            self.lanes.bits(on),
            self.lanes.bits(self.operands.read(operands.scale_d, PRED)),
            (a, b),
            None if operands.metadata is None else self.operands.read(operands.metadata[0], U32),
        )

    def _lowest_lane(self, on: Value) -> Value:
        """Returns the lowest lane of a mask, as an i32."""
        return self.lanes.intrinsic("llvm.cttz.i32", I32, [self.lanes.bits(on), I1(0)])

    def _check_group(self, index: int, on: Value) -> None:
        """Emits the fault of a block whose last warp group is incomplete, if the running warp is in
        it."""
        b = self.b
        # Warp number with both low bits set: the last warp of its group of four.
        last = b.or_(self.frame.warp, I64(GROUP_WARPS - 1))
        missing = b.icmp_unsigned(">=", last, self.frame.slot(Slot.WARPS))
        self._fault_where(missing, PART_OF_A_WARP_GROUP, index, on)

    def _check_registers(self, index: int, on: Value) -> None:
        """Emits the fault of too many products in flight, taken if the warp's ring is full."""
        self._fault_where(self.flight.is_full(), TOO_MANY_IN_FLIGHT, index, on)

    def _fault_where(self, bad: Value, kind: int, index: int, on: Value) -> None:
        """Emits a branch to the fault `kind` of instruction `index`, of the lowest lane in `on`, if
        the condition `bad` (an i1) holds; the fault has no details (0, 0)."""
        with self.b.if_then(bad, likely=False):
            self.frame.fault(kind, index, self._lowest_lane(on), I64(0), I64(0))

    # ---- completion -----------------------------------------------------------------------------

    def _wait(self, newest: int) -> None:
        """Emits the completion, oldest first, of the warp's products in flight of all committed
        groups but the `newest` last ones."""
        b, flight = self.b, self.flight

        # GROUP is the number of groups committed.
        def is_committed(entry: InFlightOperation) -> Value:
            """Emits the test (an i1) that a product is of a committed group other than the `newest`
            last ones."""
            return b.icmp_unsigned("<", b.add(entry.group, I64(newest)), flight.get(RingWord.GROUP))

        flight.complete(is_committed, self.sites, self._complete)

    def _complete(self, entry: InFlightOperation, index: int) -> None:
        """Emits the product of instruction `index` with the current contents of registers and
        shared memory, and writes its sums in the lanes that issued it (`entry`)."""
        mask = self.lanes.mask(entry.on)
        for operand, value, type in self.sums.emit(entry, index):
            self.operands.write(operand, value, type, mask)
