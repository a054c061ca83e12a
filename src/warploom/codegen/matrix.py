"""Matrix instructions in a warp's code: loads, stores, transposing, and the calls of products."""

from __future__ import annotations

from llvmlite import ir

from warploom.analysis.accesses import space_of
from warploom.codegen.access import Shape
from warploom.codegen.lanes import (
    I8,
    I32,
    I64,
    LANES,
    Value,
    splat_constant,
    vector,
)
from warploom.codegen.memory import MemoryCode, elements
from warploom.codegen.products import (
    BUFFER_BYTES,
    constant,
    product_function,
    register_type,
    register_vector,
    slot,
)
from warploom.codegen.warp_group import WarpGroupCode
from warploom.core.types import B32, U32, ScalarType
from warploom.isa.fragments import Place
from warploom.isa.moves import Piece, matrix_move, pieces
from warploom.isa.ops.matrix import product_of
from warploom.isa.sparsity import Sparsity
from warploom.ptx.ir import Immediate, Instruction, Operand

Results = list[tuple[Operand, Value, ScalarType]]
"""What an instruction gives: destination, value, type."""


class MatrixCode:
    """Emits the matrix instructions of one warp function."""

    def __init__(self, memory: MemoryCode) -> None:
        self.memory, self.operands = memory, memory.operands
        self.lanes, self.b = memory.lanes, memory.b
        self.groups = WarpGroupCode(memory, delays=memory.functions.shuffles)

    def emit(self, index: int, made: Instruction, on: Value) -> Results:
        """Emit any of them, by name."""
        name = made.operation.name
        if name == "wgmma":
            return self.groups.emit(index, made, on)
        if name == "mma" or "mma" in made.operation.modifiers:
            return self._multiply(made)
        if name == "wmma":
            return self._move(index, made, on)
        if name == "movmatrix":
            word = self.operands.read(made.operands[1], B32)
            return [(made.operands[0], self._transposed(word), B32)]
        return (self._load_rows if name == "ldmatrix" else self._store_rows)(index, made, on)

    # ---- products -------------------------------------------------------------------------------

    def _multiply(self, made: Instruction) -> Results:
        product = product_of(made.operation)
        function = product_function(self.lanes.module, made.operation.opcode, product)
        d, *sources = made.operands
        b, buffer = self.b, self._buffer()
        fragments = (product.a, product.b, product.c)
        given = zip(fragments, sources, strict=False)
        words = [
            self.operands.read(register, register_type(fragment))
            for fragment, operand in given
            for register in elements(operand)
        ]
        if product.sparsity is not None:
            words.append(self._metadata(product.sparsity, *sources[3:]))
        for place, word in enumerate(words):
            b.store(word, slot(b, buffer, place), align=64)
        b.call(function, [buffer])
        type = register_type(product.d)
        return [
            (register, b.load(slot(b, buffer, n), typ=register_vector(type), align=64), type)
            for n, register in enumerate(elements(d))
        ]

    def _metadata(self, sparsity: Sparsity, metadata: Operand, selector: Operand) -> Value:
        """Return the metadata, moved to the lanes that have them with selector 0."""
        assert isinstance(selector, Immediate)
        holders = [sparsity.contributor(lane, selector.value) for lane in range(LANES)]
        word = self.operands.read(metadata, U32)
        return self.lanes.pick([word], [(0, holder) for holder in holders])

    def _buffer(self) -> Value:
        if not hasattr(self, "_data"):
            prologue = self.operands.frame.prologue
            self._data = prologue.alloca(ir.ArrayType(I8, BUFFER_BYTES), align=64)
        return self._data

    # ---- wmma.load and wmma.store ---------------------------------------------------------------

    def _move(self, index: int, made: Instruction, on: Value) -> Results:
        """Move the elements that each lane holds, piece by piece."""
        b, move = self.b, matrix_move(made.operation)
        first, second, *stride = made.operands
        address, held = (first, second) if move.stores else (second, first)
        type = register_type(move.fragment)
        start = self.operands.address(address)
        leading = splat_constant(move.leading, I64)
        if stride:
            leading = b.zext(self.operands.read(stride[0], U32), vector(I64))
        registers = elements(held)
        words: list[Value] = [ir.Constant(register_vector(type), None)] * len(registers)
        if move.stores:
            words = [self.operands.read(register, type) for register in registers]
        space = space_of(made)
        for piece in pieces(move):
            where = b.add(start, self._offsets(piece, leading))
            shape = Shape(move.op, space, piece.type)
            shift = splat_constant(piece.shift, ir.IntType(type.bits))
            word = words[piece.register]
            if move.stores:
                part = self._resized(b.lshr(word, shift), piece.type)
                self.memory.store_at(index, shape, where, [part], on)
            else:
                (found,) = self.memory.load_at(index, shape, where, on)
                wide = self._resized(found, type)
                words[piece.register] = b.or_(word, b.shl(wide, shift))
        return [] if move.stores else [(r, w, type) for r, w in zip(registers, words, strict=True)]

    def _offsets(self, piece: Piece, stride: Value) -> Value:
        """Bytes from the start of the matrix to each lane's piece."""
        steps = [piece.steps(lane) for lane in range(LANES)]
        far, near = (constant([s[n] for s in steps], I64) for n in (0, 1))
        behind = self.b.add(self.b.mul(far, stride), near)
        bits = self.b.mul(behind, splat_constant(piece.element_bits, I64))
        return self.b.lshr(bits, splat_constant(3, I64))

    def _resized(self, value: Value, type: ScalarType) -> Value:
        have = value.type.element.width
        if have == type.bits:
            return value
        resize = self.b.trunc if have > type.bits else self.b.zext
        return resize(value, register_vector(type))

    # ---- 8x8 matrices of 16-bit elements --------------------------------------------------------

    def _load_rows(self, index: int, made: Instruction, on: Value) -> Results:
        """`ldmatrix`: lanes point at rows, and each gets two neighbours of a row (or a column)."""
        registers = elements(made.operands[0])
        shape = Shape("load", space_of(made), B32, 4)
        some = self._pointing(len(registers), on)
        words = self.memory.load_at(index, shape, self.operands.address(made.operands[1]), some)
        return [
            (register, self._spread(words, 8 * n, _is_transposed(made)), B32)
            for n, register in enumerate(registers)
        ]

    def _store_rows(self, index: int, made: Instruction, on: Value) -> Results:
        """`stmatrix`, the opposite."""
        registers = [self.operands.read(r, B32) for r in elements(made.operands[1])]
        words = [self._row_words(registers, n, _is_transposed(made)) for n in range(4)]
        shape = Shape("store", space_of(made), B32, 4)
        some = self._pointing(len(registers), on)
        address = self.operands.address(made.operands[0])
        self.memory.store_at(index, shape, address, words, some)
        return []

    def _pointing(self, count: int, on: Value) -> Value:
        """Return the lanes whose addresses `count` matrices use."""
        return self.b.and_(on, self.lanes.mask(I32((1 << (8 * count)) - 1)))

    def _spread(self, words: list[Value], first: int, transposed: bool) -> Value:
        """From rows, one in each lane from `first` on, to a register of the matrix."""
        halves: list[Value] = []
        for element in (0, 1):
            places = [_place(lane, element, transposed) for lane in range(LANES)]
            picked = self.lanes.pick(words, [(c // 2, first + r) for r, c in places])
            halves.append(self._half(picked, [c % 2 for _, c in places]))
        return self._pair(halves)

    def _row_words(self, registers: list[Value], word: int, transposed: bool) -> Value:
        """Word `word` of every row, from the registers of the matrices."""
        halves: list[Value] = []
        for column in (2 * word, 2 * word + 1):
            holders = [_holder(row % 8, column, transposed) for row in range(8 * len(registers))]
            table = [(row // 8, lane) for row, (lane, _) in enumerate(holders)]
            sides = [side for _, side in holders]
            unused = LANES - len(table)
            picked = self.lanes.pick(registers, table + [(0, 0)] * unused)
            halves.append(self._half(picked, sides + [0] * unused))
        return self._pair(halves)

    def _transposed(self, word: Value) -> Value:
        """`movmatrix`."""
        halves: list[Value] = []
        for element in (0, 1):
            places = [_place(lane, element, True) for lane in range(LANES)]
            holders = [_holder(row, column, False) for row, column in places]
            picked = self.lanes.pick([word], [(0, lane) for lane, _ in holders])
            halves.append(self._half(picked, [side for _, side in holders]))
        return self._pair(halves)

    def _half(self, word: Value, sides: list[int]) -> Value:
        """Return the low or high half of each lane's word."""
        moved = self.b.lshr(word, constant([16 * side for side in sides], I32))
        return self.b.and_(moved, splat_constant(0xFFFF, I32))

    def _pair(self, halves: list[Value]) -> Value:
        low, high = halves
        return self.b.or_(low, self.b.shl(high, splat_constant(16, I32)))


def _is_transposed(made: Instruction) -> bool:
    return "trans" in made.operation.modifiers


def _place(lane: int, element: int, transposed: bool) -> Place:
    """Return which element of an 8x8 matrix a lane holds in that half of its register."""
    row, column = lane // 4, 2 * (lane % 4) + element
    return (column, row) if transposed else (row, column)


def _holder(row: int, column: int, transposed: bool) -> tuple[int, int]:
    """Return the lane that holds an element, and in which half."""
    if transposed:
        row, column = column, row
    return 4 * row + column // 2, column % 2
