"""Executes `ldmatrix`, `stmatrix` and `movmatrix` on the reference machine: matrices whose rows are
addressed by lanes in shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.core.types import B16, B32
from warploom.isa.instruction import Address, Instruction
from warploom.isa.row_matrices import (
    ROW_BYTES,
    WARP,
    WORD_BYTES,
    WORDS,
    RowMatrices,
    row_matrices,
    unpacked_words,
)
from warploom.machine.reference.access import as_lane_rows, elements_of, gather, scatter
from warploom.machine.reference.evaluate import evaluate
from warploom.machine.reference.lane_access import AccessRequest
from warploom.machine.reference.lanes import Values, collect
from warploom.machine.reference.operands import addresses, read, write
from warploom.machine.reference.state import Warp
from warploom.program.accesses import MATRIX_ROW_BYTES, space_of

Bytes = npt.NDArray[Any]


def load_rows(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """Executes `ldmatrix`. The first lanes, as many as there are rows, pass the addresses of rows
    in shared memory; the row of a lane that is not in `mask` is zeros. Each lane of `mask` (`on`:
    the same set as a predicate) receives elements of several rows; packed elements of 4 or 6 bits
    are unpacked to bytes."""
    destination, address = instruction.operands
    assert isinstance(address, Address)
    layout = row_matrices(instruction.operation)
    request = AccessRequest(index, space_of(instruction), "load", MATRIX_ROW_BYTES)
    lanes_with_rows = mask & (1 << layout.rows) - 1
    rows = gather(warp, request, addresses(warp, address), lanes_with_rows)
    if layout.packed_bits:
        words = [np.ascontiguousarray(rows[:, 4 * n : 4 * n + 4]).view(np.uint32)[:, 0]
                 for n in range(WORDS)]  # fmt: skip
        rows = as_lane_rows(
            [evaluate(term, words, WARP) for term in unpacked_words(layout.packed_bits)], B32
        )
    for register, written in enumerate(elements_of(destination)):
        write(warp, written, _register_values(layout, register, rows), B32, on)


def _register_values(layout: RowMatrices, register: int, rows: Bytes) -> Values:
    """Returns the words that destination register number `register` receives, by lane, each made of
    one or more units (of `layout.unit_bytes`) of the loaded rows, lowest first."""
    bits, words = 8 * layout.unit_bytes, [0] * WARP
    for lane in range(WARP):
        for unit in range(layout.units):
            row, unit_of_row = layout.position(lane, register, unit)
            unit_bytes = rows[row, layout.unit_bytes * unit_of_row :][: layout.unit_bytes]
            words[lane] |= int.from_bytes(unit_bytes.tobytes(), "little") << bits * unit
    return collect(words, B32)


def store_rows(warp: Warp, index: int, instruction: Instruction, mask: int, _on: Values) -> None:
    """Executes `stmatrix`, the inverse of `ldmatrix`: gathers each row from the registers of the
    lanes that hold its elements, and stores it at the address that the lane of the row's number
    passes, if that lane is in `mask`."""
    address, source = instruction.operands
    assert isinstance(address, Address)
    layout = row_matrices(instruction.operation)
    rows = np.zeros((WARP, ROW_BYTES), np.uint8)
    registers = [read(warp, register, B32) for register in elements_of(source)]
    for (row, unit_of_row), (lane, register, unit) in layout.holders.items():
        size = layout.unit_bytes
        word = int(registers[register][lane]).to_bytes(WORD_BYTES, "little")
        rows[row, size * unit_of_row :][:size] = list(word[size * unit :][:size])
    request = AccessRequest(index, space_of(instruction), "store", MATRIX_ROW_BYTES)
    scatter(warp, request, addresses(warp, address), rows, mask & (1 << layout.rows) - 1)


def transpose(warp: Warp, _index: int, instruction: Instruction, _mask: int, on: Values) -> None:
    """Executes `movmatrix`: transposes an 8 x 8 matrix of 16-bit elements, of which lane l holds
    two: row l / 4, columns 2 * (l % 4) and the next. Reads the source in all 32 lanes, and writes
    the destination in the lanes of `on`."""
    destination, source = instruction.operands
    lane_words = read(warp, source, B32)
    halves = np.zeros((8, 8), np.uint32)
    for lane in range(WARP):
        for element in (0, 1):
            half = int(lane_words[lane]) >> (B16.bits * element) & 0xFFFF
            halves[lane // 4, 2 * (lane % 4) + element] = half
    transposed = [
        int(halves[2 * (lane % 4), lane // 4]) | int(halves[2 * (lane % 4) + 1, lane // 4]) << 16
        for lane in range(WARP)
    ]
    write(warp, destination, collect(transposed, B32), B32, on)
