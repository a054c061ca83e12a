"""Matrices whose rows lanes point at in shared memory (`ldmatrix`, `stmatrix`), and `movmatrix`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.core.types import B16, B32
from warploom.isa.row_matrices import (
    ROW_BYTES,
    WARP,
    WORD_BYTES,
    WORDS,
    RowMatrices,
    row_matrices,
    unpacked_words,
)
from warploom.machine.reference.access import (
    AccessRequest,
    as_lane_rows,
    elements_of,
    gather,
    scatter,
)
from warploom.machine.reference.evaluate import evaluate
from warploom.machine.reference.lanes import Values, collect
from warploom.machine.reference.operands import addresses, read, write
from warploom.machine.reference.state import Warp
from warploom.program.accesses import MATRIX_ROW_BYTES, space_of
from warploom.ptx.ir import Address, Instruction

Bytes = npt.NDArray[Any]


def load_rows(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """`ldmatrix`: lanes point at rows, and each gets parts of several."""
    destination, address = instruction.operands
    assert isinstance(address, Address)
    found = row_matrices(instruction.operation)
    request = AccessRequest(index, space_of(instruction), "load", MATRIX_ROW_BYTES)
    some = mask & (1 << found.rows) - 1
    rows = gather(warp, request, addresses(warp, address), some)
    if found.packed_bits:
        words = [np.ascontiguousarray(rows[:, 4 * n : 4 * n + 4]).view(np.uint32)[:, 0]
                 for n in range(WORDS)]  # fmt: skip
        rows = as_lane_rows([evaluate(term, words, WARP) for term in unpacked_words(found.packed_bits)],
                      B32)  # fmt: skip
    for register, written in enumerate(elements_of(destination)):
        write(warp, written, _register_values(found, register, rows), B32, on)


def _register_values(found: RowMatrices, register: int, rows: Bytes) -> Values:
    """Return the parts of rows that a register has in each lane."""
    bits, words = 8 * found.unit_bytes, [0] * WARP
    for lane in range(WARP):
        for unit in range(found.units):
            row, place = found.place(lane, register, unit)
            part_of_row = rows[row, found.unit_bytes * place :][: found.unit_bytes]
            words[lane] |= int.from_bytes(part_of_row.tobytes(), "little") << bits * unit
    return collect(words, B32)


def store_rows(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """`stmatrix`, the opposite."""
    address, source = instruction.operands
    assert isinstance(address, Address)
    found = row_matrices(instruction.operation)
    rows = np.zeros((WARP, ROW_BYTES), np.uint8)
    held = [read(warp, register, B32) for register in elements_of(source)]
    for (row, place), (lane, register, unit) in found.holders.items():
        size = found.unit_bytes
        word = int(held[register][lane]).to_bytes(WORD_BYTES, "little")
        rows[row, size * place :][:size] = list(word[size * unit :][:size])
    request = AccessRequest(index, space_of(instruction), "store", MATRIX_ROW_BYTES)
    scatter(warp, request, addresses(warp, address), rows, mask & (1 << found.rows) - 1)


def transpose(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """`movmatrix`."""
    destination, source = instruction.operands
    word = read(warp, source, B32)
    halves = np.zeros((8, 8), np.uint32)
    for lane in range(WARP):
        for element in (0, 1):
            half = int(word[lane]) >> (B16.bits * element) & 0xFFFF
            halves[lane // 4, 2 * (lane % 4) + element] = half
    turned = [
        int(halves[2 * (lane % 4), lane // 4]) | int(halves[2 * (lane % 4) + 1, lane // 4]) << 16
        for lane in range(WARP)
    ]
    write(warp, destination, collect(turned, B32), B32, on)
