"""Instructions on values with shapes: computed once for all lanes, or once for each row.

What an instruction gives has its shape only if no row wraps around where it is made wider. That is
looked at; where one does, the lanes go on in the divergent copy, at the same instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from warploom.analysis.shape_transfer import Reading
from warploom.analysis.vector_shape import UNIFORM, VECTOR, TermShapes, VectorShape
from warploom.core.types import ScalarType
from warploom.isa.terms import Term
from warploom.llvm.lanes import Value
from warploom.lower.frame.block_layout import BlockWide
from warploom.lower.frame.operands import Operands
from warploom.ptx.ir import Instruction, Operand, Register


class ShapedCode:
    """Emits the instructions of the convergent copy whose results have shapes."""

    def __init__(self, operands: Operands, reading: Reading) -> None:
        self.operands, self.reading = operands, reading
        self.frame, self.lanes, self.b = operands.frame, operands.lanes, operands.b
        self.partly = False
        """Whether code is made for some lanes only, so that others keep what a register holds."""
        self.block: BlockWide | None = None
        """Where no lane of a block must wrap around, and not only of the warp or of its row."""

    def results(self, instruction: Instruction) -> dict[Register, VectorShape] | None:
        """Return the shapes that the results of an instruction have, if it gives nothing else."""
        if not self.frame.registers.convergent or not self.frame.shapes:
            return None
        shapes_of_results = dict(self.reading.results(instruction))
        shaped = all(s.is_known and self._fits_bits(r, s) for r, s in shapes_of_results.items())
        return shapes_of_results if shapes_of_results and shaped else None

    def width(self, instruction: Instruction) -> int:
        """Return in how many lanes the results of an instruction with shapes are computed."""
        return max(shape.width for _, shape in self.reading.results(instruction))

    def _fits_bits(self, register: Register, shape: VectorShape) -> bool:
        """Returns whether a register can take a value of that shape as it is."""
        return register in self.frame.registers.here or (shape.stride == 0 and not self.partly)

    def compute(
        self, instruction: Instruction, term: Term, values: Sequence[Callable[..., Value]]
    ) -> tuple[Value, Value | None]:
        """Return the value of a term by its shape, and whether some row wraps around where it must
        not. `values[i](width=n)` reads operand i in n lanes."""
        shapes = self.reading.terms(instruction)
        width = shapes.shape(term).width
        evaluation = _Evaluation(self.operands, shapes, width, values, self.block)
        return evaluation.of(term), evaluation.wraps

    def write(self, target: Operand, value: Value, type: ScalarType, guard: Value | None) -> None:
        """Write a value of 1 or 2 lanes. `guard`, of 1 lane, says whether."""
        if not isinstance(target, Register):
            return
        bits = self.operands.stored(target, value, type)
        shape = self.frame.registers.here.get(target, VECTOR)
        bits = self.lanes.fan(bits, shape.stride, shape.width)
        if guard is not None:
            held = self.lanes.lane(guard, 0)
            bits = self.b.select(held, bits, self.frame.registers.load(target, shape.width))
        self.frame.registers.store(target, bits)


class _Evaluation:
    """One term's nodes and their values; a node that is used twice is computed once."""

    def __init__(
        self,
        operands: Operands,
        shapes: TermShapes,
        width: int,
        values: Sequence[Callable[..., Value]],
        block: BlockWide | None,
    ) -> None:
        self.lower, self.b = operands.lowerings[width], operands.b
        self.lanes, self.shapes, self.width, self.values = operands.lanes, shapes, width, values
        self.wraps: Value | None = None
        self._block = block
        self._done: dict[Term, Value] = {}

    def of(self, term: Term) -> Value:
        if term not in self._done:
            self._done[term] = self._node(term)
        return self._done[term]

    def _node(self, term: Term) -> Value:
        if term.op == "arg":
            return self.values[int(str(term.attr))](width=self.width)
        if term.op == "select" and (side := self.shapes.chosen(term)) is not None:
            return self.of(side)
        arguments = [self.of(a) for a in term.args]
        if term.op == "extend":
            self._check_range(arguments[0], self.shapes.shape(term.args[0]), term.args[0].type)
        return self.lower.node(term, arguments)

    def _check_range(self, firsts: Value, shape: VectorShape, type: ScalarType) -> None:
        """Return whether a row leaves the range of its type."""
        b, extent = self.b, VectorShape(self.width, shape.stride).extent
        if self._block is not None and shape != UNIFORM:
            some = self._block.overflows(firsts, shape, type)
            self.wraps = some if self.wraps is None else b.or_(self.wraps, some)
        if self._block is not None or not shape.stride:
            return
        lasts = b.add(firsts, ir.Constant(firsts.type, [firsts.type.element(extent)] * self.width))
        compare = b.icmp_signed if type.is_signed else b.icmp_unsigned
        bits = ir.IntType(self.width)
        overflows = compare("<" if extent > 0 else ">", lasts, firsts)
        some = b.icmp_unsigned("!=", b.bitcast(overflows, bits), bits(0))
        self.wraps = some if self.wraps is None else b.or_(self.wraps, some)
