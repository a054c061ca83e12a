"""`tcgen05` in a warp's code: operands into rows, registers beside them, a call of the rules."""

from __future__ import annotations

from functools import cached_property

from llvmlite import ir

from warploom.analysis.tensor_memory import Input, memory_request
from warploom.codegen.environment import Slot
from warploom.codegen.helper_calls import call
from warploom.codegen.lanes import I8, I32, I64, LANES, Value, splat_constant, vector
from warploom.codegen.moves import Result
from warploom.codegen.tensors import ROW_BYTES, TensorCode
from warploom.core.types import B32, PRED, U32
from warploom.ptx.ir import Instruction, Space
from warploom.rules.tensor_memory.words import DATA_ROWS, LOAD, MOST_REGISTERS, OP, part

VECTOR_BYTES = 4 * LANES


class TensorMemoryCode:
    """Emits the `tcgen05` of one warp function."""

    def __init__(self, tensors: TensorCode) -> None:
        self.tensors, self.operands, self.frame = tensors, tensors.operands, tensors.frame
        self.lanes, self.b = tensors.lanes, tensors.b

    def emit(self, index: int, made: Instruction, on: Value) -> list[Result]:
        """Emit any of them that does something; returns what a load gives."""
        asked, b, frame, tensors = memory_request(made), self.b, self.frame, self.tensors
        loads = part(asked.request, OP) == LOAD
        self._fill({row: self._input((row, operand, type)) for row, operand, type in asked.inputs})
        for number, register in enumerate(() if loads else asked.registers):
            b.store(self.operands.read(register, U32), self._register(number), align=64)
        bits = b.zext(self.lanes.bits(on), I64)
        with b.if_then(b.icmp_unsigned("!=", bits, I64(0))):
            tensors.place()
            given = tensors.host_memory, self._row(0), tensors.scratch(0)
            if tensors.memory.sanitizing is not None:
                tensors.memory.sanitizing.tensor_memory(index, on, given, asked.request)
            failed = call(
                self.lanes,
                "issue_tensor_memory",
                *given,
                self._register(0),
                tensors.counts(index, Space.SHARED),
                frame.pointer(Slot.PLAN_AT),
                frame.pointer(Slot.QUEUE_AT),
                tensors.work,
                bits,
                I64(asked.request),
                I64(index),
            )
            with b.if_then(b.icmp_unsigned("!=", failed, I64(0)), likely=False):
                tensors.fail(index)
        return [
            (register, b.load(self._register(number), typ=vector(I32), align=64), B32)
            for number, register in enumerate(asked.registers if loads else ())
        ]

    def _input(self, given: Input) -> Value:
        """Return the 32 words of a row."""
        _, operand, type = given
        if type is None:
            return self.operands.address(operand)
        value = self.operands.read(operand, type)
        if type is not PRED:
            value = self.b.bitcast(value, vector(ir.IntType(type.bits)))
        return value if type.bits == 64 else self.b.zext(value, vector(I64))

    def _fill(self, rows: dict[int, Value]) -> None:
        """Store rows of operands, and zeros in the others."""
        zero = splat_constant(0, I64)
        for row in range(DATA_ROWS):
            self.b.store(rows.get(row, zero), self._row(row), align=64)

    def _row(self, row: int) -> Value:
        return self.b.gep(self._data, [I64(ROW_BYTES * row)], source_etype=I8)

    def _register(self, number: int) -> Value:
        return self.b.gep(self._values, [I64(VECTOR_BYTES * number)], source_etype=I8)

    @cached_property
    def _data(self) -> Value:
        size = ir.ArrayType(I8, ROW_BYTES * DATA_ROWS)
        return self.frame.prologue.alloca(size, align=64)

    @cached_property
    def _values(self) -> Value:
        size = ir.ArrayType(I8, VECTOR_BYTES * MOST_REGISTERS)
        return self.frame.prologue.alloca(size, align=64)
