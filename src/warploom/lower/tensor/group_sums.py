"""Emits the computation of warp group products (`lower.tensor.warp_group`): stores the operands in
a buffer, and calls the function that multiplies (`lower.tensor.group_products`)."""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir

from warploom.core.types import U32
from warploom.ir.kernel_accesses import elements
from warploom.isa.instruction import Immediate, Operand
from warploom.isa.shared_matrices import SharedOperand
from warploom.isa.sparsity import Sparsity
from warploom.llvm.lanes import I8, I32, I64, LANES, Value, splat_constant, vector
from warploom.llvm.vector_shuffles import pick
from warploom.lower.access.memory import MemoryCode
from warploom.lower.frame.in_flight import InFlightOperation
from warploom.lower.operations.moves import Result
from warploom.lower.tensor.group_products import (
    VECTOR_BYTES,
    WORDS,
    ProductBuffer,
    counted_loop,
    group_product_function,
    vector_at,
)
from warploom.lower.tensor.products import register_type
from warploom.lower.tensor.shared_blocks import SharedBlocks
from warploom.program.warp_groups import GroupOperands
from warploom.simt.schedule_layout import GROUP_WARPS


class GroupSums:
    """Emits the products of one warp function; `sites` are their operands by instruction. All share
    one buffer on the stack, None without products."""

    def __init__(self, memory: MemoryCode, sites: Mapping[int, GroupOperands]) -> None:
        """Allocates the buffer, as large as the largest product needs."""
        self.operands, self.frame = memory.operands, memory.frame
        self.lanes, self.b = memory.lanes, memory.b
        self._sites, self._blocks = sites, SharedBlocks(memory)
        size = max((ProductBuffer(site.product).bytes for site in sites.values()), default=0)
        self._buffer = (
            self.frame.prologue.alloca(ir.ArrayType(I8, size), align=64) if size else None
        )

    def emit(self, entry: InFlightOperation, index: int) -> list[Result]:
        """Emits the product of instruction `index` with the descriptors, metadata and accumulating
        lanes (`scaled`) of `entry`, and the values that registers and shared memory have now;
        returns the registers of D with their sums, in all lanes."""
        b, operands = self.b, self._sites[index]
        layout = ProductBuffer(operands.product)
        self._store(layout.d, self._scaled(operands, entry.scaled))
        self._store(layout.a, self._multiplicand(operands, entry, index))
        if operands.metadata is not None:
            selector, sparsity = operands.metadata[1], operands.product.product.sparsity
            assert sparsity is not None
            self._store(layout.metadata, [self._metadata(entry, sparsity, selector)])
        self._load_b(layout, operands.product.shared_b, entry.descriptors[1], index)
        opcode = self.frame.program.instructions[index].operation.opcode
        b.call(group_product_function(self.lanes.module, opcode, operands.product), [self._buffer])
        type = register_type(operands.product.product.d)
        return [
            (register, b.load(self._at(layout.d + n), typ=vector(I32), align=64), type)
            for n, register in enumerate(elements(operands.d))
        ]

    def _scaled(self, operands: GroupOperands, scaled: Value) -> list[Value]:
        """Returns the registers of D; zeros in lanes that do not accumulate (not in `scaled`, an
        i32), where `scale-d` is not the constant true."""
        words = [self.operands.read(register, U32) for register in elements(operands.d)]
        if isinstance(operands.scale_d, Immediate) and operands.scale_d.value:
            return words
        mask = self.lanes.mask(scaled)
        return [self.lanes.blend(mask, word, splat_constant(0, I32)) for word in words]

    def _metadata(self, entry: InFlightOperation, sparsity: Sparsity, selector: Operand) -> Value:
        """Returns the metadata of a sparse A, moved from the lanes that the selector names to those
        that hold them with selector 0, as the product function expects.
        """
        assert isinstance(selector, Immediate)
        holders = [sparsity.contributor(lane, selector.value) for lane in range(LANES)]
        return pick(self.lanes, [entry.metadata], [(0, holder) for holder in holders])

    def _multiplicand(
        self, operands: GroupOperands, entry: InFlightOperation, index: int
    ) -> list[Value]:
        """Returns the words of the 16 rows of A that belong to the warp: its registers, or loaded
        from shared memory by `entry`'s descriptor, at the warp's number in its group."""
        shared = operands.product.shared_a
        if shared is None:
            return [self.operands.read(register, U32) for register in elements(operands.a)]
        # The warp's number in its group selects its 16 rows.
        block = self.b.and_(self.frame.warp, I64(GROUP_WARPS - 1))
        return self._blocks.load(shared, entry.descriptors[0], block, index, whole=True)

    def _load_b(
        self, layout: ProductBuffer, operand: SharedOperand, descriptor: Value, index: int
    ) -> None:
        """Loads the words of B from shared memory, by its descriptor, block by block, into the
        buffer.
        """
        words = operand.requests * WORDS

        def load(block: Value) -> None:
            """Loads one block and stores its words to the buffer."""
            loaded = self._blocks.load(
                operand, descriptor, block, index, whole=operand.rows % operand.block_rows == 0
            )
            start = self.b.add(I64(layout.b), self.b.mul(block, I64(words)))
            for number, word in enumerate(loaded):
                slot = self.b.add(start, I64(number))
                self.b.store(word, vector_at(self.b, self._buffer, slot), align=64)

        counted_loop(self.b, operand.blocks, load)

    def _store(self, start: int, words: list[Value]) -> None:
        """Stores words to the buffer, from vector number `start` on."""
        for number, word in enumerate(words):
            self.b.store(word, self._at(start + number), align=64)

    def _at(self, slot: int) -> Value:
        """Returns the address of vector number `slot` of the buffer."""
        return self.b.gep(self._buffer, [I64(slot * VECTOR_BYTES)], source_etype=I8)
