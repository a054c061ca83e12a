"""Emits the function of a matrix product (`mma`, `wmma.mma`), in vector code.

A product stays in vector registers. For one element of D in all lanes and one k, the elements of A
and B are selections among lanes that the fragment layouts fix at compile time:

    d[lane] += shuffle(a, rows of D in lanes) * shuffle(b, columns of D in lanes)

With a sparse A, metadata select among a few elements of B. There is one function for each opcode;
operands and results pass through a buffer.
"""

from __future__ import annotations

from llvmlite import ir

from warploom.core.types import U32, U64, ScalarType
from warploom.isa.elements import calculated, encoded, number, scale_number
from warploom.isa.fragments import Fragment, Position, Product
from warploom.isa.ops.matrix import LAYOUTS
from warploom.isa.scales import A_SCALES, B_SCALES, BYTE_BITS
from warploom.isa.sparsity import Sparsity
from warploom.llvm.folding import FoldingBuilder
from warploom.llvm.lanes import (
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
from warploom.llvm.vector_shuffles import pick
from warploom.lower.terms.terms import Lowering

QUAD_DEPTH = 4
FLOAT, DOUBLE = ir.FloatType(), ir.DoubleType()

BUFFER_BYTES = 24 * LANES * 8
"""Bytes of the buffer of the largest product, `wmma` on f16: eight registers each of A, B and C."""


def register_type(fragment: Fragment) -> ScalarType:
    """Returns the type by which a register with part of a fragment is read: .u64 for elements of
    64 bits, else .u32."""
    return U64 if fragment.bits == 64 else U32


def register_vector(type: ScalarType) -> ir.VectorType:
    """Returns the LLVM type of a register of `type` in 32 lanes: integers of its width."""
    return vector(ir.IntType(type.bits))


def constant(values: list[int], element: ir.IntType) -> ir.Constant:
    """Returns the constant vector of 32 lanes whose elements are `values`, of type `element`."""
    return ir.Constant(vector(element), [element(value) for value in values])


def slot(b: Value, buffer: Value, number: int) -> Value:
    """Returns the address of register number `number` in a product's buffer: 256 bytes each, enough
    for 64-bit registers."""
    return b.gep(buffer, [I64(number * LANES * 8)], source_etype=I8)


def product_function(module: ir.Module, opcode: str, product: Product) -> Value:
    """Returns the function `void(buffer)` of a product, which reads the registers of A, B and C,
    metadata and scales, and stores those of D from the buffer's start; it is emitted at its first
    use in a module. Opcodes that differ only in layouts that do not change the code share one."""
    # Only the quads of m8n8k4 on f16 hold their elements by the layouts of A and B.
    by_layout = product.a.rows == LANES and product.a.columns == QUAD_DEPTH
    parts = opcode.split(".")
    name_parts = (
        "sp" if p.startswith("sp::") else p for p in parts if by_layout or p not in LAYOUTS
    )
    name = "product." + ".".join(name_parts)
    if name not in module.globals:
        signature = ir.FunctionType(ir.VoidType(), [PTR])
        function = ir.Function(module, signature, name)
        function.linkage = "internal"
        # One product is hundreds of vector instructions. Inlined at each of the dozens that a
        # kernel has, they would dominate the time to compile; the call costs little beside them.
        function.attributes.add("noinline")
        lanes = Lanes(module, FoldingBuilder(function.append_basic_block("entry")))
        _ProductBody(lanes, function.args[0], product).emit()
    return module.globals[name]


class SumCode:
    """Emits parts of a matrix product, for products of a warp and of a warp group: conversion of
    elements to numbers, multiplication steps, conversion of sums to registers. `type`: the type in
    which sums are computed.
    """

    def __init__(self, lanes: Lanes, product: Product) -> None:
        """Selects the type of sums (`type`) by that of D: .s32 for integers and bits, .f64 for
        .f64, .f32 for other floats."""
        self.lanes, self.b, self.product = lanes, lanes.b, product
        self.lower = Lowering(lanes, LANES)
        self.type = calculated(product.d.type)

    def numbers(self, fragment: Fragment, words: list[Value]) -> list[Value]:
        """Emits the unpacking of a fragment's elements from its registers `words` (vectors of 32
        lanes), and their conversion to the number type of the fragment's element type
        (`number(fragment.type)`, not the type of the sums). Returns one vector of 32 lanes for each
        element, in order."""
        type, result = register_type(fragment), list[Value]()
        for element in range(fragment.count):
            register, inside = divmod(element, fragment.packed)
            shift = splat_constant(inside * fragment.bits, ir.IntType(type.bits))
            bits = self.b.lshr(words[register], shift)
            result.append(self.lower(number(fragment.type), [bits]))
        return result

    def elements_at(
        self, fragment: Fragment, values: list[Value], positions: list[Position]
    ) -> Value:
        """Returns the elements at given positions (row, column) of a fragment, one position for
        each lane; `values` are its numbers (`numbers`)."""
        holders = [fragment.holders[position] for position in positions]
        return pick(self.lanes, values, [(element, lane) for lane, element in holders])

    def selector(self, sparsity: Sparsity, metadata: Value, rows: list[int], k: int) -> Value:
        """Returns the position in its chunk (0 to `choices` - 1, in runs of elements that stay
        neighbors) of the k-th stored element of a sparse A's rows, one row a lane, from the
        metadata (i32 lanes)."""
        held = [sparsity.position(row, k) for row in rows]
        moved = pick(self.lanes, [metadata], [(0, lane) for lane, _ in held])
        index = self.b.lshr(moved, constant([bit for _, bit in held], I32))
        return self.b.and_(index, splat_constant(sparsity.choices - 1, I32))

    def select(self, selectors: Value, choices: list[Value]) -> Value:
        """Returns, in each lane, the one of `choices` whose number the lane's selector is."""
        result = choices[0]
        for choice, value in enumerate(choices[1:], 1):
            here = self.b.icmp_unsigned("==", selectors, splat_constant(choice, I32))
            result = self.lanes.blend(here, value, result)
        return result

    def initial(self, start: Value) -> Value:
        """Returns the sum to start with: `start` (the element of C) for floats, 0 for integers,
        whose C is added by `finish`.
        """
        # Floats are added in the order of the model, C first. Of integers the order cannot show,
        # and only the addition of C may overflow: it comes last, where the instruction saturates.
        return ir.Constant(vector(I32), None) if self.type.is_integer else start

    def step(self, left: Value, right: Value, total: Value) -> Value:
        """Returns `total` plus the product of `left` and `right`: a fused multiply-add for floats,
        wrapping for integers; for single-bit elements plus the number of ones in their `xor` or
        `and`."""
        if not self.type.is_integer:
            return self.lower.vectors.intrinsic("fma", [left, right, total])
        if not self.product.logic:
            return self.b.add(total, self.b.mul(left, right))
        # Single-bit products (`.b1`): the number of ones in the combined words.
        combine = self.b.xor if self.product.logic == "xor" else self.b.and_
        return self.b.add(total, self.lower.vectors.intrinsic("ctpop", [combine(left, right)]))

    def scaled_step(self, left: Value, right: Value, scale: Value, total: Value) -> Value:
        """Returns `total` plus a product times a scale (.f64), rounded once to .f32: the product
        with its scale is exact in double precision."""
        b, wide, narrow = self.b, vector(DOUBLE), vector(FLOAT)
        product = b.fpext(b.fmul(left, right), wide)
        result = self.lower.vectors.intrinsic("fma", [product, scale, b.fpext(total, wide)])
        return b.fptrunc(result, narrow)

    def scale(self, type: str, words: Value, lanes: list[int], block: int) -> Value:
        """Returns the scales of block `block` as .f64, one for each lane: of the packed word in
        lane `lanes[lane]`, byte `block`."""
        held = pick(self.lanes, [words], [(0, lane) for lane in lanes])
        bits = self.b.lshr(held, splat_constant(BYTE_BITS * block, I32))
        return self.b.fpext(self.lower(scale_number(type), [bits]), vector(DOUBLE))

    def finish(self, start: Value, total: Value) -> Value:
        """Returns the final sum: `total` for floats; for integers plus `start` (C), saturated if
        the instruction does so.
        """
        if not self.type.is_integer:
            return total
        # Products alone cannot overflow: there are 64 at most, of 16 bits.
        if self.product.saturates:
            return self.lower.vectors.intrinsic("sadd.sat", [start, total])
        return self.b.add(start, total)

    def registers(self, fragment: Fragment, sums: list[Value]) -> list[Value]:
        """Returns the registers of a fragment, into which its sums (one vector for each element of
        a lane) are encoded and packed, the first in the lowest bits."""
        type, result = register_type(fragment), list[Value]()
        for register in range(fragment.registers):
            word: Value = ir.Constant(register_vector(type), None)
            for inside in range(fragment.packed):
                bits = self.lower(
                    encoded(fragment.type), [sums[register * fragment.packed + inside]]
                )
                shift = splat_constant(inside * fragment.bits, ir.IntType(type.bits))
                word = self.b.or_(word, self.b.shl(bits, shift))
            result.append(word)
        return result


class _ProductBody:
    """Emits the body of one product's function."""

    def __init__(self, lanes: Lanes, buffer: Value, product: Product) -> None:
        """Stores the buffer of operands, and creates the `SumCode` of the product; emits
        nothing."""
        self.b, self.buffer, self.product = lanes.b, buffer, product
        self.code = SumCode(lanes, product)

    def emit(self) -> None:
        """Emits the body: loads and converts A, B and C, sums each element of D in all lanes, and
        stores D's registers over the operands from the buffer's start."""
        p = self.product
        first_word = 0
        held: list[list[Value]] = []
        for fragment in (p.a, p.b, p.c):
            words = self._words(fragment, first_word, fragment.registers)
            held.append(self.code.numbers(fragment, words))
            first_word += fragment.registers
        a, b, c = held
        sums = [self._sum(element, a, b, c) for element in range(p.d.count)]
        for register, word in enumerate(self.code.registers(p.d, sums)):
            self.b.store(word, slot(self.b, self.buffer, register), align=64)
        self.b.ret_void()

    def _words(self, fragment: Fragment, start: int, count: int) -> list[Value]:
        """Loads registers of a fragment's type from the buffer, beginning with number `start`."""
        type = register_vector(register_type(fragment))
        positions = range(start, start + count)
        return [self.b.load(slot(self.b, self.buffer, n), typ=type, align=64) for n in positions]

    def _sum(self, element: int, a: list[Value], b: list[Value], c: list[Value]) -> Value:
        """Returns element number `element` of D in each lane: C's element, plus every product in
        rising k (with block scales, times that of its block), as `initial` and `finish` of
        `SumCode` state."""
        p, code = self.product, self.code
        positions = [p.d.position(lane, element) for lane in range(LANES)]
        start = code.elements_at(p.c, c, positions)
        total = code.initial(start)
        scales = self._scales(positions)
        for k in range(p.depth):
            left = code.elements_at(p.a, a, [(row, k) for row, _ in positions])
            right = self._right_operand(b, positions, k)
            if p.scales is None:
                total = code.step(left, right, total)
            else:
                scale = scales[p.scales.block(k, p.depth)]
                total = code.scaled_step(left, right, scale, total)
        return code.finish(start, total)

    def _scales(self, positions: list[Position]) -> list[Value]:
        """Returns the product of A's and B's scales (.f64) for each block along k, at the lanes'
        elements of D (`positions`); an empty list for products without scales."""
        p = self.product
        if p.scales is None:
            return []
        words = self._words(p.d, p.sources, 2)
        rows = [A_SCALES.holder(row) for row, _ in positions]
        columns = [B_SCALES.holder(column) for _, column in positions]
        return [
            self.b.fmul(
                self.code.scale(p.scales.type, words[0], rows, block),
                self.code.scale(p.scales.type, words[1], columns, block),
            )
            for block in range(p.scales.count)
        ]

    def _right_operand(self, b: list[Value], positions: list[Position], k: int) -> Value:
        """Returns the elements of B by which the k-th stored elements of A's rows are multiplied at
        the lanes' elements of D (`positions`); with a sparse A selected by metadata."""
        p, code, sparsity = self.product, self.code, self.product.sparsity
        if sparsity is None:
            return code.elements_at(p.b, b, [(column, k) for _, column in positions])
        choices = [
            code.elements_at(
                p.b, b, [(column, sparsity.column(k, choice)) for _, column in positions]
            )
            for choice in range(sparsity.choices)
        ]
        (metadata,) = self._words(p.a, p.sources - 1, 1)
        rows = [row for row, _ in positions]
        return code.select(code.selector(sparsity, metadata, rows, k), choices)
