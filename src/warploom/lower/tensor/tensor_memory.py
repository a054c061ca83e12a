"""Emits `tcgen05` instructions as calls of helpers shared with the interpreter
(`asynchronous.issue.tensor_memory`): operands pass in rows of 32 words, one for each lane,
registers in an array beside them."""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.environment import Slot
from warploom.asynchronous.records import TensorMemoryOperands
from warploom.asynchronous.tensor_memory.layout import COMMIT, LOAD, MOST_REGISTERS, NOT_LOADED, OP
from warploom.asynchronous.tensors.requests import field
from warploom.core.lazy import cached_property
from warploom.core.types import B32, PRED, U32
from warploom.helpers.calls import call
from warploom.isa.instruction import Instruction, Space
from warploom.isa.kinds import OpKind
from warploom.llvm.lanes import I1, I8, I32, I64, LANES, Value, splat_constant, vector
from warploom.lower.frame.in_flight import InFlightCode, InFlightOperation
from warploom.lower.operations.moves import Result
from warploom.lower.tensor.tensors import TensorCode
from warploom.program.requests.tensor_memory import (
    RequestOperand,
    TensorMemoryRequest,
    tensor_memory_request,
)

VECTOR_BYTES = 4 * LANES


class TensorMemoryCode:
    """Emits the `tcgen05` instructions of one warp function. `delays`: the code is for schedules in
    which loads and stores may complete late; loads then wait in the ring `flight`."""

    def __init__(self, tensors: TensorCode, *, delays: bool) -> None:
        """Finds the program's loads of tensor memory, which may be in flight."""
        self.tensors, self.operands, self.frame = tensors, tensors.operands, tensors.frame
        self.lanes, self.b = tensors.lanes, tensors.b
        self.flight, self.delays = InFlightCode(tensors.frame), delays
        self.loads = [
            index
            for index, instruction in enumerate(self.frame.program.instructions)
            if instruction.operation.kind is OpKind.TENSOR_LOAD
        ]

    def emit(self, index: int, instruction: Instruction, on: Value) -> list[Result]:
        """Emits a `tcgen05` instruction other than a fence or wait, whose operands are stored in
        rows and, but for a load, the values of its registers in a buffer. If `on` has lanes at run
        time, the race detector gets it, the log gets a commit, and the helper `issue_tensor_memory`
        executes it, with an exit if it faults; but a load that completes late is appended to those
        in flight. Returns the registers of a load with their values, NOT_LOADED for a late one; an
        empty list for others."""
        request, b = tensor_memory_request(instruction), self.b
        loads = field(request.request, OP) == LOAD
        rows = {row_input[0]: self._input(row_input) for row_input in request.inputs}
        self.tensors.fill(rows, TensorMemoryOperands.WORDS)
        # A load's registers are results, and need no values.
        for number, register in enumerate(() if loads else request.registers):
            b.store(self.operands.read(register, U32), self._register(number), align=64)
        bits = b.zext(self.lanes.bits(on), I64)
        with b.if_then(b.icmp_unsigned("!=", bits, I64(0))):
            self.tensors.store_context(bits, request.request)
            arguments, instruments = self._arguments(), self.tensors.memory.instruments
            if instruments.detector is not None:
                instruments.detector.events.tensor_memory(index, on, arguments)
            if instruments.copies is not None and field(request.request, OP) == COMMIT:
                instruments.copies.commits(index, self.tensors.issue(0))
            if loads and self.delays:
                with b.if_else(self.flight.is_late()) as (late, at_once):
                    with late:
                        self._defer_load(index, request, on)
                    with at_once:
                        self._issue(index)
            else:
                self._issue(index)
        return self._load_results(request) if loads else []

    def wait(self, instruction: Instruction, on: Value) -> None:
        """Emits, at a `tcgen05.wait`, the completion of the warp's loads or stores in flight, if
        `on` has lanes; nothing for other instructions, or if none may complete late."""
        if not self.delays:
            return
        if instruction.operation.kind is OpKind.TENSOR_WAIT_LOADS:
            self.lanes.when(self.lanes.any(on), self._complete_loads)
        elif instruction.operation.kind is OpKind.TENSOR_WAIT_STORES:
            self.lanes.when(self.lanes.any(on), self._complete_stores)

    def _arguments(self) -> tuple[Value, Value]:
        """Returns the pointers to the host's memory and to the issue."""
        return self.tensors.host_memory, self.tensors.issue(0)

    def _issue(self, index: int) -> None:
        """Emits the call of the helper `issue_tensor_memory` for a request whose operands and
        context are stored, and the exit if it faults."""
        b, frame, tensors = self.b, self.frame, self.tensors
        failed = call(
            self.lanes,
            "issue_tensor_memory",
            *self._arguments(),
            self._register(0),
            tensors.counts(index, Space.SHARED),
            frame.pointer(Slot.PLAN_AT),
            frame.pointer(Slot.QUEUE_AT),
            I64(index),
        )
        with b.if_then(b.icmp_unsigned("!=", failed, I64(0)), likely=False):
            tensors.fail(index)

    def _load_results(self, request: TensorMemoryRequest) -> list[Result]:
        """Returns the destination registers of a load and their values, read from the stack buffer
        of registers."""
        return [
            (register, self.b.load(self._register(number), typ=vector(I32), align=64), B32)
            for number, register in enumerate(request.registers)
        ]

    # ---- what completes late --------------------------------------------------------------------

    def _defer_load(self, index: int, request: TensorMemoryRequest, on: Value) -> None:
        """Appends a load to those in flight, until its warp waits: its lanes `on`, of which there
        is one at least, and the lowest one's address and distance of the columns' second half.
        Stores the marker NOT_LOADED as the values of its registers, in all lanes of their buffer.
        If the ring is full, all loads in flight complete first."""
        leader = self.lanes.intrinsic("llvm.cttz.i32", I32, [self.lanes.bits(on), I1(0)])
        address, split = (
            self._operand(row, leader) for row in (TensorMemoryOperands.d, TensorMemoryOperands.a)
        )
        with self.b.if_then(self.flight.is_full(), likely=False):
            self._complete_loads()
        entry = InFlightOperation(
            I64(index), I64(0), self.lanes.bits(on), I32(0), (address, split), None
        )
        self.flight.append(entry)
        # PTX leaves the registers undefined up to the wait: a marker shows where a program reads
        # them before it.
        for number in range(len(request.registers)):
            self.b.store(splat_constant(NOT_LOADED, I32), self._register(number), align=64)

    def _operand(self, row: int, lane: Value) -> Value:
        """Loads one lane's word, an i64, of an operand row; `row` is the row's offset in words."""
        values = self.b.load(self.tensors.issue(row), typ=vector(I64), align=64)
        return self.lanes.lane(values, lane)

    def _complete_loads(self) -> None:
        """Completes the warp's loads in flight, and writes their registers."""
        self.flight.complete(lambda _: I1(1), self.loads, self._complete)

    def _complete(self, entry: InFlightOperation, index: int) -> None:
        """Emits a deferred load of instruction `index` with the address and distance of its entry,
        the exit if it faults, and writes its registers in the lanes that issued it. Overwrites the
        operand rows and the buffer of registers."""
        request = tensor_memory_request(self.frame.program.instructions[index])
        address, split = entry.descriptors
        rows = {
            TensorMemoryOperands.d: self.lanes.splat(address),
            TensorMemoryOperands.a: self.lanes.splat(split),
        }
        self.tensors.fill(rows, TensorMemoryOperands.WORDS)
        self.tensors.store_context(self.b.zext(entry.on, I64), request.request)
        self._issue(index)
        mask = self.lanes.mask(entry.on)
        for register, value, type in self._load_results(request):
            self.operands.write(register, value, type, mask)

    def _complete_stores(self) -> None:
        """Emits the call that completes the warp's stores in flight."""
        self.tensors.store_context(I64(0))
        lists = self.frame.pointer(Slot.PLAN_AT), self.frame.pointer(Slot.QUEUE_AT)
        call(self.lanes, "wait_stores", *self._arguments(), *lists)

    # ---- operands -------------------------------------------------------------------------------

    def _input(self, arguments: RequestOperand) -> Value:
        """Returns the 32 words of an operand row (row, operand, type): addresses if there is no
        type, else values zero-extended to 64 bits."""
        _, operand, type = arguments
        if type is None:
            return self.operands.address(operand)
        value = self.operands.read(operand, type)
        if type is not PRED:
            value = self.b.bitcast(value, vector(ir.IntType(type.bits)))
        return value if type.bits == 64 else self.b.zext(value, vector(I64))

    def _register(self, number: int) -> Value:
        """Returns the address of a register's 32 words in the array of registers."""
        return self.b.gep(self._register_buffer, [I64(VECTOR_BYTES * number)], source_etype=I8)

    @cached_property
    def _register_buffer(self) -> Value:
        """Returns the stack buffer of registers, each a vector of 32 words (i32), that a request
        reads or a load writes; it is allocated at its first use."""
        size = ir.ArrayType(I8, VECTOR_BYTES * MOST_REGISTERS)
        return self.frame.prologue.alloca(size, align=64)
