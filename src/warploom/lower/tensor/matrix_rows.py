"""Emits `ldmatrix`, `stmatrix` and `movmatrix`: matrices of which each row is at the address
of one lane.

For `ldmatrix.x1.b16`, lanes 0 to 7 have the addresses of 8 rows of 16 bytes; lane l gets
elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4. Rows are loaded as vectors, and
redistributed by shuffles.
"""

from __future__ import annotations

from warploom.abi.access_type import AccessType
from warploom.core.types import B32, ScalarType
from warploom.ir.kernel_accesses import elements
from warploom.isa.instruction import Instruction, Operand
from warploom.isa.kinds import OpKind
from warploom.isa.row_matrices import WORDS, RowMatrices, row_matrices, unpacked_words
from warploom.isa.scales import BYTE_BITS
from warploom.llvm.lanes import I32, LANES, Value, splat_constant
from warploom.llvm.vector_shuffles import pick
from warploom.lower.access.memory import MemoryCode
from warploom.lower.tensor.products import constant
from warploom.lower.terms.terms import Lowering
from warploom.program.accesses import space_of

Results = list[tuple[Operand, Value, ScalarType]]
"""The results of an instruction: destination, value, type."""


class MatrixRowCode:
    """Emits `ldmatrix`, `stmatrix` and `movmatrix` of one warp function. A *unit* is the part of a
    32-bit register whose bytes stay together: an element of two bytes, or a byte
    (`isa.row_matrices`)."""

    def __init__(self, memory: MemoryCode) -> None:
        """Shares the operands and IR builder of `memory`; emits nothing."""
        self.memory, self.operands = memory, memory.operands
        self.lanes, self.b = memory.lanes, memory.b

    def emit(self, index: int, instruction: Instruction, on: Value) -> Results:
        """Emits `movmatrix`, `ldmatrix` or `stmatrix`, selected by its kind; returns its results,
        none for `stmatrix`.
        """
        if instruction.operation.kind is OpKind.MATRIX_TRANSPOSE:
            word = self.operands.read(instruction.operands[1], B32)
            return [(instruction.operands[0], self._transposed(word), B32)]
        load = instruction.operation.kind is OpKind.MATRIX_LOAD
        return (self._load_rows if load else self._store_rows)(index, instruction, on)

    def _load_rows(self, index: int, instruction: Instruction, on: Value) -> Results:
        """Emits `ldmatrix`: each lane whose address is used loads a row of 16 bytes; returns the
        registers to which shuffles distribute the rows' words, packed elements expanded to bytes.
        """
        matrices = row_matrices(instruction.operation)
        access_type = AccessType("load", space_of(instruction), B32, WORDS)
        pointing = self._pointing(matrices, on)
        words = self.memory.load_at(
            index, access_type, self.operands.address(instruction.operands[1]), pointing
        )
        if matrices.packed_bits:
            lower = Lowering(self.lanes, LANES)
            words = [lower(term, list(words)) for term in unpacked_words(matrices.packed_bits)]
        return [
            (register, self._register_of(matrices, number, list(words)), B32)
            for number, register in enumerate(elements(instruction.operands[0]))
        ]

    def _store_rows(self, index: int, instruction: Instruction, on: Value) -> Results:
        """Emits `stmatrix`: collects each row's words from the registers of all lanes by shuffles,
        and stores them in the lanes that have the rows' addresses. Returns an empty list.
        """
        matrices = row_matrices(instruction.operation)
        registers = [self.operands.read(r, B32) for r in elements(instruction.operands[1])]
        words = [self._row_word(matrices, registers, word) for word in range(WORDS)]
        access_type = AccessType("store", space_of(instruction), B32, WORDS)
        address = self.operands.address(instruction.operands[0])
        self.memory.store_at(index, access_type, address, words, self._pointing(matrices, on))
        return []

    def _pointing(self, matrices: RowMatrices, on: Value) -> Value:
        """Returns the mask of executing lanes whose addresses are used: of the lowest lanes, one
        for each row of the matrices."""
        return self.b.and_(on, self.lanes.mask(I32((1 << matrices.rows) - 1)))

    def _register_of(self, matrices: RowMatrices, register: int, words: list[Value]) -> Value:
        """Returns register number `register` of all lanes, by shuffles of `words`: the four words
        of each row, in the lane that has the row's address."""
        parts: list[Value] = []
        for unit in range(matrices.units):
            positions = [matrices.position(lane, register, unit) for lane in range(LANES)]
            # A unit at position p of a row is number p % units in its word p // units, in lane
            # `row`.
            picked = pick(self.lanes, words, [(p // matrices.units, row) for row, p in positions])
            parts.append(self._part(picked, matrices, [p % matrices.units for _, p in positions]))
        return self._joined(parts, matrices)

    def _row_word(self, matrices: RowMatrices, registers: list[Value], word: int) -> Value:
        """Returns word `word` of each row, in the lane that has the row's address, by shuffles of
        the matrices' registers; lanes without a row get any value."""
        parts: list[Value] = []
        for unit in range(matrices.units):
            position = word * matrices.units + unit
            holders = [matrices.holders[row, position] for row in range(matrices.rows)]
            holders += [(0, 0, 0)] * (LANES - matrices.rows)
            picked = pick(self.lanes, registers, [(r, lane) for lane, r, _ in holders])
            parts.append(self._part(picked, matrices, [unit for *_, unit in holders]))
        return self._joined(parts, matrices)

    def _part(self, words: Value, matrices: RowMatrices, units: list[int]) -> Value:
        """Returns unit number `units[lane]` of each lane's word, shifted down to the lowest
        bits."""
        bits = BYTE_BITS * matrices.unit_bytes
        moved = self.b.lshr(words, constant([bits * unit for unit in units], I32))
        return self.b.and_(moved, splat_constant((1 << bits) - 1, I32))

    def _joined(self, parts: list[Value], matrices: RowMatrices) -> Value:
        """Returns the lanes' words joined from their units, the first in the lowest bits."""
        bits, word = BYTE_BITS * matrices.unit_bytes, parts[0]
        for number, part in enumerate(parts[1:], 1):
            moved = self.b.shl(part, splat_constant(bits * number, I32))
            word = self.b.or_(word, moved)
        return word

    def _transposed(self, word: Value) -> Value:
        """Emits `movmatrix`: returns the transposed 8x8 matrix of two-byte elements whose rows
        `word` holds, four lanes to a row, two elements to a lane."""
        halves: list[Value] = []
        for element in (0, 1):
            # The lane gets element (row lane // 4, column 2 (lane % 4) + element), which stood at
            # (column, row).
            positions = [(2 * (lane % 4) + element, lane // 4) for lane in range(LANES)]
            holders = [(4 * row + column // 2, column % 2) for row, column in positions]
            picked = pick(self.lanes, [word], [(0, lane) for lane, _ in holders])
            moved = self.b.lshr(picked, constant([16 * side for _, side in holders], I32))
            halves.append(self.b.and_(moved, splat_constant(0xFFFF, I32)))
        return self.b.or_(halves[0], self.b.shl(halves[1], splat_constant(16, I32)))
