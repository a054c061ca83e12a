"""Emits the loads of blocks of a matrix from shared memory, for the products of warp groups
(`lower.tensor.group_sums`).
"""

from __future__ import annotations

from warploom.abi.access_type import AccessType
from warploom.core.types import B32
from warploom.isa.instruction import Space
from warploom.isa.shared_matrices import SharedOperand, unit_address
from warploom.llvm.lanes import I32, LANES, Value, splat_constant
from warploom.lower.access.memory import MemoryCode
from warploom.lower.tensor.group_products import WORDS
from warploom.lower.tensor.products import constant


class SharedBlocks:
    """Emits the loads of matrix blocks in one warp function, in units of 16 bytes
    (`isa.shared_matrices`). Units stand in *lines*, one for each row, or for each k of a transposed
    matrix; a unit's *position* is its number in its line."""

    def __init__(self, memory: MemoryCode) -> None:
        """Shares the operands and IR builder of `memory`; emits nothing."""
        self.memory, self.operands = memory, memory.operands
        self.lanes, self.b = memory.lanes, memory.b

    def load(
        self, operand: SharedOperand, descriptor: Value, block: Value, index: int, *, whole: bool
    ) -> list[Value]:
        """Returns the words of block number `block` (an i64) of the matrix that a descriptor names,
        each in 32 lanes, loaded for instruction `index`: in each *request* a lane loads a unit of
        16 bytes, four words. `whole`: every block has all its rows; else lanes are masked whose
        rows the matrix does not have, and their words are undefined."""
        words = list[Value]()
        access_type = AccessType("load", Space.SHARED, B32, WORDS)
        for request in range(operand.requests):
            units = self._units(operand, block, request)
            operands = [self.lanes.splat(descriptor), *units]
            address = self.operands.lower(unit_address(operand.transposed), operands)
            mask = self.lanes.mask(I32(-1))
            if not whole:
                mask = self._inside(operand, block, request)
            words += self.memory.load_any(index, access_type, address, mask)
        return words

    def _units(self, operand: SharedOperand, block: Value, request: int) -> tuple[Value, Value]:
        """Returns the line, and the position in it, from the start of the matrix, of the unit that
        each lane reads in request `request` of a block."""
        units = [operand.unit_of(request, lane) for lane in range(LANES)]
        line_step, position_step = operand.step(1)
        lines = self._from(block, line_step, [line for line, _ in units])
        return lines, self._from(block, position_step, [position for _, position in units])

    def _inside(self, operand: SharedOperand, block: Value, request: int) -> Value:
        """Returns the lanes whose units are of rows that the matrix has: the last block may have
        fewer than `block_rows`."""
        first_element = request * operand.unit
        rows = [operand.fragment.position(lane, first_element)[0] for lane in range(LANES)]
        row = self._from(block, operand.block_rows, rows)
        return self.b.icmp_unsigned("<", row, splat_constant(operand.rows, I32))

    def _from(self, block: Value, step: int, offsets: list[int]) -> Value:
        """Returns `offsets` (one a lane) plus the start of a block, which is `step` times its
        number, as i32."""
        start = self.b.mul(self.b.trunc(block, I32), I32(step))
        return self.b.add(self.lanes.splat(start), constant(offsets, I32))
