"""Courses: all that a block does from begin to end, where that is known before it runs, one sweep
after the other (`analysis.warp_loops`).

Between their barriers most kernels ask only of the number of the thread who does something. How
often they pass one follows from the size of the block: `for (s = blockDim.x / 2; s > 0; s /= 2)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from warploom.analysis.block_uniformity import (
    is_full_barrier,
    is_unguarded_exit,
    is_uniform_branch,
    terminator,
)
from warploom.analysis.predicated_blocks import predicated_blocks
from warploom.analysis.shape_transfer import (
    BLOCK_LAYOUT,
    BlockShapes,
    OperandShapes,
    RegisterShapes,
    WarpLayout,
    computes,
    warp_layout_of,
)
from warploom.analysis.uniformity import shapes_of
from warploom.analysis.vector_shape import ShapedValue
from warploom.analysis.warp_loops import WarpLoop, WarpLoopSearch
from warploom.core.types import ScalarType
from warploom.program.cfg import BLOCK_ENDS, can_diverge
from warploom.program.program import Program, ProgramBlock
from warploom.program.uses import writes
from warploom.ptx.ir import Instruction, Operand, Register, Special, spread

LONGEST, MOST_WARP_LOOPS = 400, 24
"""How many instructions, and ways between barriers, are worth code of their own. No longer program
is even looked at: that could take longer than to find its code in the cache."""

SIZES = ("%ntid.x", "%ntid.y", "%ntid.z")

Size = tuple[int, int, int]
"""The threads of a block along x, y and z, as these registers tell."""

StaticSchedule = tuple[WarpLoop, ...]
"""All that a block does, in order; nothing where that is not known."""


def size_for_static_schedule(program: Program, size: Size) -> Size | None:
    """Return the size of a launch's blocks, where their course is known by it and not without."""
    x, y, z = size
    whole = x * y % 32 == 0 and z == 1 and (y == 1 or x == 16)
    short = len(program.instructions) <= LONGEST
    if not (whole and short and _reads_block_size(program)):
        return None
    warp_layout = warp_layout_of(size)
    shapes = shapes_of(program, warp_layout)
    if static_schedule_of(program, warp_layout, shapes):
        return None
    return size if static_schedule_of(program, warp_layout, shapes, size) else None


def _reads_block_size(program: Program) -> bool:
    operands = (
        operand for instruction in program.instructions for operand in spread(instruction.operands)
    )
    return any(isinstance(one, Special) and one.name in SIZES for one in operands)


def static_schedule_of(
    program: Program, warp_layout: WarpLayout, shapes: RegisterShapes, size: Size | None = None
) -> StaticSchedule:
    """Return the course of all blocks whose warps are formed so, or of those of a size."""
    if warp_layout not in BLOCK_LAYOUT or program.live_in[0] or program.depth is not None:
        return ()
    partly = frozenset(predicated_blocks(program, warp_layout, shapes).values())
    everywhere = frozenset(range(len(program.blocks)))
    search = WarpLoopSearch(program, everywhere, partly, warp_layout, shapes)
    schedule, length = list[WarpLoop](), 0
    for site, path, choices in _BlockExecution(program, search, size).parts():
        warp_loop = search.warp_loop(site, path, choices)
        if warp_loop is None:
            return ()
        schedule.append(warp_loop)
        length += warp_loop.length((*warp_loop.blocks, *warp_loop.body_blocks))
        if warp_loop.ends:
            return tuple(schedule)
        if length > LONGEST or len(schedule) == MOST_WARP_LOOPS:
            break
    return ()


class _ConstantOperands(OperandShapes):
    """Shapes of operands where the size of the block, and the contents of some registers, are
    known."""

    def __init__(
        self, program: Program, warp_layout: WarpLayout, shapes: BlockShapes, size: Size | None
    ) -> None:
        super().__init__(program, warp_layout, shapes)
        self._specials: dict[str, int] = dict(zip(SIZES, size, strict=True)) if size else {}
        self.constants: dict[Register, int] = {}

    def operand(self, operand: Operand, type: ScalarType) -> ShapedValue:
        shaped = super().operand(operand, type)
        match operand:
            case Register():
                bits = self.constants.get(operand) if operand.type.bits >= type.bits else None
            case Special(name):
                bits = self._specials.get(name)
            case _:
                return shaped
        cut = (1 << type.bits) - 1
        return shaped if bits is None else ShapedValue(shaped.shape, bits & cut)

    def execute(self, instruction: Instruction) -> None:
        """Follow an instruction that all threads have executed."""
        found = dict(self._results(instruction)) if instruction.guard is None else {}
        self.invalidate(instruction)
        self.constants |= found

    def invalidate(self, instruction: Instruction) -> None:
        """Forget what an instruction writes that some threads have executed."""
        for register in writes(instruction):
            self.constants.pop(register, None)

    def _results(self, instruction: Instruction) -> Iterator[tuple[Register, int]]:
        """Yield the registers that an instruction gives what is known, and what that is."""
        count = len(instruction.operation.spec.destinations)
        targets, sources = (
            tuple(spread(o)) for o in (instruction.operands[:count], instruction.operands[count:])
        )
        for target, (type, value) in zip(targets, self._values(instruction, sources), strict=False):
            if isinstance(target, Register) and target.type.bits == type.bits and value is not None:
                yield target, value

    def _values(
        self, instruction: Instruction, sources: tuple[Operand, ...]
    ) -> list[tuple[ScalarType, int | None]]:
        """Returns what an instruction gives, place by place, and of which type."""
        if instruction.operation.name == "mov":
            type = instruction.operation.modifiers.scalar()
            return [(type, self.operand(source, type).constant) for source in sources]
        if not computes(instruction):
            return []
        shapes = self.terms(instruction)
        terms = instruction.operation.terms_for(len(sources))
        return [(term.type, shapes.constant(term)) for term in terms]


class _BlockExecution:
    """The way of all threads of a block through a program."""

    def __init__(self, program: Program, search: WarpLoopSearch, size: Size | None) -> None:
        self.program, self._search = program, search
        operand_shapes = search.operand_shapes
        self._constants = _ConstantOperands(
            program, operand_shapes.warp_layout, operand_shapes.shapes, size
        )

    def parts(self) -> Iterator[tuple[int | None, tuple[int, ...], Mapping[int, bool]]]:
        """From barrier to barrier: the block at whose end the last one is, the blocks that follow,
        and by those at whose ends all threads take one way whether they take the branch. It stops
        where that is not known."""
        site, at, path, choices = None, 0, list[int](), dict[int, bool]()
        while at != self.program.exit and at not in path:
            block = self.program.blocks[at]
            path.append(at)
            self._execute(block)
            last = terminator(self.program, block)
            following = self._next_block(block, choices)
            if is_full_barrier(last) or is_unguarded_exit(last):
                yield site, tuple(path), choices
                site, path, choices = at, [], {}
            if following is None:
                return
            at = following

    def _execute(self, block: ProgramBlock) -> None:
        for instruction in self.program.instructions[block.start : block.stop]:
            self._constants.execute(instruction)

    def _next_block(self, block: ProgramBlock, choices: dict[int, bool]) -> int | None:
        """Return the block that all threads come to next, those that had more to do in between as
        well; None where that is not known."""
        last, index = terminator(self.program, block), block.index
        if is_full_barrier(last) or is_unguarded_exit(last):
            return block.successors[-1]
        if len(block.successors) == 1:
            falls_through = last.operation.name == "bra" or last.operation.name not in BLOCK_ENDS
            return block.successors[0] if falls_through else None
        if (
            can_diverge(last)
            and is_uniform_branch(self._search.operand_shapes, last)
            and last.guard is not None
        ):
            predicate = self._constants.constants.get(last.guard.register)
            if predicate is None:
                return None
            choices[index] = bool(predicate) != last.guard.negated
            return block.successors[0 if choices[index] else 1]
        if index not in self._search.if_bodies:
            return None
        body = self.program.blocks[self._search.if_bodies[index]]
        for instruction in self.program.instructions[body.start : body.stop]:
            self._constants.invalidate(instruction)
        return self.program.reconvergence[index]
