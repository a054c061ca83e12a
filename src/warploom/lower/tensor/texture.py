"""Emits accesses to textures and surfaces as calls of helpers shared with the interpreter
(`texture.requests`, "the rules"): operands and results pass in rows of 32 words, one for each lane.
`program.requests.texture` decodes the instructions."""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.environment import SPACE_CODES, Slot, Status
from warploom.core.lazy import cached_property
from warploom.core.types import PRED, U64, ScalarType
from warploom.helpers.calls import call
from warploom.isa.instruction import Address, Instruction, Operand, Space, Symbol
from warploom.llvm.lanes import I8, I64, LANES, PTR, Value, lane_type, splat_constant, vector
from warploom.lower.access.memory import MemoryCode
from warploom.program.requests.texture import texel_request
from warploom.texture.descriptors import NO_PATH, TexelIssue, TexelOperands, TextureHeader

RECORD = {
    Slot.FAULT_KIND: TexelIssue.fault_kind,
    Slot.FAULT_LANE: TexelIssue.fault_lane,
    Slot.FAULT_ADDRESS: TexelIssue.fault_address,
    Slot.FAULT_SIZE: TexelIssue.fault_size,
}
"""The words in which the rules report a fault, by the environment's slot of its record."""

Result = tuple[Operand, Value, ScalarType]


class TextureCode:
    """Emits the texture and surface instructions of one warp function."""

    def __init__(self, memory: MemoryCode) -> None:
        """Shares the operands, frame and IR builder of `memory`; emits nothing."""
        self.memory, self.operands = memory, memory.operands
        self.frame, self.lanes, self.b = memory.frame, memory.lanes, memory.b

    def emit(self, index: int, instruction: Instruction, on: Value) -> list[Result]:
        """Emits a texture or surface instruction: stores its operands in rows (zeros in those that
        it does not have), calls the helper `serve_texels`, and exits if that faults; returns its
        destinations with the values of result rows. The predicate that texels are resident is
        always true."""
        request = texel_request(instruction)
        rows = {TexelOperands.handle: self._handle(request.handle, on)}
        if request.sampler is not None:
            rows[TexelOperands.sampler] = self._handle(request.sampler, on)
        for row, operand, type in request.inputs:
            bits = self.b.bitcast(self.operands.read(operand, type), vector(ir.IntType(type.bits)))
            rows[row] = self.b.zext(bits, vector(I64)) if type.bits < 64 else bits
        zero = splat_constant(0, I64)
        # The helper reads the rows of all coordinates, levels and offsets, also those that the
        # geometry does not have.
        for row in (*rows, *range(TexelOperands.x, TexelOperands.value, LANES)):
            self.b.store(rows.get(row, zero), self._row(row), align=64)
        self._serve(index, request.request, on)
        results = [
            (target, self._result(TexelOperands.result + LANES * i, type), type)
            for i, (target, type) in enumerate(request.results)
        ]
        if request.resident is not None:
            all_true = ir.Constant(lane_type(PRED), [1] * LANES)
            results.append((request.resident, all_true, PRED))
        return results

    def _handle(self, operand: Operand, on: Value) -> Value:
        """Returns the handles of a texture, surface or sampler (64-bit lanes): a register's values,
        a variable's address, or the value of a kernel parameter."""
        if not isinstance(operand, Address):
            return self.operands.read(operand, U64)
        if isinstance(operand.base, Symbol):
            slot = self.frame.program.slots[operand.base.name]
            if slot.space is Space.PARAM:
                # A named parameter is loaded in the prologue, which needs no instruction (0).
                return self.memory.load_parameter(0, operand, U64, 1, on)[0]
        return self.operands.address(operand)

    def _result(self, row: int, type: ScalarType) -> Value:
        """Returns a result row as a value of `type`: truncated, or for a predicate tested for not
        0."""
        value = self.b.load(self._row(row), typ=vector(I64), align=64)
        if type == PRED:
            return self.b.icmp_unsigned("!=", value, splat_constant(0, I64))
        narrow = vector(ir.IntType(type.bits))
        return self.b.trunc(value, narrow) if type.bits < 64 else value

    def _serve(self, index: int, request: int, on: Value) -> None:
        """Emits the call of the helper `serve_texels` for the lanes `on`, after the race detector's
        event; then the exit on a fault, whose record is stored in the environment, and in a
        recorded launch the record of the sectors. `request`: its packed options
        (`program.requests.texture`). A query has no access record, so it is neither counted nor
        recorded."""
        b, frame = self.b, self.frame
        row = next((r for r in frame.layout.records if r.instruction == index), None)
        space = row.space if row else Space.TEXTURE
        path = frame.layout.rules.path(space.value, row.op) if row else None
        table = frame.pointer(Slot.TEXTURES_AT)
        start = b.load(self.lanes.slot(table, TextureHeader.base), typ=I64)
        arguments = table, b.inttoptr(start, PTR), self._row(0), self._issue(0)
        words = {
            TexelIssue.mask: b.zext(self.lanes.bits(on), I64),
            TexelIssue.request: I64(request),
            TexelIssue.path: I64(NO_PATH if path is None else path),
            TexelIssue.block: frame.slot(Slot.BLOCK),
        }
        for word, value in words.items():
            b.store(value, self._issue(word))
        if self.memory.instruments.detector is not None:
            self.memory.instruments.detector.events.texels(index, on, arguments)
        failed = call(
            self.lanes,
            "serve_texels",
            *arguments,
            self.memory.storage.record_address(index, space),
            frame.pointer(Slot.HIERARCHY_AT),
            frame.pointer(Slot.PLAN_AT),
        )
        with b.if_then(b.icmp_unsigned("!=", failed, I64(0)), likely=False):
            frame.record(Slot.FAULT_INSTRUCTION, I64(index))
            frame.record(Slot.FAULT_WARP, frame.warp)
            frame.record(Slot.FAULT_SPACE, I64(SPACE_CODES[space]))
            for slot, word in RECORD.items():
                frame.record(slot, b.load(self._issue(word), typ=I64))
            frame.leave(Status.FAULT)
        if row and self.memory.instruments.log:
            self.memory.instruments.log.texels(index, row, self._issue(0))

    # ---- addresses ------------------------------------------------------------------------------

    def _row(self, row: int) -> Value:
        """Returns the address of the row of operands or results that begins at word `row` of the
        buffer (an offset of `TexelOperands`)."""
        return self.b.gep(self._row_buffer, [I64(8 * row)], source_etype=I8)

    def _issue(self, word: int) -> Value:
        """Returns the address of 64-bit word `word` of the issue (`TexelIssue`), in which the
        helper `serve_texels` stores a fault, the sectors of an access and the corners of a lane."""
        return self.b.gep(self._words, [I64(8 * word)], source_etype=I8)

    @cached_property
    def _row_buffer(self) -> Value:
        """Returns the stack buffer of operand and result rows, each of 32 64-bit words, allocated
        on first use."""
        size = ir.ArrayType(I8, 8 * TexelOperands.WORDS)
        return self.frame.prologue.alloca(size, align=64)

    @cached_property
    def _words(self) -> Value:
        """Returns the stack buffer of the issue (`TexelIssue`), allocated on first use."""
        return self.frame.prologue.alloca(ir.ArrayType(I64, TexelIssue.WORDS), align=64)
