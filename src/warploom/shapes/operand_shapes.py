"""Computes the shapes of an instruction's results from those of its operands: the transfer function
of the uniformity analysis (`analysis.uniformity`).

    mov.u32     %r1, %tid.x;           affine<1>
    shl.b32     %r2, %r1, 2;           affine<4>
    cvt.u64.u32 %rd1, %r2;             affine<4>, if no lane of %r2 wraps around
    add.s64     %rd2, %rd1, %rd3;      affine<4>, if %rd3 is uniform
    and.b32     %r3, %r2, 12;          varying
    and.b32     %r4, %r2, 124;         affine<4>, if each warp's %r2 begins at a multiple of 128

Results of guarded instructions are varying, unless the guard is uniform. Not handled: predicates
with structure (`tid < n` is varying here; `lower.operations.prefix_masks` recognises it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from warploom.core.types import PRED, ScalarType
from warploom.isa.instruction import (
    Address,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    Space,
    Special,
    Symbol,
    Vector,
    flatten_operands,
)
from warploom.isa.kinds import OpKind
from warploom.isa.special import SPECIAL_REGISTERS, Varies
from warploom.program.accesses import space_of
from warploom.program.masked_loops import MaskedRegion
from warploom.program.program import Program
from warploom.program.uses import leaf_operands
from warploom.shapes.vector_shape import (
    LANES,
    UNIFORM,
    VARYING,
    ShapedValue,
    TermShapes,
    VectorShape,
    strided,
)

BlockShapes = Mapping[Register, VectorShape]
"""The shapes of registers in a basic block; registers that it does not contain are varying."""


@dataclass(frozen=True)
class RegisterShapes:
    """The shapes of a program's registers, by basic block: the result of uniformity analysis.

    A register has one shape (`by_register`), but is varying in the blocks whose set in `varying`
    has it; registers without a shape are varying everywhere. Lanes leave the `masked_regions`
    separately (`program.masked_loops`); outer ones come first."""

    by_register: BlockShapes
    varying: tuple[frozenset[Register], ...]
    masked_regions: tuple[MaskedRegion, ...]

    def __bool__(self) -> bool:
        """Returns whether any register has a shape."""
        return bool(self.by_register)

    def at(self, block: int) -> BlockShapes:
        """Returns the shapes of registers in a block: all that have one, without those that are
        varying there."""
        if block not in self._at_block:
            varying = self.becomes_varying(block)
            shapes = (
                {r: s for r, s in self.by_register.items() if r not in varying}
                if varying
                else self.by_register
            )
            self._at_block[block] = shapes
        return self._at_block[block]

    @cached_property
    def _at_block(self) -> dict[int, BlockShapes]:
        """Returns the cache of `at`, by block: empty at first."""
        return {}

    def becomes_varying(self, block: int) -> frozenset[Register]:
        """Returns the registers that are varying in a block, though they have a shape in others."""
        return self.varying[block] if block < len(self.varying) else frozenset()

    @cached_property
    def lasting(self) -> frozenset[Register]:
        """Returns the registers that have their shapes in every block."""
        return frozenset(self.by_register).difference(*self.varying)

    def around(self, block: int) -> tuple[MaskedRegion, ...]:
        """Returns the masked regions that contain a block, the innermost last."""
        return tuple(region for region in self.masked_regions if block in region.blocks)


NO_SHAPES = RegisterShapes({}, (), ())


class WarpLayout(Enum):
    """Names how the threads of a block lie in its warps (CUDA C++ Programming Guide, "Thread
    Hierarchy").

    LINE: a warp is 32 threads along x. ROWS, ROWS_OF_8, ROWS_OF_4, ROWS_OF_2: a warp consists of
    runs of 16, 8, 4 or 2 threads along x. The width of blocks is a multiple of a run's length.
    WHOLE_ROWS, WHOLE_ROWS_OF_8, WHOLE_ROWS_OF_4, WHOLE_ROWS_OF_2: it is a run's length, so that
    `%tid.x` is the same in all runs. ONE_LINE: all threads lie along x, in blocks of any other
    width. ANY: neighbouring lanes may differ in y or z anywhere.

    The others describe a whole thread block, across its warps. BLOCK: no layout is known, so that
    registers are uniform in the thread block or varying. ALONG_X: all threads lie along x. IN_ROWS:
    16 threads along x, the others along y; shapes are those of the first two rows, and continue in
    the following rows by the same difference.
    """

    LINE = "line"
    ONE_LINE = "one line"
    ROWS = "rows"
    ROWS_OF_8 = "rows of 8"
    ROWS_OF_4 = "rows of 4"
    ROWS_OF_2 = "rows of 2"
    WHOLE_ROWS = "whole rows"
    WHOLE_ROWS_OF_8 = "whole rows of 8"
    WHOLE_ROWS_OF_4 = "whole rows of 4"
    WHOLE_ROWS_OF_2 = "whole rows of 2"
    ANY = "any"
    BLOCK = "block"
    ALONG_X = "along x"
    IN_ROWS = "in rows"


BLOCK_WIDE = frozenset({WarpLayout.BLOCK, WarpLayout.ALONG_X, WarpLayout.IN_ROWS})
"""Layouts that describe a whole thread block."""

RUNS = {
    WarpLayout.LINE: 1,
    WarpLayout.ONE_LINE: 1,
    WarpLayout.ROWS: 2,
    WarpLayout.ROWS_OF_8: 4,
    WarpLayout.ROWS_OF_4: 8,
    WarpLayout.ROWS_OF_2: 16,
    WarpLayout.WHOLE_ROWS: 2,
    WarpLayout.WHOLE_ROWS_OF_8: 4,
    WarpLayout.WHOLE_ROWS_OF_4: 8,
    WarpLayout.WHOLE_ROWS_OF_2: 16,
    WarpLayout.ANY: LANES,
}
"""Maps layouts of warps to the number of their lane runs, at most; the fewest first."""

WHOLE_ROWS = {
    16: WarpLayout.WHOLE_ROWS,
    8: WarpLayout.WHOLE_ROWS_OF_8,
    4: WarpLayout.WHOLE_ROWS_OF_4,
    2: WarpLayout.WHOLE_ROWS_OF_2,
}
"""Maps the widths of blocks whose rows are runs of a warp to the layouts of warps."""

BLOCK_LAYOUT = {
    WarpLayout.LINE: WarpLayout.ALONG_X,
    WarpLayout.ONE_LINE: WarpLayout.ALONG_X,
    WarpLayout.WHOLE_ROWS: WarpLayout.IN_ROWS,
}
"""Maps layouts of warps to the layout that a thread block of such warps may have; emitted code
checks that it has."""


def warp_layout_of(block: tuple[int, int, int]) -> WarpLayout:
    """Returns the layout of warps in a thread block of (x, y, z) threads: that of the longest runs
    (32, 16, 8, 4, 2 threads) of which x is a multiple, of whole rows if that is x, ANY if x is odd;
    ONE_LINE if all threads lie along x and x is no multiple of 32."""
    x, y, z = block
    if y * z == 1 and x % LANES:
        return WarpLayout.ONE_LINE
    if x in WHOLE_ROWS:
        return WHOLE_ROWS[x]
    return next(one for one, runs in RUNS.items() if x % (LANES // runs) == 0)


MOST_THREADS = {"x": 1024, "y": 1024, "z": 64}
"""The most threads of a block along each axis."""


def special_shape(name: str, warp_layout: WarpLayout) -> VectorShape:
    """Returns the shape of a special register: `%laneid` with stride 1, `%tid.x` with stride 1 in
    each run of the layout, equal in all runs of whole rows, `%tid.y` and `%tid.z` uniform in each
    run, others uniform or varying as the register is defined; clocks are varying. `%laneid`, `%tid`
    and `%ntid` have the bits that may be 1 in the first value of a run (`ones`). Of a whole thread
    block (BLOCK_WIDE), registers that differ between warps are varying, and thread indices but for
    those of ALONG_X and IN_ROWS."""
    special = SPECIAL_REGISTERS[name]
    if name == "%tid.x" and warp_layout is WarpLayout.ALONG_X:
        return VectorShape(1, 1)
    if name == "%tid.x" and warp_layout is WarpLayout.IN_ROWS:
        return VectorShape(1, 1, 0, repeats=2)
    if name == "%tid.y" and warp_layout is WarpLayout.IN_ROWS:
        return VectorShape(2)
    if warp_layout in BLOCK_WIDE:
        # Clocks are read by each warp at a time of its own.
        agreed = special.varies in (Varies.BLOCK, Varies.LAUNCH) and special.clock_bit is None
        return UNIFORM if agreed else VARYING
    if name == "%laneid":
        # `ones` is 0: the first lane of the only run has the value 0.
        return VectorShape(1, 1, 0)
    width, axis = RUNS[warp_layout], name[-1]
    # Blocks in one line are not a multiple of a run's length wide, but one thread high.
    is_one_line = warp_layout is WarpLayout.ONE_LINE
    if warp_layout in WHOLE_ROWS.values() and axis == "x":
        if name == "%ntid.x":
            return VectorShape(1, 0, LANES // width)
        if name == "%tid.x":
            return VectorShape(1, 1, 0, repeats=width)
    if name.startswith("%ntid."):
        multiple = LANES // width if axis == "x" and not is_one_line else 1
        # A size is at most MOST_THREADS, so twice as many less 1 has all bits that it may have; x
        # is a multiple of a run's length, so the bits below that are 0.
        return VectorShape(1, 0, (2 * MOST_THREADS[axis] - 1) & -multiple)
    if name.startswith("%tid.") and width < LANES:
        if axis == "x":
            return VectorShape(width, 1, (MOST_THREADS[axis] - 1) & -(LANES // width))
        return VectorShape(width, 0, 0 if is_one_line else MOST_THREADS[axis] - 1)
    varies = SPECIAL_REGISTERS[name].varies is Varies.LANE or special.clock_bit is not None
    return VARYING if varies else UNIFORM


class OperandShapes:
    """Evaluates the shapes of operands, guards and results of instructions, given the shapes of
    registers (in one block, or in all); a register without one is varying."""

    def __init__(self, program: Program, warp_layout: WarpLayout, shapes: BlockShapes) -> None:
        """Stores the program, its layout of warps, and the shapes of its registers: those without
        one are varying."""
        self.program, self.warp_layout, self.shapes = program, warp_layout, shapes

    def shape(self, operand: Operand, type: ScalarType) -> VectorShape:
        """Returns the shape of an operand that is read as `type` (`operand`)."""
        return self.operand(operand, type).shape

    def operand(self, operand: Operand, type: ScalarType) -> ShapedValue:
        """Returns the shape of an operand that is read as `type`, and its constant if it is an
        immediate integer. A negated predicate has the shape of its register; registers without a
        known shape, addresses, vectors and other compound operands are varying."""
        match operand:
            case Immediate(value):
                whole = None if type.is_float else value & ((1 << type.bits) - 1)
                return ShapedValue(UNIFORM, whole)
            case Negated(register):
                return ShapedValue(self.shapes.get(register, VARYING))
            case Register():
                shape = self.shapes.get(operand, VARYING)
                return ShapedValue(_resized(shape, operand.type.bits, type.bits))
            case Special(name):
                shape = special_shape(name, self.warp_layout)
                return ShapedValue(_resized(shape, SPECIAL_REGISTERS[name].type.bits, type.bits))
            case Symbol():
                return ShapedValue(UNIFORM)
            case _:
                return ShapedValue(VARYING)

    def address(self, operand: Operand) -> VectorShape:
        """Returns the shape of an address operand: that of its base register, uniform without one.
        It holds if no run of the address wraps around, which emitted code checks."""
        assert isinstance(operand, Address)
        if isinstance(operand.base, Register):
            return self.shapes.get(operand.base, VARYING)
        return UNIFORM

    def terms(self, instruction: Instruction) -> TermShapes:
        """Returns an evaluator of shapes for the terms of an instruction that computes, with the
        shapes of its sources as arguments; sources without a type (addresses) are varying."""
        operation = instruction.operation
        operands = flatten_operands(instruction.operands[len(operation.spec.destinations) :])
        types = operation.source_types
        return TermShapes(
            [
                ShapedValue(VARYING) if type is None else self.operand(operand, type)
                for operand, type in zip(operands, types, strict=False)
            ],
            linear=self.warp_layout is WarpLayout.IN_ROWS,
        )

    def guard(self, instruction: Instruction) -> VectorShape:
        """Returns the shape of an instruction's guard; uniform without one."""
        return (
            UNIFORM
            if instruction.guard is None
            else self.shapes.get(instruction.guard.register, VARYING)
        )

    def results(self, instruction: Instruction) -> Iterator[tuple[Register, VectorShape]]:
        """Yields the registers that an instruction writes, with the shapes of results at the
        registers' width: varying if the guard is not uniform; predicates are uniform or varying."""
        agreed = self.guard(instruction) == UNIFORM
        for position, target in enumerate(_written_registers(instruction)):
            if target is None:
                continue
            shape = VARYING
            if agreed:
                shape = (
                    self._term_result(instruction, position, target)
                    if computes(instruction)
                    else self._move_or_load_result(instruction, target)
                )
            # Predicates are masks of the warp, unless one bit holds for all lanes.
            if target.type == PRED and shape != UNIFORM:
                shape = VARYING
            yield target, shape

    def _term_result(
        self, instruction: Instruction, position: int, target: Register
    ) -> VectorShape:
        """Returns the shape of destination number `position` of an instruction that computes, at
        the width of register `target`; varying if no term defines that destination."""
        sources = tuple(
            flatten_operands(instruction.operands[len(instruction.operation.spec.destinations) :])
        )
        terms = instruction.operation.terms_for(len(sources))
        if position >= len(terms):
            return VARYING
        term = terms[position]
        return _resized(self.terms(instruction).shape(term), term.type.bits, target.type.bits)

    def _move_or_load_result(self, instruction: Instruction, target: Register) -> VectorShape:
        """Returns the shape of the destination of a `mov`, `cvta` or load; varying for other
        instructions and for vectors."""
        match instruction.operation.kind:
            case OpKind.MOVE | OpKind.CONVERT_ADDRESS:
                source = instruction.operands[1]
                if isinstance(source, Vector) or not isinstance(instruction.operands[0], Register):
                    return VARYING
                slot = "size" if instruction.operation.kind is OpKind.CONVERT_ADDRESS else "type"
                type = instruction.operation.modifiers.scalar(slot)
                shape = self.shape(source, type)
                # `cvta` adds the start of a window.
                shape = shape if slot == "type" else replace(shape, ones=-1)
                return _resized(shape, type.bits, target.type.bits)
            case OpKind.LOAD:
                return self._loaded_shape(instruction)
            case _:
                return VARYING

    def _loaded_shape(self, instruction: Instruction) -> VectorShape:
        """Returns the shape of a loaded value. Uniform for a kernel parameter. Lanes of one warp
        that load from one global, shared or constant address at once get one value, so such a load
        has the shape of its address if that has stride 0. Varying otherwise: for frames of calls,
        strided addresses, and in a whole thread block, whose warps do not load at once."""
        space, address = space_of(instruction), instruction.operands[1]
        if space is Space.PARAM:
            assert isinstance(address, Address)
            base = address.base
            named = isinstance(base, Symbol) and not self.program.slots[base.name].frame
            return UNIFORM if named else VARYING
        shared = space in (Space.GLOBAL, Space.CONST, Space.SHARED)
        if not shared or self.warp_layout in BLOCK_WIDE:
            return VARYING
        shape = self.address(address)
        return VectorShape(shape.width) if shape.is_affine and shape.stride == 0 else VARYING


def computes(instruction: Instruction) -> bool:
    """Returns whether an instruction only computes terms of its operands: its results do not depend
    on memory, control flow or other lanes. Of `mov`, only that of a register or immediate to a
    register."""
    operation = instruction.operation
    if operation.kind is OpKind.MOVE:
        whole = isinstance(instruction.operands[0], Register)
        return whole and isinstance(instruction.operands[1], Register | Immediate)
    return operation.kind in (OpKind.COMPUTE, OpKind.COMPARE, OpKind.MAP_ADDRESS)


def _written_registers(instruction: Instruction) -> Iterator[Register | None]:
    """Yields the register of each destination of an instruction, in order; None for a destination
    that is no register."""
    count = (
        1
        if instruction.operation.kind is OpKind.CALL
        else len(instruction.operation.spec.destinations)
    )
    for operand in instruction.operands[:count]:
        for leaf in leaf_operands(operand):
            yield leaf if isinstance(leaf, Register) else None


def _resized(shape: VectorShape, have: int, want: int) -> VectorShape:
    """Returns the shape of a value of `have` bits that is truncated or extended to `want` bits: an
    extended strided value is varying, since lanes may have wrapped around; a truncated one retains
    its stride, reduced to the signed range of `want` bits."""
    if want > have:
        return VARYING if shape.stride else replace(shape, ones=-1)
    return strided(shape.width, shape.stride, want, shape.ones, shape.repeats)


def block_affine_registers(block: BlockShapes, shapes: RegisterShapes) -> frozenset[Register]:
    """Returns the registers whose shapes in the thread block (`block`) have the stride of those in
    its warps (`shapes`) and no more runs, and hold in all basic blocks: their values in the first
    warp determine those in all warps."""
    common = block.keys() & shapes.lasting
    pairs = ((r, block[r], shapes.by_register[r]) for r in common)
    return frozenset(r for r, b, w in pairs if b.stride == w.stride and b.width <= w.width)
