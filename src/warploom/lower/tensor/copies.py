"""Emits `cp.async`, `cp.async.bulk` and `st.bulk`. The bytes are copied between global and shared
memory when the copy is issued; where it completes late, the old bytes are put back meanwhile
(`asynchronous.late_copies`).

A lane that copies less than its full size (`src-size`) copies byte by byte, so that nothing beyond
is read:

    cp.async.ca.shared.global [d], [a], 16, 5    bytes 0..4 of lane copied, 5..15 are zeros
"""

from __future__ import annotations

from collections.abc import Callable

from warploom.abi.access_type import AccessType
from warploom.asynchronous.records import CopyOperands
from warploom.asynchronous.tensors.requests import MODE
from warploom.core.types import B8, B32, PRED, U32, U64
from warploom.isa.instruction import Immediate, Instruction, Register, Space
from warploom.isa.kinds import OpKind
from warploom.llvm.lanes import I32, I64, Value, splat_constant, vector
from warploom.lower.access.atomics import AtomicCode
from warploom.lower.tensor.tensors import TensorWaitCode
from warploom.program.accesses import (
    BULK_FILL_BYTES,
    BULK_PIECE_BYTES,
    accesses,
    space_of,
)
from warploom.program.effects.tensor_waits import late_copy


class CopyCode:
    """Emits the asynchronous copies and bulk fills of one warp function; `waits` wraps those that
    may complete late.
    """

    def __init__(self, atomics: AtomicCode, waits: TensorWaitCode) -> None:
        """Shares the memory and the operands of `atomics`; emits nothing."""
        self.waits = waits
        self.atomics, self.memory, self.operands = atomics, atomics.memory, atomics.operands
        self.lanes, self.b = atomics.lanes, atomics.b

    def copy(self, index: int, instruction: Instruction, on: Value) -> None:
        """Emits `cp.async` or `cp.async.bulk` (`_bulk`): `[d] = [a]` of `size` bytes in each lane,
        of which `cp.async` may fill some with zeros (PTX ISA, cp.async). The copy may complete
        late (`waits`)."""
        if instruction.operation.kind is OpKind.BULK_COPY:
            self._bulk(index, instruction, on)
            return
        size = instruction.operands[2]
        assert isinstance(size, Immediate)
        source = self.operands.address(instruction.operands[1])
        byte_counts = self._copied_bytes(instruction, size.value)
        target = self.operands.address(instruction.operands[0])
        rows = self._operand_rows(target, source, byte_counts, size.value)
        with self.waits.deferring(late_copy(instruction), rows, on):
            self._copy_lanes(index, (source, target), byte_counts, size.value, on)

    def _operand_rows(
        self, target: Value, source: Value, byte_counts: Value | None, size: int
    ) -> dict[int, Value]:
        """Returns the operand rows (32 words by row number) of a `cp.async` for
        `asynchronous.late_copies`: both addresses, the bytes copied and those filled with zeros.
        `byte_counts`: the bytes of each lane, None if all copy `size`; those above `size` count as
        `size`."""
        addresses = {CopyOperands.shared: target, CopyOperands.opposite: source}
        whole = splat_constant(size, I64)
        if byte_counts is None:
            return {**addresses, CopyOperands.size: whole}
        b = self.b
        copied = b.zext(byte_counts, vector(I64))
        copied = b.select(b.icmp_unsigned("<", copied, whole), copied, whole)
        sizes = {CopyOperands.size: copied, CopyOperands.value: b.sub(whole, copied)}
        return {**addresses, **sizes}

    def _copy_lanes(
        self,
        index: int,
        addresses: tuple[Value, Value],
        byte_counts: Value | None,
        size: int,
        on: Value,
    ) -> None:
        """Emits the load from the first of two addresses (`addresses`) and the store of `size`
        bytes to the second. Lanes whose `byte_counts` is `size` (None: all) load words. The others
        load `byte_counts` bytes, at most `size`, one by one, and store zeros after them."""
        b, (source, target) = self.b, addresses
        # A lane that copies fewer bytes must not touch the bytes behind them, which may lie outside
        # of the allocation: only whole copies are loaded as words.
        load, whole = AccessType("load", Space.GLOBAL, B32, size // 4), on
        if byte_counts is not None:
            whole = b.and_(on, b.icmp_unsigned("==", byte_counts, splat_constant(size, I32)))
        values = self.memory.load_any(index, load, source, whole)
        if byte_counts is not None:
            values = [self.lanes.blend(whole, v, splat_constant(0, I32)) for v in values]
            partial = b.and_(b.and_(on, b.not_(whole)), self._more_than(byte_counts, 0))
            values = self._with_partial(index, source, values, byte_counts, partial)
        store = AccessType("store", Space.SHARED, B32, size // 4)
        self.memory.store_any(index, store, target, values, on)

    def _bulk(self, index: int, instruction: Instruction, on: Value) -> None:
        """Emits `cp.async.bulk`: each lane copies its bytes in a loop over pieces of 16, then
        signals the mbarrier, if one is named, with the bytes copied. The copy is logged in a
        recorded launch, and may complete late (`waits`)."""
        b, operands = self.b, self.operands
        target_address, source = (operands.address(operand) for operand in instruction.operands[:2])
        byte_counts = b.zext(operands.read(instruction.operands[2], U32), vector(I64))
        (origin, _), (target, _) = accesses(instruction)
        load, store = AccessType("load", origin, B32, 4), AccessType("store", target, B32, 4)

        def copy(offset: Value, active: Value) -> None:
            """Copies 16 bytes at an offset from source to target, in the lanes `active`."""
            values = self.memory.load_any(index, load, b.add(source, offset), active)
            self.memory.store_any(index, store, b.add(target_address, offset), values, active)

        rows = {
            CopyOperands.size: byte_counts,
            CopyOperands.shared: target_address,
            CopyOperands.opposite: source,
        }
        # The rows name shared and global side, whichever of them is the source.
        if origin is Space.SHARED:
            rows |= {CopyOperands.shared: source, CopyOperands.opposite: target_address}
        signals = "mbarrier::complete_tx::bytes" in instruction.operation.modifiers
        if signals:
            rows[CopyOperands.barrier] = operands.address(instruction.operands[3])
        if self.memory.instruments.copies is not None:
            self._record(index, rows, on, source=origin, target=target)
        with self.waits.deferring(late_copy(instruction), rows, on):
            self._pieces(byte_counts, on, BULK_PIECE_BYTES, copy)
            if signals:
                self.atomics.complete(index, instruction.operands[3], byte_counts, on)

    def _record(
        self, index: int, rows: dict[int, Value], on: Value, *, source: Space, target: Space
    ) -> None:
        """Stores the operand rows of a bulk copy (-1 as the mbarrier if none is named) and emits
        the call that logs it."""
        assert self.memory.instruments.copies is not None
        tensors, touches_global = self.waits.tensors, Space.GLOBAL in (source, target)
        tensors.fill({CopyOperands.barrier: splat_constant(-1, I64), **rows})
        bits = self.b.zext(self.lanes.bits(on), I64)
        tensors.store_context(bits, int(touches_global) << MODE)
        self.memory.instruments.copies.bulk(index, tensors.issue(0), target)

    def fill(self, index: int, instruction: Instruction, on: Value) -> None:
        """Emits `st.bulk`: each lane fills as many bytes with zeros as its operand gives, in a loop
        over pieces of 8."""
        target_address, size = instruction.operands[:2]
        start, byte_counts = self.operands.address(target_address), self.operands.read(size, U64)
        store, zeros = AccessType("store", space_of(instruction), U64), splat_constant(0, I64)

        def clear(offset: Value, active: Value) -> None:
            """Stores 8 bytes of zeros at an offset, in the lanes `active`."""
            self.memory.store_at(index, store, self.b.add(start, offset), [zeros], active)

        self._pieces(byte_counts, on, BULK_FILL_BYTES, clear)

    def _pieces(
        self, byte_counts: Value, on: Value, step: int, emit_piece: Callable[[Value, Value], None]
    ) -> None:
        """Emits a loop of `emit_piece` over pieces of `step` bytes, with the piece's offset in all
        lanes and the lanes whose `byte_counts` include all of it, until there are none: sizes are
        multiples of a piece."""
        b, done_bytes = self.b, self.operands.frame.variable(I64)
        b.store(I64(0), done_bytes)
        head, body, done = (b.append_basic_block(name) for name in ("copy", "copy_piece", "copied"))
        b.branch(head)
        b.position_at_end(head)
        offset = b.load(done_bytes, typ=I64)
        after = b.add(offset, I64(step))
        active = b.and_(on, b.icmp_unsigned("<=", self.lanes.splat(after), byte_counts))
        b.cbranch(self.lanes.any(active), body, done)
        b.position_at_end(body)
        emit_piece(self.lanes.splat(offset), active)
        b.store(after, done_bytes)
        b.branch(head)
        b.position_at_end(done)

    def _copied_bytes(self, instruction: Instruction, size: int) -> Value | None:
        """Returns how many bytes each lane copies from global memory (i32 lanes): `src-size`, which
        may exceed `size`, or 0 where the predicate to ignore the source holds and else all `size`;
        None if there is neither operand."""
        optional = instruction.operands[3:]
        if "L2::cache_hint" in instruction.operation.modifiers:
            optional = optional[:-1]
        if not optional:
            return None
        full_size = splat_constant(size, I32)
        if isinstance(optional[0], Register) and optional[0].type == PRED:
            ignored = self.operands.read(optional[0], PRED)
            return self.b.select(ignored, splat_constant(0, I32), full_size)
        return self.operands.read(optional[0], U32)

    def _more_than(self, byte_counts: Value, byte_index: int) -> Value:
        """Returns the mask of lanes that copy more than `byte_index` bytes."""
        return self.b.icmp_unsigned(">", byte_counts, splat_constant(byte_index, I32))

    def _with_partial(
        self, index: int, source: Value, values: list[Value], byte_counts: Value, partial: Value
    ) -> list[Value]:
        """Returns the words of a copy: `values`, into which the lanes of `partial` have loaded
        their first `byte_counts` bytes one by one. `values` are zero in these lanes, as are the
        bytes after them."""
        b, words = self.b, [self.operands.frame.variable(vector(I32)) for _ in values]
        for word, value in zip(words, values, strict=True):
            b.store(value, word)
        byte = AccessType("load", Space.GLOBAL, B8)
        with b.if_then(self.lanes.any(partial), likely=False):
            for byte_index in range(4 * len(words)):
                active = b.and_(partial, self._more_than(byte_counts, byte_index))
                address = b.add(source, splat_constant(byte_index, I64))
                (byte_value,) = self.memory.load_any(index, byte, address, active)
                zero = splat_constant(0, byte.element)
                wide = b.zext(self.lanes.blend(active, byte_value, zero), vector(I32))
                shifted = b.shl(wide, splat_constant(8 * (byte_index % 4), I32))
                word = words[byte_index // 4]
                b.store(b.or_(b.load(word, typ=vector(I32)), shifted), word)
        return [b.load(word, typ=vector(I32)) for word in words]
