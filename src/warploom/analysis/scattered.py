"""Finds the registers whose lanes hold unrelated values, such as an index that each lane loads.

An address made of such a value has no step from lane to lane, so a check for one is wasted. The
analysis sorts registers into three levels and joins over all writers of each (a forward dataflow
analysis that ignores control flow; a worklist over uses, linear in their number):

    mad.lo.s32     %r1, %ctaid.x, 256, %tid.x;   // STRIDED
    shr.u32        %r2, %r1, 3;                  // ALIKE: few values in a warp, in long runs
    ld.global.u32  %r3, [%rd2];                  // ALIKE, if %rd2 is; else SCATTERED
    add.s32        %r4, %r3, %r1;                // SCATTERED, if %r3 is

Registers that have shapes (`analysis.uniformity`) have the level of their shape. The result is a
guess that only chooses between two ways to do an access, both correct for all addresses. Not
handled: control dependence (a search whose bounds are moved by data-dependent branches), and loaded
data that happen to be in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from warploom.isa.instruction import Instruction, Register, Space, Special
from warploom.isa.kinds import OpKind
from warploom.isa.spec import Unit
from warploom.program.accesses import space_of
from warploom.program.program import Program
from warploom.program.uses import leaf_operands, reads, sources, writes
from warploom.shapes.operand_shapes import BlockShapes
from warploom.shapes.vector_shape import VectorShape
from warploom.shapes.warp_layout import WarpLayout, special_shape


class Level(IntEnum):
    """Classifies how the lanes of a value differ, from the most regular to the least."""

    ALIKE = 0
    STRIDED = 1
    SCATTERED = 2


LINEAR = frozenset(
    {"mov", "cvta", "add", "addc", "sub", "subc", "mul", "mul24", "mad", "mad24", "madc", "neg"}
    | {"not", "shl", "abs", "min", "max", "rem", "and", "or", "bfe", "bfi", "szext", "selp"}
    | {"set", "setp", "slct", "cvt", "fma", "div"}
)
"""Operations that map affine operands to an affine result, at least in parts of a warp."""


def scattered_registers(
    program: Program, warp_layout: WarpLayout, shapes: BlockShapes
) -> frozenset[Register]:
    """Returns the registers of a program whose lanes hold unrelated values (Level.SCATTERED), such
    as loaded indices. `shapes` are those that registers have in all blocks: these registers are
    never scattered."""
    levels = {register: _level_of(shape) for register, shape in shapes.items()}
    users: dict[Register, list[Instruction]] = {}
    for instruction in program.instructions:
        for register in reads(instruction):
            if register not in shapes:
                users.setdefault(register, []).append(instruction)
    # Popped in program order: most levels are final after one visit.
    pending = list(reversed(program.instructions))
    while pending:
        instruction = pending.pop()
        targets = [register for register in writes(instruction) if register not in shapes]
        if not targets:
            continue
        level = _result_level(
            instruction, max(_operand_levels(instruction, warp_layout, levels), default=Level.ALIKE)
        )
        # Levels only rise, at most twice a register, which bounds the visits of its users.
        for register in targets:
            if level > levels.get(register, Level.ALIKE):
                levels[register] = level
                pending.extend(users.get(register, ()))
    return frozenset(r for r, level in levels.items() if level is Level.SCATTERED)


def _level_of(shape: VectorShape) -> Level:
    """Returns ALIKE for a uniform shape (in the warp or in each run), else STRIDED, also for the
    varying shape of a special register (`%tid.x` in a layout without runs, a clock)."""
    return Level.ALIKE if shape.is_affine and shape.stride == 0 else Level.STRIDED


def _operand_levels(
    instruction: Instruction, warp_layout: WarpLayout, levels: dict[Register, Level]
) -> Iterator[Level]:
    """Yields the level of each register that an instruction reads, its guard's included (ALIKE if
    it has none yet), and of each special register."""
    for register in reads(instruction):
        yield levels.get(register, Level.ALIKE)
    for operand in sources(instruction):
        for leaf in leaf_operands(operand):
            if isinstance(leaf, Special):
                yield _level_of(special_shape(leaf.name, warp_layout))


def _result_level(instruction: Instruction, most: Level) -> Level:
    """Returns the level of an instruction's results, from the greatest level `most` of its
    operands: atomics are scattered, loaded parameters alike; others have the level `most` if that
    is alike or scattered. Strided operands become alike by a right shift or integer division, stay
    strided by linear operations without rounding, and are scattered by others, such as loads."""
    operation = instruction.operation
    if operation.spec.unit is Unit.ATOMIC:
        return Level.SCATTERED
    if operation.kind is OpKind.LOAD and space_of(instruction) is Space.PARAM:
        return Level.ALIKE
    # Lanes with equal operands get equal results, by loads as well: their addresses are equal. Of
    # unrelated operands, no operation is assumed to make related results.
    if most is not Level.STRIDED:
        return most
    # Lanes next to each other share a quotient: with stride 1, eight lanes have one `x >> 3`.
    if operation.name == "shr" or (operation.name == "div" and not _is_float(instruction)):
        return Level.ALIKE
    return Level.STRIDED if _retains_strides(instruction) else Level.SCATTERED


def _is_float(instruction: Instruction) -> bool:
    """Returns whether an instruction's first source is read as a float."""
    source, *_ = instruction.operation.source_types
    return source is not None and source.is_float


def _retains_strides(instruction: Instruction) -> bool:
    """Returns whether an instruction maps strided operands to a strided result: it is an operation
    in LINEAR, and no conversion from float to integer."""
    return instruction.operation.name in LINEAR and not _rounds(instruction)


def _rounds(instruction: Instruction) -> bool:
    """Returns whether an instruction converts a float to an integer, so that a constant step
    between lanes may be lost."""
    target, *_ = instruction.operation.destination_types
    into_integer = target is not None and target.is_integer
    return instruction.operation.name == "cvt" and into_integer and _is_float(instruction)
