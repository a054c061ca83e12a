"""Computes the shapes of an instruction's results from those of its operands: the transfer function
of the uniformity analysis (`analysis.uniformity`).

    mov.u32     %r1, %tid.x;           affine<1>
    shl.b32     %r2, %r1, 2;           affine<4>
    cvt.u64.u32 %rd1, %r2;             affine<4>, if no lane of %r2 wraps around
    add.s64     %rd2, %rd1, %rd3;      affine<4>, if %rd3 is uniform
    and.b32     %r3, %r2, 12;          varying
    and.b32     %r4, %r2, 124;         affine<4>, if each warp's %r2 begins at a multiple of 128

Results of guarded instructions are varying, unless the guard is uniform. Not handled: predicates
with structure (`tid < n` is varying here; `lower.operations.prefix_masks` recognizes it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from warploom.core.lazy import cached_property
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
from warploom.isa.special import SPECIAL_REGISTERS
from warploom.program.accesses import space_of
from warploom.program.masked_loops import MaskedRegion
from warploom.program.program import Program
from warploom.program.uses import leaf_operands
from warploom.shapes.vector_shape import (
    UNIFORM,
    VARYING,
    ShapedValue,
    TermShapes,
    VectorShape,
    strided,
)
from warploom.shapes.warp_layout import BLOCK_WIDE, WarpLayout, special_shape

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
        has the shape of its address if that has stride 0. All other loads are varying: of frames of
        calls, at strided addresses, and loads seen in a whole thread block, whose warps do not load
        at once."""
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
