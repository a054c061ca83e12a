"""Emits instructions whose results are uniform or affine (a constant stride from lane to lane) as
one value for each run of lanes, instead of 32.

    mad.lo.s32 %r1, %ctaid.x, 256, %tid.x;   ->  <1 x i32>: 256 * ctaid + first tid; stride 1
    mul.wide.s32 %rd1, %r1, 4;               ->  <1 x i64>: 4 * sext(first); stride 4, if no lane
                                                 of the run wraps around in 32 bits

An extension of an affine value is affine only if the narrow value does not wrap around within the
run (2147483647, then -2147483648). That is checked at run time, by one comparison; if it does,
lanes continue in the divergent copy at the same instruction. In code for all warps of a thread
block, no thread of the block may wrap around.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from warploom.core.types import ScalarType
from warploom.isa.instruction import Instruction, Operand, Register
from warploom.isa.terms import Term
from warploom.llvm.lanes import LANES, Value
from warploom.lower.frame.operands import Operands
from warploom.lower.frame.position import ThreadLayout
from warploom.shapes.vector_shape import UNIFORM, VARYING, TermShapes, VectorShape


class AffineCode:
    """Emits the instructions of convergent code whose results are uniform or affine, as one value
    for each lane run (consecutive lanes between which results differ by a constant stride).
    Operands have the vector shapes of the frame's position."""

    def __init__(self, operands: Operands) -> None:
        """Shares the operands and their frame; emits nothing."""
        self.operands = operands
        self.frame, self.lanes, self.b = operands.frame, operands.lanes, operands.b

    def results(self, instruction: Instruction) -> dict[Register, VectorShape] | None:
        """Returns the vector shapes of an instruction's results if convergent code is emitted and
        each result is uniform or affine and fits its register's storage (`_can_store_shape`). Else
        None, as for an instruction without results: it is computed in 32 lanes."""
        if not self.frame.position.convergent or not self.frame.shapes:
            return None
        shapes_of_results = dict(self.frame.position.operand_shapes.results(instruction))
        shaped = all(
            shape.is_affine and self._can_store_shape(r, shape)
            for r, shape in shapes_of_results.items()
        )
        return shapes_of_results if shapes_of_results and shaped else None

    def width(self, instruction: Instruction) -> int:
        """Returns the number of lane runs for which the results of an affine instruction are
        computed: the most that one of them has."""
        return max(
            shape.width for _, shape in self.frame.position.operand_shapes.results(instruction)
        )

    def _can_store_shape(self, register: Register, shape: VectorShape) -> bool:
        """Returns whether a register can store a value of a vector shape: it has a short form in
        this block; or the value has stride 0 and is expanded to 32 lanes, but not in a predicated
        block, where that would overwrite inactive lanes."""
        position = self.frame.position
        return register in position.shapes or (shape.stride == 0 and not position.masked)

    def compute(
        self, instruction: Instruction, term: Term, values: Sequence[Callable[..., Value]]
    ) -> tuple[Value, Value | None]:
        """Emits a term in the width of its vector shape; returns its value, and an i1 that is true
        if a run wraps around where the shape forbids it (None if it cannot).

        `values[i](width=n)` reads operand i in n lanes.
        """
        shapes = self.frame.position.operand_shapes.terms(instruction)
        width = shapes.shape(term).width
        evaluation = _TermEmission(
            self.operands, shapes, width, values, self.frame.position.thread_layout
        )
        return evaluation.of(term), evaluation.wraps

    def write(
        self,
        target: Operand,
        value: Value,
        type: ScalarType,
        guard: Value | None,
        value_shape: VectorShape = UNIFORM,
    ) -> None:
        """Writes an affine value of the shape `value_shape`, or one of stride 0, to a register in
        its short form, or in 32 lanes if it has none here; where `guard`, of 1 lane, does not hold,
        the register retains its value. A sink (`_`) discards it."""
        if not isinstance(target, Register):
            return
        bits = self.operands.stored(target, value, type)
        shape = self.frame.position.shapes.get(target, VARYING)
        bits = self.lanes.expand(bits, shape.width, value_shape.offsets(shape.width))
        if guard is not None:
            # The guard is uniform: else the result would be varying.
            held = self.lanes.lane(guard, 0)
            bits = self.b.select(held, bits, self.frame.registers.load(target, shape.width))
        self.frame.registers.store(target, bits)


class _TermEmission:
    """Evaluates an instruction's term with one value for each run of lanes; a node that occurs
    twice is emitted once. `wraps`: the i1 of all range checks so far.
    """

    def __init__(
        self,
        operands: Operands,
        shapes: TermShapes,
        width: int,
        values: Sequence[Callable[..., Value]],
        thread_block: ThreadLayout | None,
    ) -> None:
        """Begins without emitted nodes. `values[i](width=n)` reads operand i in n lanes;
        `thread_block`: the thread block's layout, in code for all its warps."""
        self.lower, self.b = operands.lowerings[width], operands.b
        self.lanes, self.shapes, self.width, self.values = operands.lanes, shapes, width, values
        self.wraps: Value | None = None
        self._block = thread_block
        self._done: dict[Term, Value] = {}

    def of(self, term: Term) -> Value:
        """Returns the value of a node, emitted at its first use."""
        if term not in self._done:
            self._done[term] = self._node(term)
        return self._done[term]

    def _node(self, term: Term) -> Value:
        """Emits a node of the term after its arguments: an operand is read, a `select` with a known
        side is that side, the argument of an extension is checked for wraparound.
        """
        if term.op == "arg":
            return self.values[int(str(term.attr))](width=self.width)
        if term.op == "select" and (side := self.shapes.chosen(term)) is not None:
            return self.of(side)
        arguments = [self.of(a) for a in term.args]
        if term.op == "extend":
            self._check_range(arguments[0], self.shapes.shape(term.args[0]), term.args[0].type)
        return self.lower.node(term, arguments)

    def _check_range(self, firsts: Value, shape: VectorShape, type: ScalarType) -> None:
        """Adds to `wraps` whether an affine value, given by the first lanes of its runs, wraps
        around in its type: inside a run (nothing for stride 0), or in code for all warps anywhere
        in the thread block (nothing for uniform values)."""
        # Values are given for `width` lanes at equal distances, which may be within runs.
        b, extent = self.b, shape.stride * (min(shape.length, LANES // self.width) - 1)
        if self._block is not None and shape != UNIFORM:
            some = self._block.overflows(firsts, shape, type)
            self.wraps = some if self.wraps is None else b.or_(self.wraps, some)
        if self._block is not None or not shape.stride:
            return
        # Runs are shorter than half of the type's range (`vector_shape._extends_linearly`), so they
        # wrap around at most once: then the last lane of a rising run is below its first.
        lasts = b.add(firsts, ir.Constant(firsts.type, [firsts.type.element(extent)] * self.width))
        compare = b.icmp_signed if type.is_signed else b.icmp_unsigned
        bits = ir.IntType(self.width)
        overflows = compare("<" if extent > 0 else ">", lasts, firsts)
        some = b.icmp_unsigned("!=", b.bitcast(overflows, bits), bits(0))
        self.wraps = some if self.wraps is None else b.or_(self.wraps, some)
