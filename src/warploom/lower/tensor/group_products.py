"""Emits the function that computes 16 rows of a warp group's product (`wgmma`) in vector code.

B's words, which the caller has loaded from shared memory, are converted to numbers once, in blocks
of 32 columns, one row of each k. D is then summed in groups of eight columns, in the registers in
which lanes hold them: for each k, a multiply-add of A's element in the lane's row and B's element
in its column. There is one function for each opcode and each kind of operands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from warploom.isa.fragments import Fragment, accumulator
from warploom.isa.ops.wgmma import ROWS, GroupProduct
from warploom.isa.shared_matrices import SharedOperand
from warploom.llvm.folding import FoldingBuilder
from warploom.llvm.lanes import I8, I32, I64, LANES, PTR, Lanes, Value, element_type, vector
from warploom.lower.tensor.products import SumCode

WORDS = 4
"""Words of a unit (16 bytes) of shared memory, and registers of a warp's part of A."""

VECTOR_BYTES = 4 * LANES
COLUMNS = 8
"""Columns of D whose elements have one pattern over the lanes: two adjacent ones in each lane, in
each half of eight rows."""

HALVES = ROWS // 8


@dataclass(frozen=True)
class ProductBuffer:
    """Locates the operands of a product in its buffer: positions in vectors of 128 bytes (32 words)
    of the registers of D and of A, the metadata, the words of B, and B converted to numbers."""

    group_product: GroupProduct

    @property
    def d(self) -> int:
        """Returns the position of D's registers."""
        return 0

    @property
    def a(self) -> int:
        """Returns the position of A's registers."""
        return self.group_product.product.d.registers

    @property
    def metadata(self) -> int:
        """Returns the position of the metadata."""
        return self.a + WORDS

    @property
    def b(self) -> int:
        """Returns the position of the words of B."""
        return self.metadata + 1

    @property
    def numbers(self) -> int:
        """Returns the position of B converted to numbers: for each k, a vector for each block of 32
        columns."""
        operand = self.group_product.shared_b
        return self.b + operand.blocks * operand.requests * WORDS

    @property
    def bytes(self) -> int:
        """Returns the size of the buffer in bytes. It ends with B converted to numbers: for each of
        its `columns` (k), a vector for each block of 32 columns of B."""
        operand = self.group_product.shared_b
        return (self.numbers + operand.columns * operand.blocks) * VECTOR_BYTES


def vector_at(b: Value, buffer: Value, position: Value) -> Value:
    """Emits the address of a vector of a product's buffer; `position` is its number, an i64."""
    return b.gep(buffer, [b.mul(position, I64(VECTOR_BYTES))], source_etype=I8)


def counted_loop(b: Value, count: int, body: Callable[[Value], None]) -> None:
    """Emits a loop of `body` over the numbers (i64) from 0 up to `count` (at least 1), which is
    known at compile time; one iteration is emitted without a loop."""
    if count == 1:
        body(I64(0))
        return
    start, head, done = b.block, b.append_basic_block("loop"), b.append_basic_block("looped")
    b.branch(head)
    b.position_at_end(head)
    number = b.phi(I64)
    number.add_incoming(I64(0), start)
    body(number)
    after = b.add(number, I64(1))
    number.add_incoming(after, b.block)
    b.cbranch(b.icmp_unsigned("<", after, I64(count)), head, done)
    b.position_at_end(done)


def group_product_function(module: ir.Module, opcode: str, group_product: GroupProduct) -> Value:
    """Returns the function `void(buffer)` of a product, which reads D, A, metadata and the words of
    B from a buffer (`ProductBuffer`), and stores D; it is emitted at its first use in a module."""
    a = group_product.shared_a
    kinds = (
        "registers" if a is None else "transposed" if a.transposed else "rows",
        "transposed" if group_product.shared_b.transposed else "rows",
        "negated" if group_product.negated else "added",
    )
    name = ".".join(("group_product", opcode, *kinds))
    if name not in module.globals:
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [PTR]), name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        lanes = Lanes(module, FoldingBuilder(function.append_basic_block("entry")))
        _GroupProductBody(lanes, function.args[0], group_product).emit()
    return module.globals[name]


class _GroupProductBody:
    """Emits the body of one product's function, for the 16 rows of D of one warp."""

    def __init__(self, lanes: Lanes, buffer: Value, group_product: GroupProduct) -> None:
        """Lays out the buffer; selects the type of the numbers to which elements of B are
        converted."""
        self.lanes, self.b, self.buffer, self.group_product = lanes, lanes.b, buffer, group_product
        self.product, self.layout = group_product.product, ProductBuffer(group_product)
        self.code = SumCode(lanes, group_product.product)
        self.element = element_type(self.code.type)

    def emit(self) -> None:
        """Emits the body: converts B to numbers block by block, then sums D in groups of eight
        columns.
        """
        counted_loop(self.b, self.group_product.shared_b.blocks, self._number_block)
        rows = self._rows()
        selectors = self._selectors()
        columns = self.product.d.columns // COLUMNS
        counted_loop(self.b, columns, lambda column: self._sum(column, rows, selectors))
        self.b.ret_void()

    def _words(self, start: Value, count: int) -> list[Value]:
        """Loads `count` vectors of 32 words from the buffer, beginning with vector number `start`
        (an i64).
        """
        b = self.b
        positions = [b.add(start, I64(n)) for n in range(count)]
        return [
            b.load(vector_at(b, self.buffer, position), typ=vector(I32), align=64)
            for position in positions
        ]

    def _number_block(self, block: Value) -> None:
        """Converts 32 columns of B (block number `block`, an i64) to numbers and stores them in the
        buffer: for each k, a vector with one column in each lane."""
        b, operand = self.b, self.group_product.shared_b
        words = operand.requests * WORDS
        start = b.add(I64(self.layout.b), b.mul(block, I64(words)))
        numbers = self.code.numbers(operand.fragment, self._words(start, words))
        for k in range(operand.columns):
            row = self.code.elements_at(operand.fragment, numbers, [(n, k) for n in range(LANES)])
            position = b.add(block, I64(self.layout.numbers + k * operand.blocks))
            b.store(row, vector_at(b, self.buffer, position), align=64)

    def _rows(self) -> list[list[Value]]:
        """Returns A's elements by k and by half of the 16 rows: in each lane the element in the row
        of D that the lane holds there; negated if the instruction does so."""
        operand: SharedOperand | None = self.group_product.shared_a
        fragment: Fragment = self.product.a if operand is None else operand.fragment
        numbers = self.code.numbers(fragment, self._words(I64(self.layout.a), WORDS))
        if self.group_product.negated:
            numbers = [self.b.fneg(value) for value in numbers]
        return [
            [self.code.elements_at(fragment, numbers, [(row, k) for row in _rows_of(half)])
             for half in range(HALVES)]
            for k in range(self.product.depth)
        ]  # fmt: skip

    def _selectors(self) -> list[list[Value]]:
        """Returns, by k and half of the rows, the position in its chunk of the k-th stored element
        of a sparse A's row (i32 lanes); an empty list for a dense A."""
        sparsity = self.product.sparsity
        if sparsity is None:
            return []
        [metadata] = self._words(I64(self.layout.metadata), 1)
        return [
            [self.code.selector(sparsity, metadata, _rows_of(half), k) for half in range(HALVES)]
            for k in range(self.product.depth)
        ]

    def _sum(self, column: Value, rows: list[list[Value]], selectors: list[list[Value]]) -> None:
        """Emits the sums of the eight columns of D in group `column` (an i64): loads D, adds the
        products of all k, stores D. `rows` and `selectors` are those of `_rows` and `_selectors`.
        """
        b, code = self.b, self.code
        fragment = accumulator(self.product.d.type, ROWS, COLUMNS)
        start_at = b.mul(column, I64(fragment.registers))
        starts = code.numbers(fragment, self._words(start_at, fragment.registers))
        totals = [code.initial(start) for start in starts]
        for k, halves in enumerate(rows):
            columns = self._columns(column, k)
            for element in range(fragment.count):
                # A lane holds four elements: an even and an odd column in the upper eight rows,
                # then below.
                half, inside = divmod(element, 2)
                choices = [pair[inside] for pair in columns]
                right = code.select(selectors[k][half], choices) if selectors else choices[0]
                totals[element] = code.step(halves[half], right, totals[element])
        sums = [code.finish(start, total) for start, total in zip(starts, totals, strict=True)]
        for number, word in enumerate(code.registers(fragment, sums)):
            position = b.add(start_at, I64(number))
            b.store(word, vector_at(b, self.buffer, position), align=64)

    def _columns(self, column: Value, k: int) -> list[tuple[Value, Value]]:
        """Returns the elements of eight columns of B (group `column`) that the k-th stored elements
        of A may multiply. For each possible position in the chunk (one for a dense A) it has two
        vectors: the elements of the even and of the odd columns, in the lanes that hold these
        columns of D."""
        b, operand, sparsity = self.b, self.group_product.shared_b, self.product.sparsity
        rows = [k] if sparsity is None else [sparsity.column(k, c) for c in range(sparsity.choices)]
        pairs: list[tuple[Value, Value]] = []
        for row in rows:
            start = vector_at(b, self.buffer, I64(self.layout.numbers + row * operand.blocks))
            at = b.gep(start, [b.mul(column, I64(COLUMNS))], source_etype=self.element)
            eight = b.load(at, typ=ir.VectorType(self.element, COLUMNS), align=32)
            even, odd = (
                b.shuffle_vector(eight, eight, _lane_columns(inside)) for inside in range(2)
            )
            pairs.append((even, odd))
        return pairs


def _rows_of(half: int) -> list[int]:
    """Returns the row of D of each lane in one half (0 or 1) of a warp's 16 rows: four lanes share
    one."""
    return [8 * half + lane // 4 for lane in range(LANES)]


def _lane_columns(inside: int) -> ir.Constant:
    """Returns a shuffle's indices: each lane's column of eight, the even (`inside` 0) or odd (1)
    one."""
    return ir.Constant(vector(I32), [I32(2 * (lane % 4) + inside) for lane in range(LANES)])
