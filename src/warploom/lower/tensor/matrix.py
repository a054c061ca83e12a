"""Emits the matrix instructions of a warp: calls of product functions for `mma` and `wmma.mma`
(`lower.tensor.products`), and the loads and stores of `wmma`."""

from __future__ import annotations

from llvmlite import ir

from warploom.abi.access_type import AccessType
from warploom.core.types import U16, U32, ScalarType
from warploom.ir.kernel_accesses import elements
from warploom.isa.instruction import Immediate, Instruction, Operand
from warploom.isa.kinds import OpKind
from warploom.isa.moves import Piece, matrix_move, pieces
from warploom.isa.ops.matrix import product_of
from warploom.isa.scales import A_SCALES, B_SCALES, BYTE_BITS, BYTES, ScaleSide
from warploom.isa.sparsity import Sparsity
from warploom.llvm.lanes import (
    I8,
    I32,
    I64,
    LANES,
    Value,
    splat_constant,
    vector,
)
from warploom.llvm.vector_shuffles import pick
from warploom.lower.access.memory import MemoryCode
from warploom.lower.tensor.matrix_rows import MatrixRowCode, Results
from warploom.lower.tensor.products import (
    BUFFER_BYTES,
    constant,
    product_function,
    register_type,
    register_vector,
    slot,
)
from warploom.lower.tensor.warp_group import WarpGroupCode
from warploom.program.accesses import space_of


class MatrixCode:
    """Emits the matrix instructions of one warp function; `rows` emits those on rows of matrices,
    `groups` those of warp groups.
    """

    def __init__(self, memory: MemoryCode) -> None:
        """Creates the emitters `rows` and `groups`; products of warp groups may complete late under
        an order policy (`memory.functions.shuffles`)."""
        self.memory, self.operands = memory, memory.operands
        self.lanes, self.b = memory.lanes, memory.b
        self.rows = MatrixRowCode(memory)
        self.groups = WarpGroupCode(memory, delays=memory.functions.shuffles)

    def emit(self, index: int, instruction: Instruction, on: Value) -> Results:
        """Emits a matrix instruction, selected by its kind (`wgmma`, `mma`, `wmma` loads and
        stores, or rows of matrices); returns its results.
        """
        match instruction.operation.kind:
            case OpKind.GROUP_PRODUCT | OpKind.GROUP_COMMIT | OpKind.GROUP_WAIT:
                return self.groups.emit(index, instruction, on)
            case OpKind.MATRIX_PRODUCT | OpKind.WARP_MATRIX_PRODUCT:
                return self._multiply(instruction)
            case OpKind.WARP_MATRIX_LOAD | OpKind.WARP_MATRIX_STORE:
                return self._move(index, instruction, on)
            case _:
                return self.rows.emit(index, instruction, on)

    # ---- products -------------------------------------------------------------------------------

    def _multiply(self, instruction: Instruction) -> Results:
        """Emits `mma` or `wmma.mma`: stores the registers of A, B, C, then metadata and scales, in
        a buffer, calls the product function, and returns the registers of D with their values. All
        lanes participate, as PTX requires."""
        product = product_of(instruction.operation)
        function = product_function(self.lanes.module, instruction.operation.opcode, product)
        d, *sources = instruction.operands
        b, buffer = self.b, self._buffer()
        fragments = (product.a, product.b, product.c)
        sources_of = zip(fragments, sources, strict=False)
        words = [
            self.operands.read(register, register_type(fragment))
            for fragment, operand in sources_of
            for register in elements(operand)
        ]
        if product.sparsity is not None:
            words.append(self._metadata(product.sparsity, *sources[3:5]))
        if product.scales is not None:
            words += [self._scales(A_SCALES, *sources[-4:-2])]
            words += [self._scales(B_SCALES, *sources[-2:])]
        for number, word in enumerate(words):
            b.store(word, slot(b, buffer, number), align=64)
        b.call(function, [buffer])
        type = register_type(product.d)
        return [
            (register, b.load(slot(b, buffer, n), typ=register_vector(type), align=64), type)
            for n, register in enumerate(elements(d))
        ]

    def _metadata(self, sparsity: Sparsity, metadata: Operand, selector: Operand) -> Value:
        """Returns the metadata of a sparse A, moved from the lanes that the selector names to those
        that hold them with selector 0, as the product function expects.
        """
        assert isinstance(selector, Immediate)
        holders = [sparsity.contributor(lane, selector.value) for lane in range(LANES)]
        word = self.operands.read(metadata, U32)
        return pick(self.lanes, [word], [(0, holder) for holder in holders])

    def _scales(self, side: ScaleSide, scales: Operand, selectors: Operand) -> Value:
        """Returns the words of block scales of A or B (`side`), moved from the threads and bytes
        that the selectors name to those that hold them with selectors 0."""
        b, word = self.b, self.operands.read(scales, U32)
        byte, thread = (
            b.zext(self.operands.read(selector, U16), vector(I32))
            for selector in elements(selectors)
        )
        register_operand = word
        # One of `threads` neighboring lanes contributes, as the selector's low bits say.
        for number in range(1, side.threads):
            holders = [side.contributor(lane, number) for lane in range(LANES)]
            moved = pick(self.lanes, [word], [(0, holder) for holder in holders])
            register_operand = self.lanes.blend(
                self._is(thread, number, side.threads), moved, register_operand
            )
        shifts = b.mul(self._below(byte, BYTES), splat_constant(BYTE_BITS, I32))
        return b.lshr(register_operand, shifts)

    def _is(self, value: Value, number: int, count: int) -> Value:
        """Returns the mask of lanes whose value, modulo `count` (a power of two), is `number`."""
        return self.b.icmp_unsigned("==", self._below(value, count), splat_constant(number, I32))

    def _below(self, value: Value, count: int) -> Value:
        """Returns values modulo `count`, a power of two."""
        return self.b.and_(value, splat_constant(count - 1, I32))

    def _buffer(self) -> Value:
        """Returns the stack buffer, created at its first use, that passes registers of products."""
        if not hasattr(self, "_data"):
            prologue = self.operands.frame.prologue
            self._data = prologue.alloca(ir.ArrayType(I8, BUFFER_BYTES), align=64)
        return self._data

    # ---- wmma.load and wmma.store ---------------------------------------------------------------

    def _move(self, index: int, instruction: Instruction, on: Value) -> Results:
        """Emits `wmma.load` or `wmma.store` of a fragment, one access for each piece of the
        registers that each lane holds (`isa.moves.Piece`: elements that are neighbors in memory);
        returns the registers of a load with their values, an empty list for a store."""
        b, move = self.b, matrix_move(instruction.operation)
        first_operand, second_operand, *stride = instruction.operands
        address, register_operand = (
            (first_operand, second_operand) if move.stores else (second_operand, first_operand)
        )
        type = register_type(move.fragment)
        start = self.operands.address(address)
        leading = splat_constant(move.leading, I64)
        if stride:
            leading = b.zext(self.operands.read(stride[0], U32), vector(I64))
        registers = elements(register_operand)
        words: list[Value] = [ir.Constant(register_vector(type), None)] * len(registers)
        if move.stores:
            words = [self.operands.read(register, type) for register in registers]
        space = space_of(instruction)
        for piece in pieces(move):
            piece_address = b.add(start, self._offsets(piece, leading))
            access_type = AccessType(move.op, space, piece.type)
            shift = splat_constant(piece.shift, ir.IntType(type.bits))
            word = words[piece.register]
            if move.stores:
                part = self._resized(b.lshr(word, shift), piece.type)
                self.memory.store_at(index, access_type, piece_address, [part], on)
            else:
                (value,) = self.memory.load_at(index, access_type, piece_address, on)
                wide = self._resized(value, type)
                words[piece.register] = b.or_(word, b.shl(wide, shift))
        return [] if move.stores else [(r, w, type) for r, w in zip(registers, words, strict=True)]

    def _offsets(self, piece: Piece, stride: Value) -> Value:
        """Returns the bytes from the start of the matrix to each lane's piece, in 64-bit lanes;
        `stride`: the elements from one row (or column) to the next."""
        steps = [piece.steps(lane) for lane in range(LANES)]
        strides, offsets = (constant([step[n] for step in steps], I64) for n in (0, 1))
        # Elements may be narrower than a byte (4 bits, or 1): only the product with their bits is
        # sure to be whole bytes.
        offset = self.b.add(self.b.mul(strides, stride), offsets)
        bits = self.b.mul(offset, splat_constant(piece.element_bits, I64))
        return self.b.lshr(bits, splat_constant(3, I64))

    def _resized(self, value: Value, type: ScalarType) -> Value:
        """Returns words truncated or zero-extended to the width of `type`."""
        have = value.type.element.width
        if have == type.bits:
            return value
        resize = self.b.trunc if have > type.bits else self.b.zext
        return resize(value, register_vector(type))
