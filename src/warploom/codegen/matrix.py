"""Matrix instructions in a warp's code.

A product never leaves vector registers: for one element of D in all lanes, and one k, what each
lane needs of A and of B is a selection among lanes that the fragments fix. Its code is a function
of its own, made once for each opcode; registers go in and out through a buffer.
"""

from __future__ import annotations

from llvmlite import ir

from warploom.analysis.accesses import space_of
from warploom.codegen.access import Shape
from warploom.codegen.lanes import (
    I8,
    I32,
    I64,
    LANES,
    PTR,
    Lanes,
    Value,
    splat_constant,
    vector,
)
from warploom.codegen.lower import Lowering
from warploom.codegen.memory import MemoryCode, elements
from warploom.core.types import B32, U32, U64, ScalarType
from warploom.isa.elements import calculated, encoded, number
from warploom.isa.fragments import Fragment, Place, Product
from warploom.isa.moves import Piece, matrix_move, pieces
from warploom.isa.ops.matrix import LAYOUTS, product_of
from warploom.isa.sparsity import Sparsity
from warploom.ptx.ir import Immediate, Instruction, Operand

BUFFER_BYTES = 24 * LANES * 8
"""Room for the operands of the widest product, `wmma` on f16: eight registers each."""

QUAD_DEPTH = 4

Results = list[tuple[Operand, Value, ScalarType]]
"""What an instruction gives: destination, value, type."""


class MatrixCode:
    """Emits the matrix instructions of one warp function."""

    def __init__(self, memory: MemoryCode) -> None:
        self.memory, self.operands = memory, memory.operands
        self.lanes, self.b = memory.lanes, memory.b

    def emit(self, index: int, made: Instruction, on: Value) -> Results:
        """Any of them, by name."""
        name = made.operation.name
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
            self.operands.read(register, _register_type(fragment))
            for fragment, operand in given
            for register in elements(operand)
        ]
        if product.sparsity is not None:
            words.append(self._metadata(product.sparsity, *sources[3:]))
        for place, word in enumerate(words):
            b.store(word, _slot(b, buffer, place), align=64)
        b.call(function, [buffer])
        type = _register_type(product.d)
        return [
            (register, b.load(_slot(b, buffer, n), typ=_vector(type), align=64), type)
            for n, register in enumerate(elements(d))
        ]

    def _metadata(self, sparsity: Sparsity, metadata: Operand, selector: Operand) -> Value:
        """The metadata, moved to the lanes that have them with selector 0."""
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
        """Each lane moves the elements that it holds, piece by piece."""
        b, move = self.b, matrix_move(made.operation)
        first, second, *stride = made.operands
        address, held = (first, second) if move.stores else (second, first)
        type = _register_type(move.fragment)
        start = self.operands.address(address)
        leading = splat_constant(move.leading, I64)
        if stride:
            leading = b.zext(self.operands.read(stride[0], U32), vector(I64))
        registers = elements(held)
        words: list[Value] = [ir.Constant(_vector(type), None)] * len(registers)
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
        far, near = (_constant([s[n] for s in steps], I64) for n in (0, 1))
        behind = self.b.add(self.b.mul(far, stride), near)
        bits = self.b.mul(behind, splat_constant(piece.element_bits, I64))
        return self.b.lshr(bits, splat_constant(3, I64))

    def _resized(self, value: Value, type: ScalarType) -> Value:
        have = value.type.element.width
        if have == type.bits:
            return value
        resize = self.b.trunc if have > type.bits else self.b.zext
        return resize(value, _vector(type))

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
        """The lanes whose addresses `count` matrices use."""
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
        """The low or high half of each lane's word."""
        moved = self.b.lshr(word, _constant([16 * side for side in sides], I32))
        return self.b.and_(moved, splat_constant(0xFFFF, I32))

    def _pair(self, halves: list[Value]) -> Value:
        low, high = halves
        return self.b.or_(low, self.b.shl(high, splat_constant(16, I32)))


def _is_transposed(made: Instruction) -> bool:
    return "trans" in made.operation.modifiers


def _place(lane: int, element: int, transposed: bool) -> Place:
    """Which element of an 8x8 matrix a lane holds in that half of its register."""
    row, column = lane // 4, 2 * (lane % 4) + element
    return (column, row) if transposed else (row, column)


def _holder(row: int, column: int, transposed: bool) -> tuple[int, int]:
    """The lane that holds an element, and in which half."""
    if transposed:
        row, column = column, row
    return 4 * row + column // 2, column % 2


def _register_type(fragment: Fragment) -> ScalarType:
    return U64 if fragment.bits == 64 else U32


def _vector(type: ScalarType) -> ir.VectorType:
    return vector(ir.IntType(type.bits))


def _constant(values: list[int], element: ir.IntType) -> ir.Constant:
    return ir.Constant(vector(element), [element(value) for value in values])


def _slot(b: Value, buffer: Value, place: int) -> Value:
    return b.gep(buffer, [I64(place * LANES * 8)], source_etype=I8)


# ---- the function of a product ------------------------------------------------------------------


def product_function(module: ir.Module, opcode: str, product: Product) -> Value:
    """`void(buffer)`: reads the registers of A, B, C and of metadata, and leaves those of D."""
    # Only the quads of m8n8k4 on f16 hold their elements by the layouts of A and B.
    by_layout = product.a.rows == LANES and product.a.columns == QUAD_DEPTH
    parts = opcode.split(".")
    name = "product." + ".".join(p for p in parts if by_layout or p not in LAYOUTS)
    if name not in module.globals:
        signature = ir.FunctionType(ir.VoidType(), [PTR])
        function = ir.Function(module, signature, name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        lanes = Lanes(module, ir.IRBuilder(function.append_basic_block("entry")))
        _ProductBody(lanes, function.args[0], product).emit()
    return module.globals[name]


class _ProductBody:
    """Emits the sums of one product."""

    def __init__(self, lanes: Lanes, buffer: Value, product: Product) -> None:
        self.lanes, self.b, self.buffer, self.product = lanes, lanes.b, buffer, product
        self.lower = Lowering(lanes, LANES)
        self.type = calculated(product.d.type)

    def emit(self) -> None:
        p = self.product
        first = 0
        held: list[list[Value]] = []
        for fragment in (p.a, p.b, p.c):
            held.append(self._numbers(fragment, first))
            first += fragment.registers
        a, b, c = held
        if p.sparsity is not None:
            self.metadata = self.b.load(_slot(self.b, self.buffer, first), typ=vector(I32), align=64)
        sums = [self._sum(element, a, b, c) for element in range(p.d.count)]
        self._leave(sums)
        self.b.ret_void()

    def _numbers(self, fragment: Fragment, first: int) -> list[Value]:
        """The elements of a fragment, each in 32 lanes, as numbers."""
        type, found = _register_type(fragment), list[Value]()
        for element in range(fragment.count):
            register, inside = divmod(element, fragment.packed)
            at = _slot(self.b, self.buffer, first + register)
            word = self.b.load(at, typ=_vector(type), align=64)
            shift = splat_constant(inside * fragment.bits, ir.IntType(type.bits))
            bits = self.b.lshr(word, shift)
            found.append(self.lower(number(fragment.type), [bits]))
        return found

    def _sum(self, element: int, a: list[Value], b: list[Value], c: list[Value]) -> Value:
        """One element of D: what C has there, then every product in rising k."""
        p = self.product
        places = [p.d.place(lane, element) for lane in range(LANES)]
        start = self._at(p.c, c, places)
        total = start
        if self.type.is_integer:
            total = ir.Constant(vector(I32), None)
        for k in range(p.depth):
            left = self._at(p.a, a, [(row, k) for row, _ in places])
            right = self._met(b, places, k)
            total = self._step(left, right, total)
        if not self.type.is_integer:
            return total
        # Products alone cannot overflow: there are 64 at most, of 16 bits.
        if p.saturates:
            return self.lower.intrinsic("sadd.sat", [start, total])
        return self.b.add(start, total)

    def _met(self, b: list[Value], places: list[Place], k: int) -> Value:
        """What the k-th element of A's rows meets of B."""
        p, sparsity = self.product, self.product.sparsity
        if sparsity is None:
            return self._at(p.b, b, [(column, k) for _, column in places])
        choices = [
            self._at(p.b, b, [(column, sparsity.column(k, choice)) for _, column in places])
            for choice in range(sparsity.choices)
        ]
        chosen = self._choice(sparsity, [row for row, _ in places], k)
        found = choices[0]
        for number, value in enumerate(choices[1:], 1):
            here = self.b.icmp_unsigned("==", chosen, splat_constant(number, I32))
            found = self.lanes.blend(here, value, found)
        return found

    def _choice(self, sparsity: Sparsity, rows: list[int], k: int) -> Value:
        """Where in their chunks the k-th elements of these rows stand, by the metadata."""
        held = [sparsity.place(row, k) for row in rows]
        words = self.lanes.pick([self.metadata], [(0, lane) for lane, _ in held])
        index = self.b.lshr(words, _constant([bit for _, bit in held], I32))
        return self.b.and_(index, splat_constant(sparsity.choices - 1, I32))

    def _at(self, fragment: Fragment, values: list[Value], places: list[Place]) -> Value:
        """The elements at those places, lane by lane."""
        holders = [fragment.holders[place] for place in places]
        return self.lanes.pick(values, [(element, lane) for lane, element in holders])

    def _step(self, left: Value, right: Value, total: Value) -> Value:
        if not self.type.is_integer:
            return self.lower.intrinsic("fma", [left, right, total])
        if not self.product.logic:
            return self.b.add(total, self.b.mul(left, right))
        meet = self.b.xor if self.product.logic == "xor" else self.b.and_
        return self.b.add(total, self.lower.intrinsic("ctpop", [meet(left, right)]))

    def _leave(self, sums: list[Value]) -> None:
        d = self.product.d
        type = _register_type(d)
        for register in range(d.registers):
            word: Value = ir.Constant(_vector(type), None)
            for inside in range(d.packed):
                bits = self.lower(encoded(d.type), [sums[register * d.packed + inside]])
                shift = splat_constant(inside * d.bits, ir.IntType(type.bits))
                word = self.b.or_(word, self.b.shl(bits, shift))
            self.b.store(word, _slot(self.b, self.buffer, register), align=64)
