"""Textures and surfaces in a warp's code: operands into rows, a call of the rules, results out.

What an instruction asks is for `program.requests.texture`, what it does for `texture.requests`.
"""

from __future__ import annotations

from functools import cached_property

from llvmlite import ir

from warploom.abi.environment import SPACE_CODES, Slot, Status
from warploom.core.types import PRED, U64, ScalarType
from warploom.helpers.calls import call
from warploom.llvm.lanes import (
    I8,
    I64,
    LANES,
    PTR,
    Value,
    lane_type,
    splat_constant,
    vector,
)
from warploom.lower.access.memory import MemoryCode
from warploom.program.requests.texture import texel_request
from warploom.ptx.ir import Address, Instruction, Operand, Space, Symbol
from warploom.texture.descriptors import (
    BASE,
    DATA_ROWS,
    FAULT_ADDRESS,
    FAULT_KIND,
    FAULT_LANE,
    FAULT_SIZE,
    HANDLE_ROW,
    RESULT_ROW,
    SAMPLER_ROW,
    SCRATCH_WORDS,
    VALUE_ROW,
    X_ROW,
)
from warploom.texture.requests import NO_PATH

ROW_BYTES = 8 * LANES

RECORD = {
    Slot.FAULT_KIND: FAULT_KIND,
    Slot.FAULT_LANE: FAULT_LANE,
    Slot.FAULT_ADDRESS: FAULT_ADDRESS,
    Slot.FAULT_SIZE: FAULT_SIZE,
}
"""Where the rules leave what an environment records of a fault."""

Result = tuple[Operand, Value, ScalarType]


class TextureCode:
    """Emits the instructions of textures and surfaces of one warp function."""

    def __init__(self, memory: MemoryCode) -> None:
        self.memory, self.operands = memory, memory.operands
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b

    def emit(self, index: int, made: Instruction, on: Value) -> list[Result]:
        """Return the destinations of an instruction, and what they get."""
        asked = texel_request(made)
        rows = {HANDLE_ROW: self._handle(asked.handle, on)}
        if asked.sampler is not None:
            rows[SAMPLER_ROW] = self._handle(asked.sampler, on)
        for row, operand, type in asked.inputs:
            bits = self.b.bitcast(self.operands.read(operand, type), vector(ir.IntType(type.bits)))
            rows[row] = self.b.zext(bits, vector(I64)) if type.bits < 64 else bits
        zero = splat_constant(0, I64)
        for row in (*rows, *range(X_ROW, VALUE_ROW)):
            self.b.store(rows.get(row, zero), self._row(row), align=64)
        self._serve(index, asked.request, on)
        results = [
            (target, self._result(RESULT_ROW + i, type), type)
            for i, (target, type) in enumerate(asked.results)
        ]
        if asked.resident is not None:
            everyone = ir.Constant(lane_type(PRED), [1] * LANES)
            results.append((asked.resident, everyone, PRED))
        return results

    def _handle(self, operand: Operand, on: Value) -> Value:
        """Returns what an operand names: a value, the address of a variable, or a parameter."""
        if not isinstance(operand, Address):
            return self.operands.read(operand, U64)
        if isinstance(operand.base, Symbol):
            place = self.frame.program.slots[operand.base.name]
            if place.space is Space.PARAM:
                return self.memory.load_parameter(0, operand, U64, 1, on)[0]
        return self.operands.address(operand)

    def _result(self, row: int, type: ScalarType) -> Value:
        value = self.b.load(self._row(row), typ=vector(I64), align=64)
        if type == PRED:
            return self.b.icmp_unsigned("!=", value, splat_constant(0, I64))
        narrow = vector(ir.IntType(type.bits))
        return self.b.trunc(value, narrow) if type.bits < 64 else value

    def _serve(self, index: int, request: int, on: Value) -> None:
        """Call the rules, and leave where they report a fault."""
        b, frame = self.b, self.frame
        row = next((r for r in frame.layout.rows if r.instruction == index), None)
        space = row.space if row else Space.TEXTURE
        path = frame.layout.rules.path(space.value, row.op) if row else None
        table = frame.pointer(Slot.TEXTURES_AT)
        start = b.load(self.lanes.slot(table, BASE), typ=I64)
        given = table, b.inttoptr(start, PTR), self._row(0), self._scratch(0)
        if self.memory.sanitizing is not None:
            self.memory.sanitizing.events.texels(index, on, given, request)
        failed = call(
            self.lanes,
            "serve_texels",
            *given,
            self.memory.places.row(index, space),
            frame.pointer(Slot.HIERARCHY_AT),
            frame.pointer(Slot.PLAN_AT),
            b.zext(self.lanes.bits(on), I64),
            I64(request),
            I64(NO_PATH if path is None else path),
            frame.slot(Slot.BLOCK),
        )
        with b.if_then(b.icmp_unsigned("!=", failed, I64(0)), likely=False):
            frame.record(Slot.FAULT_INSTRUCTION, I64(index))
            frame.record(Slot.FAULT_WARP, frame.warp)
            frame.record(Slot.FAULT_SPACE, I64(SPACE_CODES[space]))
            for slot, word in RECORD.items():
                frame.record(slot, b.load(self._scratch(word), typ=I64))
            frame.leave(Status.FAULT)
        if row and self.memory.recording:
            self.memory.recording.texels(index, row, self._scratch(0))

    # ---- places ---------------------------------------------------------------------------------

    def _row(self, row: int) -> Value:
        """Return a row of operands or results."""
        return self.b.gep(self._data, [I64(ROW_BYTES * row)], source_etype=I8)

    def _scratch(self, word: int) -> Value:
        return self.b.gep(self._words, [I64(8 * word)], source_etype=I8)

    @cached_property
    def _data(self) -> Value:
        size = ir.ArrayType(I8, ROW_BYTES * DATA_ROWS)
        return self.frame.prologue.alloca(size, align=64)

    @cached_property
    def _words(self) -> Value:
        return self.frame.prologue.alloca(ir.ArrayType(I64, SCRATCH_WORDS), align=64)
