"""Matrix instructions: fragments put together into matrices, multiplied, and taken apart again.

Sums of floats start with C and take one product after the other in rising k, each step rounded once
to .f32 (or .f64); integers are exact, and saturate or wrap once at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.analysis.accesses import MATRIX_ROW_BYTES, space_of
from warploom.core.types import B16, B32, U32, U64, ScalarType
from warploom.isa.elements import calculated, encoded, number
from warploom.isa.fragments import WARP, Fragment, Place, Product
from warploom.isa.moves import Piece, matrix_move, pieces
from warploom.isa.ops.matrix import product_of
from warploom.isa.sparsity import Sparsity
from warploom.machine.reference import exact
from warploom.machine.reference.access import Request, elements_of, gather, joined, part, scatter
from warploom.machine.reference.evaluate import evaluate
from warploom.machine.reference.lanes import Values, as_numbers, collect, lane_by_lane, resized
from warploom.machine.reference.operands import addresses, read, write
from warploom.machine.reference.state import Warp
from warploom.ptx.ir import Address, Immediate, Instruction, Operand

Matrix = npt.NDArray[Any]

ROWS = 16
"""Rows of a sparse A, in every shape."""

LIMITS = (-(1 << 31), (1 << 31) - 1)


# ---- products -----------------------------------------------------------------------------------


def multiply(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """`mma` and `wmma.mma`: D = A * B + C."""
    product = product_of(instruction.operation)
    d, *sources = instruction.operands
    fragments = (product.a, product.b, product.c)
    a, b, c = (read_matrix(warp, f, o) for f, o in zip(fragments, sources, strict=False))
    words = None if product.sparsity is None else read_metadata(warp, *sources[3:])
    write_matrix(warp, product.d, d, multiplied(product, a, b, c, words), on)


Metadata = tuple[list[int], int]
"""The words of all lanes, and the sparsity selector."""


def read_metadata(warp: Warp, metadata: Operand, selector: Operand) -> Metadata:
    """Returns what the two operands of a sparse product hold."""
    assert isinstance(selector, Immediate)
    return read(warp, metadata, U32).tolist(), selector.value


def multiplied(
    product: Product, a: Matrix, b: Matrix, c: Matrix, metadata: Metadata | None
) -> Matrix:
    """Returns A * B + C; the columns of B are rows here. `metadata` are those of a sparse A."""
    right = b[None]
    if product.sparsity is not None:
        assert metadata is not None
        right = _met(product.sparsity, b, *metadata)
    with np.errstate(all="ignore"):
        return _sum(product, a[:, None], right, c)


def _met(sparsity: Sparsity, b: Matrix, words: list[int], selector: int) -> Matrix:
    """Returns what each row of a sparse A meets: row, column of B, stored element."""
    given = [words[sparsity.contributor(lane, selector)] for lane in range(WARP)]
    columns = np.zeros((ROWS, sparsity.columns // 2), np.int64)
    for row, k in np.ndindex(columns.shape):
        lane, bit = sparsity.place(row, k)
        columns[row, k] = sparsity.column(k, given[lane] >> bit & (sparsity.choices - 1))
    return b[:, columns].transpose(1, 0, 2)


def read_matrix(warp: Warp, fragment: Fragment, operand: Operand) -> Matrix:
    """Return the matrix whose parts the lanes hold in the registers of an operand."""
    type = U64 if fragment.bits == 64 else U32
    return assembled(fragment, [read(warp, register, type) for register in elements_of(operand)])


def assembled(fragment: Fragment, words: list[Values]) -> Matrix:
    """Return the matrix whose parts the lanes hold in these registers."""
    type = U64 if fragment.bits == 64 else U32
    result = np.zeros((fragment.rows, fragment.columns), _numpy(fragment.type))
    for element in range(fragment.count):
        register, inside = divmod(element, fragment.packed)
        bits = words[register] >> collect([inside * fragment.bits], type)
        found = as_numbers(evaluate(number(fragment.type), [bits], WARP), calculated(fragment.type))
        for lane in range(WARP):
            result[fragment.place(lane, element)] = found[lane]
    return result


def write_matrix(
    warp: Warp, fragment: Fragment, operand: Operand, values: Matrix, on: Values
) -> None:
    """Give each lane its part of a matrix of sums."""
    type = U64 if fragment.bits == 64 else U32
    words = [collect([0] * WARP, type) for _ in range(fragment.registers)]
    for element in range(fragment.count):
        places = [fragment.place(lane, element) for lane in range(WARP)]
        sums = np.array([values[place] for place in places], _numpy(fragment.type))
        bits = evaluate(encoded(fragment.type), [sums.view(f"u{type.bytes}")], WARP)
        register, inside = divmod(element, fragment.packed)
        words[register] |= bits << collect([inside * fragment.bits], type)
    for register, word in zip(elements_of(operand), words, strict=True):
        write(warp, register, word, type, on)


def _numpy(type: str) -> npt.DTypeLike:
    made = calculated(type)
    return np.int32 if made.is_integer else {32: np.float32, 64: np.float64}[made.bits]


def _sum(product: Product, a: Matrix, b: Matrix, c: Matrix) -> Matrix:
    """Return the sums over the last axis of A and B, which are by row, column and k."""
    type = calculated(product.d.type)
    if type.is_integer:
        return _integer_sum(product, a, b, c)
    step: Callable[[Matrix, Matrix, Matrix], Matrix] = _double if type.bits == 64 else _single
    for k in range(product.depth):
        c = step(a[..., k], b[..., k], c)
    return c


def _single(a: Matrix, b: Matrix, c: Matrix) -> Matrix:
    """a * b + c, rounded once to .f32.

    A product has 22 bits at most. Added to C in double precision it is either exact, or so far from
    C that what is lost cannot turn the rounding to .f32.
    """
    return (a.astype(np.float64) * b.astype(np.float64) + c).astype(np.float32)


def _double(a: Matrix, b: Matrix, c: Matrix) -> Matrix:
    """a * b + c, rounded once to .f64."""
    flat = [
        m.view(np.uint64).ravel() for m in map(np.ascontiguousarray, np.broadcast_arrays(a, b, c))
    ]

    def step(x: int, y: int, z: int) -> int:
        return exact.multiply_add(x, y, z, exact.FORMATS[64], "rn")

    return lane_by_lane(step, flat, U64).view(np.float64).reshape(c.shape)


def _integer_sum(product: Product, a: Matrix, b: Matrix, c: Matrix) -> Matrix:
    if product.logic:
        meet = np.bitwise_xor if product.logic == "xor" else np.bitwise_and
        met = np.bitwise_count(meet(a.view(np.uint32), b.view(np.uint32))).astype(np.int64)
    else:
        met = a.astype(np.int64) * b
    total = met.sum(axis=2) + c
    return np.clip(total, *LIMITS).astype(np.int32) if product.saturates else total.astype(np.int32)


def warp_matrix(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """Execute any `wmma`."""
    does = multiply if "mma" in instruction.operation.modifiers else move
    does(warp, index, instruction, mask, on)


# ---- wmma.load and wmma.store -------------------------------------------------------------------


def move(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """`wmma.load` and `wmma.store`: each lane moves the elements that it holds, piece by piece."""
    found = matrix_move(instruction.operation)
    address, registers, *stride = (
        instruction.operands if found.stores else _swapped(instruction.operands)
    )
    assert isinstance(address, Address)
    start = addresses(warp, address)
    leading = read(warp, stride[0], U32).tolist() if stride else [found.leading] * WARP
    type = U64 if found.fragment.bits == 64 else U32
    words = [read(warp, register, type) for register in elements_of(registers)]
    if not found.stores:
        words = [collect([0] * WARP, type) for _ in words]
    for piece in pieces(found):
        where = [start[lane] + piece.offset(lane, leading[lane]) for lane in range(WARP)]
        _move_piece(warp, Request(index, space_of(instruction), found.op, piece.type.bytes),
                    piece, where, words, mask)  # fmt: skip
    if not found.stores:
        for register, word in zip(elements_of(registers), words, strict=True):
            write(warp, register, word, type, on)


def _swapped(operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """Address first, as in a store."""
    return operands[1], operands[0], *operands[2:]


def _move_piece(
    warp: Warp, request: Request, piece: Piece, where: list[int], words: list[Values], mask: int
) -> None:
    register, shift = piece.register, collect([piece.shift], U32)
    type: ScalarType = piece.type
    word = words[register]
    if request.op == "store":
        bits = resized(word >> shift.astype(word.dtype), type.bits)
        scatter(warp, request, where, joined([bits], type), mask)
    else:
        found = resized(part(gather(warp, request, where, mask), 0, type), 8 * word.dtype.itemsize)
        words[register] = word | (found << shift.astype(word.dtype))


# ---- 8x8 matrices of 16-bit elements ------------------------------------------------------------


def load_rows(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """`ldmatrix`: lanes point at rows, and each gets two neighbours of a row (or a column)."""
    destination, address = instruction.operands
    registers = elements_of(destination)
    assert isinstance(address, Address)
    request = Request(index, space_of(instruction), "load", MATRIX_ROW_BYTES)
    some = mask & _pointing(len(registers))
    rows = gather(warp, request, addresses(warp, address), some).view(np.uint16)
    for number_, register in enumerate(registers):
        matrix = rows[8 * number_ : 8 * number_ + 8]
        write(warp, register, _spread(matrix, _trans(instruction)), B32, on)


def store_rows(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """`stmatrix`, the opposite."""
    address, source = instruction.operands
    assert isinstance(address, Address)
    registers = elements_of(source)
    rows = np.zeros((WARP, 8), np.uint16)
    for number_, register in enumerate(registers):
        held = _gathered(read(warp, register, B32), _trans(instruction))
        rows[8 * number_ : 8 * number_ + 8] = held
    request = Request(index, space_of(instruction), "store", MATRIX_ROW_BYTES)
    some = mask & _pointing(len(registers))
    scatter(warp, request, addresses(warp, address), rows.view(np.uint8), some)


def transpose(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """`movmatrix`."""
    destination, source = instruction.operands
    held = _gathered(read(warp, source, B32), False)
    write(warp, destination, _spread(held, True), B32, on)


def _trans(instruction: Instruction) -> bool:
    return "trans" in instruction.operation.modifiers


def _pointing(count: int) -> int:
    """Return the lanes whose addresses `count` matrices use."""
    return (1 << (8 * count)) - 1


def _place(lane: int, element: int, transposed: bool) -> Place:
    """Return which element of an 8x8 matrix a lane holds in that half of its register."""
    row, column = lane // 4, 2 * (lane % 4) + element
    return (column, row) if transposed else (row, column)


def _spread(matrix: Matrix, transposed: bool) -> Values:
    halves = [[int(matrix[_place(lane, e, transposed)]) for e in (0, 1)] for lane in range(WARP)]
    return collect((low | high << 16 for low, high in halves), B32)


def _gathered(word: Values, transposed: bool) -> Matrix:
    matrix = np.zeros((8, 8), np.uint16)
    for lane in range(WARP):
        for element in (0, 1):
            half = int(word[lane]) >> (B16.bits * element) & 0xFFFF
            matrix[_place(lane, element, transposed)] = half
    return matrix
