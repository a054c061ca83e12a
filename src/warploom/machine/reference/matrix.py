"""Executes `mma` and `wmma` on the reference machine: assembles matrices from lane fragments,
multiplies them, and distributes the result.

Sums of floats start with C and add one product after the other in rising k, each step rounded once
to .f32 (or .f64); integer sums are exact, and saturate or wrap once at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from warploom.core.types import F32, U16, U32, U64, ScalarType
from warploom.isa.elements import calculated, encoded, number, scale_number
from warploom.isa.fragments import WARP, Fragment, Product
from warploom.isa.instruction import Address, Immediate, Instruction, Operand
from warploom.isa.moves import Piece, matrix_move, pieces
from warploom.isa.ops.matrix import product_of
from warploom.isa.scales import (
    A_SCALES,
    B_SCALES,
    BYTE_BITS,
    BYTES,
    Scales,
    ScaleSide,
)
from warploom.isa.sparsity import Sparsity
from warploom.machine.reference import exact
from warploom.machine.reference.access import as_lane_rows, elements_of, gather, part, scatter
from warploom.machine.reference.evaluate import evaluate
from warploom.machine.reference.lane_access import AccessRequest
from warploom.machine.reference.lanes import Values, as_numbers, collect, lane_by_lane, resized
from warploom.machine.reference.operands import addresses, read, write
from warploom.machine.reference.state import Warp
from warploom.program.accesses import space_of

Matrix = npt.NDArray[Any]

ROWS, COLUMNS = 16, 8
"""The rows of A and the columns of B, in every shape with a sparse A or with scales (m16n8)."""

LIMITS = (-(1 << 31), (1 << 31) - 1)


# ---- products -----------------------------------------------------------------------------------


def multiply(warp: Warp, _index: int, instruction: Instruction, _mask: int, on: Values) -> None:
    """Executes `mma` and `wmma.mma`: computes D = A * B + C from the fragments in the registers of
    all lanes, with the metadata of a sparse A and the scales of A and B where the instruction has
    them. Writes D in the lanes of `on`."""
    product = product_of(instruction.operation)
    d, *sources = instruction.operands
    fragments = (product.a, product.b, product.c)
    a, b, c = (read_matrix(warp, f, o) for f, o in zip(fragments, sources, strict=False))
    metadata = None if product.sparsity is None else read_metadata(warp, *sources[3:5])
    # Scale data and selectors are the last four operands.
    scales = None if product.scales is None else read_scales(warp, product.scales, sources[-4:])
    write_matrix(warp, product.d, d, matrix_product(product, a, b, c, metadata, scales), on)


Metadata = tuple[list[int], int]
"""The sparsity metadata words of all lanes, and the sparsity selector."""


def read_metadata(warp: Warp, metadata: Operand, selector: Operand) -> Metadata:
    """Returns the values of the two metadata operands of a sparse product: the metadata word of
    each lane, and the selector, an immediate."""
    assert isinstance(selector, Immediate)
    return read(warp, metadata, U32).tolist(), selector.value


def read_scales(
    warp: Warp, scales: Scales, operands: tuple[Operand, ...] | list[Operand]
) -> tuple[Matrix, Matrix]:
    """Returns the scales of A, shape (16 rows, blocks of k), and those of B, shape (8 columns,
    blocks of k), as every shape with scales is m16n8; from the four last operands of a product:
    scale data and selectors of A, then of B."""
    data_a, selectors_a, data_b, selectors_b = operands
    rows = _side_scales(warp, scales, A_SCALES, ROWS, data_a, selectors_a)
    return rows, _side_scales(warp, scales, B_SCALES, COLUMNS, data_b, selectors_b)


def _side_scales(
    warp: Warp, scales: Scales, side: ScaleSide, row_count: int, data: Operand, selectors: Operand
) -> Matrix:
    """Returns the scales of the `row_count` rows of one matrix (columns, for B), shape (rows,
    blocks of k). A row's scale is a byte of the word `data` of a lane. The row's lane
    (`side.holder`) selects that lane (thread selector), and the byte for block 0 (byte selector);
    the bytes of the next blocks follow it."""
    words = read(warp, data, U32).tolist()
    byte_selectors, thread_selectors = (
        read(warp, selector, U16).tolist() for selector in elements_of(selectors)
    )
    lane_of_row = [side.holder(row) for row in range(row_count)]
    scale_values = np.zeros((row_count, scales.count), np.float64)
    for block in range(scales.count):
        scale_bits = [0] * WARP
        for row, lane in enumerate(lane_of_row):
            source = side.contributor(lane, thread_selectors[lane] % side.threads)
            scale_bits[row] = words[source] >> BYTE_BITS * (block + byte_selectors[lane] % BYTES)
        numbers = evaluate(scale_number(scales.type), [collect(scale_bits, U32)], WARP)
        scale_values[:, block] = as_numbers(numbers, F32)[:row_count]
    return scale_values


def matrix_product(
    product: Product,
    a: Matrix,
    b: Matrix,
    c: Matrix,
    metadata: Metadata | None,
    scales: tuple[Matrix, Matrix] | None = None,
) -> Matrix:
    """Returns A * B + C; `b` is given transposed, with the columns of B as rows. `metadata` is that
    of a sparse A, `scales` are those of rows of A and columns of B, by block."""
    a_by_row, b_by_column = a[:, None], b[None]
    if product.sparsity is not None:
        assert metadata is not None
        b_by_column = _sparse_operand(product.sparsity, b, *metadata)
    with np.errstate(all="ignore"):
        if scales is not None:
            assert product.scales is not None
            blocks = [product.scales.block(k, product.depth) for k in range(product.depth)]
            a_by_row = a_by_row * scales[0][:, None, blocks]
            b_by_column = b_by_column * scales[1][None, :, blocks]
        return _sum(product, a_by_row, b_by_column, c)


def _sparse_operand(sparsity: Sparsity, b: Matrix, words: list[int], selector: int) -> Matrix:
    """Returns the elements of B that the stored elements of a sparse A are multiplied with, shape
    (rows of A, columns of B, stored elements of a row). `b` is given transposed, shape (columns of
    B, k). Stored element number j of a row of A stands at the k that the metadata give: a bit field
    of one of `words`, the lanes' metadata, of the lanes that `selector` chooses."""
    lane_metadata = [words[sparsity.contributor(lane, selector)] for lane in range(WARP)]
    columns = np.zeros((ROWS, sparsity.columns // 2), np.int64)
    for row, k in np.ndindex(columns.shape):
        lane, bit = sparsity.position(row, k)
        columns[row, k] = sparsity.column(k, lane_metadata[lane] >> bit & (sparsity.choices - 1))
    return b[:, columns].transpose(1, 0, 2)


def read_matrix(warp: Warp, fragment: Fragment, operand: Operand) -> Matrix:
    """Returns the matrix whose fragments the lanes hold in the registers of an operand."""
    type = U64 if fragment.bits == 64 else U32
    return assemble(fragment, [read(warp, register, type) for register in elements_of(operand)])


def assemble(fragment: Fragment, words: list[Values]) -> Matrix:
    """Returns the matrix whose fragments the lanes hold in the registers `words` (one array of
    lanes for each), its elements converted to the type in which they are computed."""
    type = U64 if fragment.bits == 64 else U32
    result = np.zeros((fragment.rows, fragment.columns), _numpy(fragment.type))
    for element in range(fragment.count):
        register, position = divmod(element, fragment.packed)
        # Small elements are packed, lowest first.
        bits = words[register] >> collect([position * fragment.bits], type)
        numbers = as_numbers(
            evaluate(number(fragment.type), [bits], WARP), calculated(fragment.type)
        )
        for lane in range(WARP):
            result[fragment.position(lane, element)] = numbers[lane]
    return result


def write_matrix(
    warp: Warp, fragment: Fragment, operand: Operand, values: Matrix, on: Values
) -> None:
    """Writes each lane's fragment of a matrix of sums, converted to the fragment's type and packed,
    to the registers of an operand, in the lanes where the predicate `on` is true."""
    type = U64 if fragment.bits == 64 else U32
    words = [collect([0] * WARP, type) for _ in range(fragment.registers)]
    for element in range(fragment.count):
        positions = [fragment.position(lane, element) for lane in range(WARP)]
        sums = np.array([values[position] for position in positions], _numpy(fragment.type))
        bits = evaluate(encoded(fragment.type), [sums.view(f"u{type.bytes}")], WARP)
        register, slot = divmod(element, fragment.packed)
        words[register] |= bits << collect([slot * fragment.bits], type)
    for register, word in zip(elements_of(operand), words, strict=True):
        write(warp, register, word, type, on)


def _numpy(type: str) -> npt.DTypeLike:
    """Returns the NumPy type in which elements of a PTX type are computed: int32 for integers of
    any width, float64 for f64, float32 for all other floats."""
    element_type = calculated(type)
    return (
        np.int32 if element_type.is_integer else {32: np.float32, 64: np.float64}[element_type.bits]
    )


def _sum(product: Product, a: Matrix, b: Matrix, c: Matrix) -> Matrix:
    """Returns C plus the products summed over the last axis of A and B, which are indexed by (row,
    column, k): of integers the exact sum, then saturated or wrapped (`_integer_sum`), of floats in
    rising k with a rounding in each step."""
    type = calculated(product.d.type)
    if type.is_integer:
        return _integer_sum(product, a, b, c)
    step: Callable[[Matrix, Matrix, Matrix], Matrix] = _double if type.bits == 64 else _single
    for k in range(product.depth):
        c = step(a[..., k], b[..., k], c)
    return c


def _single(a: Matrix, b: Matrix, c: Matrix) -> Matrix:
    """Returns a * b + c, rounded once to .f32.

    A product of such elements (of at most 11 significant bits) has at most 22 bits. Added to C in
    double precision it is either exact, or so much smaller than C that what is lost cannot change
    the rounding to .f32.
    """
    return (a.astype(np.float64) * b.astype(np.float64) + c).astype(np.float32)


def _double(a: Matrix, b: Matrix, c: Matrix) -> Matrix:
    """Returns a * b + c, element by element, each rounded once to .f64."""
    flat = [
        m.view(np.uint64).ravel() for m in map(np.ascontiguousarray, np.broadcast_arrays(a, b, c))
    ]

    def step(x: int, y: int, z: int) -> int:
        """Returns the bits of x * y + z, all of them bits of .f64, rounded once to nearest even."""
        return exact.multiply_add(x, y, z, exact.FORMATS[64], "rn")

    return lane_by_lane(step, flat, U64).view(np.float64).reshape(c.shape)


def _integer_sum(product: Product, a: Matrix, b: Matrix, c: Matrix) -> Matrix:
    """Returns C plus the sums of integer products, saturated or wrapped to 32 bits once at the end;
    for `.xor` and `.and` of single bits, the products are population counts."""
    if product.logic:
        combine = np.bitwise_xor if product.logic == "xor" else np.bitwise_and
        products = np.bitwise_count(combine(a.view(np.uint32), b.view(np.uint32))).astype(np.int64)
    else:
        products = a.astype(np.int64) * b
    total = products.sum(axis=2) + c
    return np.clip(total, *LIMITS).astype(np.int32) if product.saturates else total.astype(np.int32)


# ---- wmma.load and wmma.store -------------------------------------------------------------------


def move_fragment(warp: Warp, index: int, instruction: Instruction, mask: int, on: Values) -> None:
    """Executes `wmma.load` and `wmma.store` in the lanes of `mask` (`on`: the same set as a
    predicate). Each lane moves the elements of its fragment between memory and its registers, piece
    by piece. Addresses follow from the stride between rows or columns, an operand (by default the
    matrix's own extent)."""
    move = matrix_move(instruction.operation)
    address, registers, *stride = (
        instruction.operands if move.stores else _address_first(instruction.operands)
    )
    assert isinstance(address, Address)
    base = addresses(warp, address)
    leading_stride = read(warp, stride[0], U32).tolist() if stride else [move.leading] * WARP
    type = U64 if move.fragment.bits == 64 else U32
    words = [read(warp, register, type) for register in elements_of(registers)]
    # Pieces are merged into the registers with OR, which must start at 0.
    if not move.stores:
        words = [collect([0] * WARP, type) for _ in words]
    for piece in pieces(move):
        addresses_by_lane = [
            base[lane] + piece.offset(lane, leading_stride[lane]) for lane in range(WARP)
        ]
        _move_piece(warp, AccessRequest(index, space_of(instruction), move.op, piece.type.bytes),
                    piece, addresses_by_lane, words, mask)  # fmt: skip
    if not move.stores:
        for register, word in zip(elements_of(registers), words, strict=True):
            write(warp, register, word, type, on)


def _address_first(operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """Returns the operands of a load in the order of a store's, address first."""
    return operands[1], operands[0], *operands[2:]


def _move_piece(
    warp: Warp,
    request: AccessRequest,
    piece: Piece,
    addresses_by_lane: list[int],
    words: list[Values],
    mask: int,
) -> None:
    """Moves one piece of the fragment of each lane in `mask` between memory and the registers
    `words`: stores a part of a register, or merges loaded bits into it with OR, where its bits must
    be 0."""
    register, shift = piece.register, collect([piece.shift], U32)
    type: ScalarType = piece.type
    word = words[register]
    if request.op == "store":
        bits = resized(word >> shift.astype(word.dtype), type.bits)
        scatter(warp, request, addresses_by_lane, as_lane_rows([bits], type), mask)
    else:
        loaded = resized(
            part(gather(warp, request, addresses_by_lane, mask), 0, type), 8 * word.dtype.itemsize
        )
        words[register] = word | (loaded << shift.astype(word.dtype))
