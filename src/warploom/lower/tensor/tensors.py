"""Emits operations of the Tensor Memory Accelerator (copies of tensors and of bytes, reductions,
changes of tensor maps, cancellations of clusters) as calls of helpers shared with the interpreter
(`asynchronous.issue.tensor_copies`). Operands are passed in rows of 32 words, one for each lane.
Also emits the deferral of `st.async` and `red.async`, and the completion of late copies."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

from llvmlite import ir

from warploom.abi.environment import SPACE_CODES, Slot, Status
from warploom.asynchronous.records import CopyOperands, PendingList, RequestQueue, WarpIssue
from warploom.asynchronous.tensors.entries import ORIGIN
from warploom.core.lazy import cached_property
from warploom.cost.fields import CostRecord
from warploom.helpers.calls import call
from warploom.isa.instruction import Instruction, Space
from warploom.isa.kinds import OpKind
from warploom.llvm.lanes import I64, LANES, PTR, Value, splat_constant, vector
from warploom.lower.access.memory import MemoryCode
from warploom.lower.frame.operands import WINDOWS
from warploom.program.accesses import bytes_of
from warploom.program.effects.tensor_waits import (
    GroupRequest,
    LateCopy,
    WaitRequest,
    group_request,
    late_copy,
    wait_request,
)
from warploom.program.requests.tensor_memory import work_words
from warploom.program.requests.tensors import RequestOperand, tensor_request

THREADS_BITS = 6
"""Bits of a warp's number in its block, and of a lane's, in `first_thread`: block << 12 |
warp << 6 | lane."""

RECORD = {
    Slot.FAULT_KIND: WarpIssue.fault_kind,
    Slot.FAULT_LANE: WarpIssue.fault_lane,
    Slot.FAULT_ADDRESS: WarpIssue.fault_address,
    Slot.FAULT_SIZE: WarpIssue.fault_size,
}
"""The words in which the helpers report a fault, by the environment's slot of its record."""


class TensorCode:
    """Emits the tensor copies of one warp function; owns the stack buffer (`WarpIssue`) that passes
    operands, context and faults to the helpers that execute copies."""

    def __init__(self, memory: MemoryCode) -> None:
        """Shares the operands, frame and IR builder of `memory`; emits nothing."""
        self.memory, self.operands = memory, memory.operands
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b

    def emit(self, index: int, instruction: Instruction, on: Value) -> None:
        """Emits an operation of `isa.ops.tensors` (a tensor copy or reduction, a change of a tensor
        map, a cancellation of a cluster's launch). Stores its operands in rows; if `on` has lanes
        at run time, passes it to the race detector, the log and the helper that executes it, and
        exits if it faults."""
        request, b, frame = tensor_request(instruction), self.b, self.frame
        rows = {
            operand_input[0]: self._input(operand_input, request.map_space)
            for operand_input in request.inputs
        }
        # Rows of values that replace those of a map are read only where there are any.
        self.fill(rows, max(CopyOperands.sizes, *(row + LANES for row in rows)))
        bits = b.zext(self.lanes.bits(on), I64)
        with b.if_then(b.icmp_unsigned("!=", bits, I64(0))):
            self.store_context(bits, request.request)
            arguments = self.host_memory, self.issue(0), frame.pointer(Slot.ALLOCATIONS_AT)
            instruments = self.memory.instruments
            if instruments.detector is not None:
                instruments.detector.events.copies(index, on, arguments)
            if instruments.copies is not None:
                instruments.copies.copies(index, self.issue(0))
            failed = call(
                self.lanes,
                "issue_copies",
                *arguments,
                self.counts(index, Space.GLOBAL),
                self.counts(index, Space.SHARED),
                frame.pointer(Slot.PLAN_AT),
                frame.pointer(Slot.QUEUE_AT),
            )
            with b.if_then(b.icmp_unsigned("!=", failed, I64(0)), likely=False):
                self.fail(index)

    def fail(self, index: int) -> None:
        """Emits the exit with FAULT: copies the fault that a helper has stored in the issue to the
        environment's record, with the instruction, the warp and the space."""
        b, frame = self.b, self.frame
        in_shared = b.load(self.issue(WarpIssue.fault_in_shared), typ=I64)
        is_shared = b.icmp_unsigned("!=", in_shared, I64(0))
        spaces = (I64(SPACE_CODES[space]) for space in (Space.SHARED, Space.GLOBAL))
        frame.record(Slot.FAULT_INSTRUCTION, I64(index))
        frame.record(Slot.FAULT_WARP, frame.warp)
        frame.record(Slot.FAULT_SPACE, b.select(is_shared, *spaces))
        for slot, word in RECORD.items():
            frame.record(slot, b.load(self.issue(word), typ=I64))
        frame.leave(Status.FAULT)

    def _input(self, arguments: RequestOperand, map_space: Space) -> Value:
        """Returns the 32 words of an operand row (row, operand, type): addresses if there is no
        type (that of a tensor map in shared or parameter memory as a generic one), else values,
        extended to 64 bits by the type's signedness."""
        row, operand, type = arguments
        if type is None:
            # The helpers address a tensor map by its generic address.
            window = WINDOWS.get(map_space, 0) if row == CopyOperands.map else 0
            address = self.operands.address(operand)
            return self.b.add(address, splat_constant(window, I64)) if window else address
        value = self.b.bitcast(self.operands.read(operand, type), vector(ir.IntType(type.bits)))
        if type.bits == 64:
            return value
        return (self.b.sext if type.is_signed else self.b.zext)(value, vector(I64))

    def fill(self, rows: dict[int, Value], words: int = CopyOperands.WORDS) -> None:
        """Stores rows of operands (32 words of 64 bits), by their offsets in words, and zeros in
        all other rows of `words` words."""
        zero = splat_constant(0, I64)
        for row in range(0, words, LANES):
            self.b.store(rows.get(row, zero), self.issue(row), align=64)

    def store_context(self, bits: Value, request: int = 0) -> None:
        """Emits stores to the issue: of the lanes that execute it, `bits` (an i64), and of
        `request`, its packed options. Then of the number of allocations; start and size of the
        block's shared memory; start of the cluster's, and the distance of its blocks' memory; the
        cluster's live blocks; and the numbers of the block, the warp and its first thread
        (THREADS_BITS)."""
        b, frame = self.b, self.frame
        block = frame.slot(Slot.BLOCK)
        warps = b.add(b.shl(block, I64(THREADS_BITS)), frame.warp)
        words = {
            WarpIssue.allocations: frame.slot(Slot.ALLOCATIONS),
            WarpIssue.own_shared: frame.slot(Slot.SHARED_AT),
            WarpIssue.shared_bytes: frame.slot(Slot.SHARED_BYTES),
            WarpIssue.cluster_shared: self.memory.clusters.start(),
            WarpIssue.shared_stride: frame.slot(Slot.SHARED_STRIDE),
            WarpIssue.live_blocks: self.memory.clusters.live(),
            WarpIssue.first_thread: b.shl(warps, I64(THREADS_BITS)),
            WarpIssue.block: block,
            WarpIssue.warp: frame.warp,
            WarpIssue.mask: bits,
            WarpIssue.request: I64(request),
        }
        for word, value in words.items():
            b.store(value, self.issue(word))

    def counts(self, index: int, space: Space) -> Value:
        """Returns the address of the access record (counts) of an instruction and a space; for an
        access that is not counted, a buffer that is discarded."""
        if (index, space) in self.memory.storage.record_numbers:
            return self.memory.storage.record_address(index, space)
        return self._discarded_counts

    # ---- addresses ------------------------------------------------------------------------------

    @property
    def host_memory(self) -> Value:
        """Returns the pointer to host address `ORIGIN`, from which helpers address all memory."""
        return self.b.inttoptr(I64(ORIGIN), PTR)

    def issue(self, word: int) -> Value:
        """Returns the address of a word (64 bits) of the issue, by its offset in `WarpIssue`."""
        return self.lanes.slot(self._words, word)

    @cached_property
    def _words(self) -> Value:
        """Returns the stack buffer of the issue (`WarpIssue`) and of its work space, allocated on
        first use."""
        size = WarpIssue.WORDS + work_words(self.frame.program.has_tensor_memory)
        return self.frame.prologue.alloca(ir.ArrayType(I64, size), align=64)

    @cached_property
    def _discarded_counts(self) -> Value:
        """Returns a stack buffer of the size of an access record, allocated on first use: helpers
        add the costs of accesses that are not counted to it instead of a record."""
        return self.frame.prologue.alloca(ir.ArrayType(I64, CostRecord.WORDS), align=64)


class TensorWaitCode:
    """Emits the completion of pending copies before instructions that wait for asynchronous copies,
    and the deferral of copies, in code for schedules in which copies may complete late (`delays`).
    """

    def __init__(self, tensors: TensorCode, *, delays: bool) -> None:
        """Shares the operands and the frame of `tensors`; emits nothing. `delays`: the code is for
        schedules in which copies may complete late."""
        self.tensors, self.operands = tensors, tensors.operands
        self.frame, self.lanes, self.b = tensors.frame, tensors.lanes, tensors.b
        self.delays = delays

    def emit(self, instruction: Instruction, on: Value) -> None:
        """Emits, before an instruction that waits at an mbarrier, or that commits or awaits groups
        of copies, the call that completes or groups pending copies, if there are any and some lane
        executes; nothing before others, or if none may complete late."""
        if not self.delays:
            return
        wait, group = wait_request(instruction), group_request(instruction)
        if wait is not None:
            self._when_pending(on, lambda bits: self._wait(wait, bits))
        elif group is not None:
            self._when_pending(on, lambda bits: self._group(group, bits))

    def _when_pending(self, on: Value, emit: Callable[[Value], None]) -> None:
        """Emits code that runs only if copies are pending in either list (tensor copies: QUEUE_AT,
        copies of lanes: HELD_AT) and some lane executes; `emit` gets the lanes as bits of an i64.
        """
        b = self.b
        bits = b.zext(self.lanes.bits(on), I64)
        pending = b.add(
            b.load(self.lanes.slot(self.frame.pointer(Slot.QUEUE_AT), RequestQueue.count), typ=I64),
            b.load(self.lanes.slot(self.frame.pointer(Slot.HELD_AT), PendingList.count), typ=I64),
        )
        some = b.icmp_unsigned("!=", bits, I64(0))
        with b.if_then(b.and_(some, b.icmp_unsigned("!=", pending, I64(0)))):
            emit(bits)

    def _state(self, bits: Value) -> tuple[Value, ...]:
        """Emits stores of the warp's context and its lanes (`bits`, an i64) in the issue; returns
        the arguments that the helpers of waits share: memory, and addresses of the issue, the
        schedule and both lists of copies."""
        self.tensors.store_context(bits)
        slots = Slot.PLAN_AT, Slot.QUEUE_AT, Slot.HELD_AT
        lists = (self.frame.pointer(slot) for slot in slots)
        return self.tensors.host_memory, self.tensors.issue(0), *lists

    @contextmanager
    def deferring(
        self, copy: LateCopy | None, rows: Mapping[int, Value], on: Value
    ) -> Generator[None]:
        """Emits the deferral of a copy around its code, which is emitted while the context is open.
        Before it, the call of `hold_copies` saves the bytes that the copy will overwrite. After it,
        `defer_copies` saves the new bytes until the copy completes, and restores the old ones; it
        is called only if `hold_copies` has saved any at run time. `rows` are the copy's operands by
        row (without one for the mbarrier, that is -1). If `copy` is None, as for copies that
        complete at once, or none may complete late, nothing is emitted around the code."""
        if copy is None or not self.delays:
            yield
            return
        b, frame, pointer = self.b, self.frame, self.frame.pointer
        defaults = {CopyOperands.barrier: splat_constant(-1, I64)}
        self.tensors.fill({**defaults, **rows})
        self.tensors.store_context(b.zext(self.lanes.bits(on), I64))
        held = call(
            self.lanes,
            "hold_copies",
            self.tensors.host_memory,
            self.tensors.issue(0),
            pointer(Slot.ALLOCATIONS_AT),
            pointer(Slot.PLAN_AT),
            pointer(Slot.HELD_AT),
            I64(copy.action),
            I64(copy.groups),
        )
        pending = frame.variable(I64)
        b.store(held, pending)
        yield
        some = b.icmp_unsigned("!=", b.load(pending, typ=I64), I64(0))
        with b.if_then(some):
            arguments = pointer(Slot.PLAN_AT), pointer(Slot.HELD_AT)
            call(self.lanes, "defer_copies", self.tensors.host_memory, *arguments)

    def lane_operands(self, instruction: Instruction) -> dict[int, Value]:
        """Returns the operands of an `st.async` or `red.async` that may complete late, by row of
        the helper `hold_copies`: target address, bytes, mbarrier, and the value that a `red` adds,
        as 64 bits. Empty for other instructions, or if copies complete at once."""
        if late_copy(instruction) is None or not self.delays:
            return {}
        target, barrier = (self.operands.address(instruction.operands[number]) for number in (0, 2))
        size = splat_constant(bytes_of(instruction), I64)
        rows = {CopyOperands.shared: target, CopyOperands.size: size, CopyOperands.barrier: barrier}
        if instruction.operation.kind is OpKind.ASYNC_REDUCTION:
            type = instruction.operation.modifiers.scalar()
            bits = self.operands.bits(instruction.operands[1], type)
            rows[CopyOperands.opposite] = (
                bits if type.bits == 64 else self.b.zext(bits, vector(I64))
            )
        return rows

    def _wait(self, wait: WaitRequest, bits: Value) -> None:
        """Emits stores of an mbarrier's address and of the phase or parity in operand rows, and the
        call that completes the copies for which lanes (`bits`, an i64) wait there."""
        value = self.operands.read(wait.value, wait.type)
        if wait.type.bits < 64:
            value = self.b.zext(value, vector(I64))
        address = self.operands.address(wait.barrier)
        self.tensors.fill({CopyOperands.barrier: address, CopyOperands.value: value})
        call(self.lanes, "wait_copies", *self._state(bits), I64(int(wait.by_parity)))

    def _group(self, group: GroupRequest, bits: Value) -> None:
        """Emits the call that commits a group of the lanes' copies, or completes groups until no
        more than the instruction allows are pending, as `group` states."""
        numbers = (I64(n) for n in (group.action, group.left, group.groups))
        call(self.lanes, "group_copies", *self._state(bits), *numbers)
