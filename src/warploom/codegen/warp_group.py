"""`wgmma` in a warp's code: each warp of a group multiplies its own 16 rows.

A product completes where it stands. In code that follows other orders than the default it may
also complete where the warp waits for it (`rules.in_flight`), with what registers and shared memory
hold then.
"""

from __future__ import annotations

from llvmlite import ir

from warploom.analysis.warp_groups import GroupOperands, group_operands
from warploom.codegen.access import Shape
from warploom.codegen.environment import Slot
from warploom.codegen.group_products import (
    VECTOR_BYTES,
    WORDS,
    ProductBuffer,
    counted_loop,
    group_product_function,
    vector_at,
)
from warploom.codegen.in_flight import Entry, FlightCode, Word
from warploom.codegen.kernel_accesses import elements
from warploom.codegen.lanes import I1, I8, I32, I64, LANES, Value, splat_constant, vector
from warploom.codegen.memory import MemoryCode
from warploom.codegen.moves import Result
from warploom.codegen.products import constant, register_type
from warploom.codegen.vector_shuffles import pick
from warploom.core.types import B32, PRED, U32, U64
from warploom.isa.ops.wgmma import is_group_product
from warploom.isa.shared_matrices import SharedOperand, unit_address
from warploom.isa.sparsity import Sparsity
from warploom.ptx.ir import Immediate, Instruction, Operand, Space
from warploom.rules.plan_words import GROUP_WARPS

PART_OF_A_WARP_GROUP, TOO_MANY_IN_FLIGHT = 21, 22
"""Kinds of faults (`machine.faults.FaultKind`)."""


class WarpGroupCode:
    """Emits the `wgmma` of one warp function. `delays`: its code is for orders under which products
    may complete late."""

    def __init__(self, memory: MemoryCode, *, delays: bool) -> None:
        self.memory, self.operands, self.frame = memory, memory.operands, memory.frame
        self.lanes, self.b = memory.lanes, memory.b
        self.flight, self.delays = FlightCode(memory.frame), delays
        self.sites = {
            index: group_operands(made)
            for index, made in enumerate(self.frame.program.instructions)
            if is_group_product(made.operation)
        }
        if self.sites:
            size = max(ProductBuffer(each.product).bytes for each in self.sites.values())
            self.buffer = self.frame.prologue.alloca(ir.ArrayType(I8, size), align=64)

    def emit(self, index: int, made: Instruction, on: Value) -> list[Result]:
        """Emit any of them but the fence; gives the sums of a product that completes where it
        stands."""
        if is_group_product(made.operation):
            return self._issue(index, on)
        if self.delays and self.sites:
            if "commit_group" in made.operation.modifiers:
                self.lanes.when(self.lanes.any(on), lambda: self.flight.add(Word.GROUP))
            else:
                left = made.operands[0]
                assert isinstance(left, Immediate)
                self.lanes.when(self.lanes.any(on), lambda: self._wait(left.value))
        return []

    # ---- issue ----------------------------------------------------------------------------------

    def _issue(self, index: int, on: Value) -> list[Result]:
        if not self.delays:
            self._check_group(index, on)
            return self._sums(self._entry(index, on), index)
        with self.b.if_then(self.lanes.any(on)):
            self._check_group(index, on)
            entry = self._entry(index, on)
            with self.b.if_else(self.flight.is_late()) as (late, at_once):
                with late:
                    self._check_room(index, on)
                    self.flight.append(entry)
                with at_once:
                    self._complete(entry, index)
        return []

    def _entry(self, index: int, on: Value) -> Entry:
        """Return a product as it is issued."""
        operands = self.sites[index]
        lane = self._first(on)
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

    def _first(self, on: Value) -> Value:
        """Return the lowest lane of a mask, as an i32."""
        return self.lanes.intrinsic("llvm.cttz.i32", I32, [self.lanes.bits(on), I1(0)])

    def _check_group(self, index: int, on: Value) -> None:
        """Stop the launch where the block has only some warps of the group."""
        b = self.b
        last = b.or_(self.frame.warp, I64(GROUP_WARPS - 1))
        missing = b.icmp_unsigned(">=", last, self.frame.slot(Slot.WARPS))
        self._fault_where(missing, PART_OF_A_WARP_GROUP, index, on)

    def _check_room(self, index: int, on: Value) -> None:
        """Stop the launch where no more products can be kept."""
        self._fault_where(self.flight.is_full(), TOO_MANY_IN_FLIGHT, index, on)

    def _fault_where(self, bad: Value, kind: int, index: int, on: Value) -> None:
        with self.b.if_then(bad, likely=False):
            self.frame.fault(kind, index, self._first(on), I64(0), I64(0))

    # ---- completion -----------------------------------------------------------------------------

    def _wait(self, left: int) -> None:
        """Complete, oldest first, the products of all committed groups but the newest `left`."""
        b, flight = self.b, self.flight

        def is_committed(entry: Entry) -> Value:
            return b.icmp_unsigned("<", b.add(entry.group, I64(left)), flight.get(Word.GROUP))

        flight.complete(is_committed, self.sites, self._complete)

    def _complete(self, entry: Entry, index: int) -> None:
        """Compute a product, and write its sums."""
        mask = self.lanes.mask(entry.on)
        for operand, value, type in self._sums(entry, index):
            self.operands.write(operand, value, type, mask)

    def _sums(self, entry: Entry, index: int) -> list[Result]:
        """Computes a product of instruction `index`; its operands as of now."""
        b, operands = self.b, self.sites[index]
        places = ProductBuffer(operands.product)
        self._store(places.d, self._scaled(operands, entry.scaled))
        self._store(places.a, self._multiplicand(operands, entry, index))
        if operands.metadata is not None:
            selector, sparsity = operands.metadata[1], operands.product.product.sparsity
            assert sparsity is not None
            self._store(places.metadata, [self._metadata(entry, sparsity, selector)])
        self._load_b(places, operands.product.shared_b, entry.descriptors[1], index)
        opcode = self.frame.program.instructions[index].operation.opcode
        b.call(group_product_function(self.lanes.module, opcode, operands.product), [self.buffer])
        type = register_type(operands.product.product.d)
        return [
            (register, b.load(self._at(places.d + n), typ=vector(I32), align=64), type)
            for n, register in enumerate(elements(operands.d))
        ]

    def _scaled(self, operands: GroupOperands, scaled: Value) -> list[Value]:
        """Return the registers of D, zeros where it is not added."""
        words = [self.operands.read(register, U32) for register in elements(operands.d)]
        if isinstance(operands.scale_d, Immediate) and operands.scale_d.value:
            return words
        mask = self.lanes.mask(scaled)
        return [self.lanes.blend(mask, word, splat_constant(0, I32)) for word in words]

    def _metadata(self, entry: Entry, sparsity: Sparsity, selector: Operand) -> Value:
        """Return the metadata, moved to the lanes that have them with selector 0."""
        assert isinstance(selector, Immediate)
        holders = [sparsity.contributor(lane, selector.value) for lane in range(LANES)]
        return pick(self.lanes, [entry.metadata], [(0, holder) for holder in holders])

    def _multiplicand(self, operands: GroupOperands, entry: Entry, index: int) -> list[Value]:
        """Return the words of A: registers, or the 16 rows of the warp in shared memory."""
        shared = operands.product.shared_a
        if shared is None:
            return [self.operands.read(register, U32) for register in elements(operands.a)]
        block = self.b.and_(self.frame.warp, I64(GROUP_WARPS - 1))
        return self._block(shared, entry.descriptors[0], block, index, whole=True)

    def _load_b(
        self, places: ProductBuffer, operand: SharedOperand, descriptor: Value, index: int
    ) -> None:
        """Put the words of B into the buffer, block by block."""
        words = operand.requests * WORDS

        def load(block: Value) -> None:
            found = self._block(
                operand, descriptor, block, index, whole=operand.rows % operand.block_rows == 0
            )
            first = self.b.add(I64(places.b), self.b.mul(block, I64(words)))
            for number, word in enumerate(found):
                place = self.b.add(first, I64(number))
                self.b.store(word, vector_at(self.b, self.buffer, place), align=64)

        counted_loop(self.b, operand.blocks, load)

    def _block(
        self, operand: SharedOperand, descriptor: Value, block: Value, index: int, *, whole: bool
    ) -> list[Value]:
        """Return the words of a block of a matrix in shared memory. `whole`: every block has all
        rows."""
        words = list[Value]()
        shape = Shape("load", Space.SHARED, B32, WORDS)
        for request in range(operand.requests):
            units = self._units(operand, block, request)
            given = [self.lanes.splat(descriptor), *units]
            where = self.operands.lower(unit_address(operand.transposed), given)
            mask = self.lanes.mask(I32(-1))
            if not whole:
                mask = self._inside(operand, block, request)
            words += self.memory.load_any(index, shape, where, mask)
        return words

    def _units(self, operand: SharedOperand, block: Value, request: int) -> tuple[Value, Value]:
        """Return the lines and the places of the units that lanes read."""
        units = [operand.unit_of(request, lane) for lane in range(LANES)]
        line_step, place_step = operand.step(1)
        lines = self._from(block, line_step, [line for line, _ in units])
        return lines, self._from(block, place_step, [place for _, place in units])

    def _inside(self, operand: SharedOperand, block: Value, request: int) -> Value:
        """Return the lanes whose units are of a row that the matrix has."""
        first = request * operand.unit
        rows = [operand.fragment.place(lane, first)[0] for lane in range(LANES)]
        row = self._from(block, operand.block_rows, rows)
        return self.b.icmp_unsigned("<", row, splat_constant(operand.rows, I32))

    def _from(self, block: Value, step: int, offsets: list[int]) -> Value:
        """Offsets of lanes from the beginning of a block, which are `step` apart."""
        start = self.b.mul(self.b.trunc(block, I32), I32(step))
        return self.b.add(self.lanes.splat(start), constant(offsets, I32))

    def _store(self, first: int, words: list[Value]) -> None:
        for number, word in enumerate(words):
            self.b.store(word, self._at(first + number), align=64)

    def _at(self, place: int) -> Value:
        return self.b.gep(self.buffer, [I64(place * VECTOR_BYTES)], source_etype=I8)
