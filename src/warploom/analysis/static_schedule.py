"""Computes the static schedule of a kernel, if it is known at compile time: the sequence of warp
loops (`analysis.warp_loops`, one for each interval between barriers) that a thread block executes
from begin to end.

Most kernels select threads between barriers by their index only, and the number of barriers follows
from the size of the block. With 256 threads, this loop passes eight barriers, s = 128 to 1:

    for (s = blockDim.x / 2; s > 0; s /= 2) { if (tid < s) x[tid] += x[tid + s]; __syncthreads(); }

Control flow is executed abstractly, with constants for the registers that the block's size
determines. Not handled: loop bounds from parameters or memory, and schedules longer than LONGEST.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from warploom.analysis.block_uniformity import (
    is_unguarded_exit,
    is_uniform_branch,
    is_waiting_barrier,
)
from warploom.analysis.predicated_blocks import predicated_blocks
from warploom.analysis.uniformity import shapes_of
from warploom.analysis.warp_loops import WarpLoopSearch
from warploom.core.types import ScalarType
from warploom.ir.loops import WarpLoop
from warploom.ir.variant import Size
from warploom.isa.instruction import Instruction, Operand, Register, Special, flatten_operands
from warploom.isa.kinds import Effect, OpKind
from warploom.program.cfg import ProgramBlock, can_diverge
from warploom.program.program import Program
from warploom.program.uses import writes
from warploom.shapes.operand_shapes import BlockShapes, OperandShapes, RegisterShapes, computes
from warploom.shapes.vector_shape import ShapedValue
from warploom.shapes.warp_layout import BLOCK_LAYOUT, WarpLayout, warp_layout_of

LONGEST, MOST_WARP_LOOPS = 400, 24
"""Limits of a schedule: instructions of the warp loops before the last one, and warp loops. Longer
programs are not analysed for a block size (`size_for_static_schedule`): that could last longer than
loading their code from the cache."""

SIZES = ("%ntid.x", "%ntid.y", "%ntid.z")


def size_for_static_schedule(program: Program, size: Size) -> Size | None:
    """Returns the block size of a launch, by which its code has to be specialized, if the kernel
    has a static schedule for that size but none for unknown sizes. Else None, also for kernels that
    do not read the block's size or have more than LONGEST (400) instructions, and for blocks with a
    partly filled warp or other layouts than along x or in rows of 16."""
    x, y, z = size
    # All warps are full, and all threads lie along x, or in rows of 16.
    whole = x * y % 32 == 0 and z == 1 and (y == 1 or x == 16)
    short = len(program.instructions) <= LONGEST
    if not (whole and short and _reads_block_size(program)):
        return None
    warp_layout = warp_layout_of(size)
    shapes = shapes_of(program, warp_layout)
    # Code for one size is compiled and cached once for each size. A kernel whose schedule is the
    # same for all needs none.
    if static_schedule_of(program, warp_layout, shapes):
        return None
    return size if static_schedule_of(program, warp_layout, shapes, size) else None


def _reads_block_size(program: Program) -> bool:
    """Returns whether an instruction reads the size of the thread block, on which the schedule may
    depend."""
    operands = (
        operand
        for instruction in program.instructions
        for operand in flatten_operands(instruction.operands)
    )
    return any(
        isinstance(read_operand, Special) and read_operand.name in SIZES
        for read_operand in operands
    )


def static_schedule_of(
    program: Program, warp_layout: WarpLayout, shapes: RegisterShapes, size: Size | None = None
) -> tuple[WarpLoop, ...]:
    """Returns the static schedule, the warp loops from entry to end, for all blocks with a layout
    of warps, or for those of one `size`. Empty if an interval between barriers is no warp loop, the
    path is unknown, a register is read before it is written, or calls are not inlined; also if the
    layout is not in BLOCK_LAYOUT, there are more than MOST_WARP_LOOPS (24) loops, or the loops
    before the last have more than LONGEST (400) instructions together."""
    if warp_layout not in BLOCK_LAYOUT or program.live_in[0] or program.depth is not None:
        return ()
    predicated_bodies = frozenset(predicated_blocks(program, warp_layout, shapes).values())
    everywhere = frozenset(range(len(program.blocks)))
    search = WarpLoopSearch(program, everywhere, predicated_bodies, warp_layout, shapes)
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
    """Shapes of operands, with constants: the size of the block, and registers that are computed
    from it on the path executed so far."""

    def __init__(
        self, program: Program, warp_layout: WarpLayout, shapes: BlockShapes, size: Size | None
    ) -> None:
        """Begins with constants for the special registers of the block's size (none if `size` is
        None); registers get theirs by `execute`."""
        super().__init__(program, warp_layout, shapes)
        self._specials: dict[str, int] = dict(zip(SIZES, size, strict=True)) if size else {}
        self.constants: dict[Register, int] = {}

    def operand(self, operand: Operand, type: ScalarType) -> ShapedValue:
        """Returns the shape of an operand that is read as `type`, and its constant, cut to the
        type's bits. A register has one if its value is known on the path executed so far and it is
        not narrower than the type; a special register if it is a size of the block; immediates and
        all others as in `OperandShapes.operand`."""
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
        """Updates the constants for an instruction that all threads have executed: its results
        replace those of the registers that it writes; a guarded one only invalidates them."""
        results = dict(self._results(instruction)) if instruction.guard is None else {}
        self.invalidate(instruction)
        self.constants |= results

    def invalidate(self, instruction: Instruction) -> None:
        """Drops the constants of the registers that an instruction writes, as some threads execute
        it."""
        for register in writes(instruction):
            self.constants.pop(register, None)

    def _results(self, instruction: Instruction) -> Iterator[tuple[Register, int]]:
        """Yields the registers that get a constant from an instruction, with that constant;
        registers of another width than the result are left out."""
        count = len(instruction.operation.spec.destinations)
        targets, sources = (
            tuple(flatten_operands(o))
            for o in (instruction.operands[:count], instruction.operands[count:])
        )
        for target, (type, value) in zip(targets, self._values(instruction, sources), strict=False):
            if isinstance(target, Register) and target.type.bits == type.bits and value is not None:
                yield target, value

    def _values(
        self, instruction: Instruction, sources: tuple[Operand, ...]
    ) -> list[tuple[ScalarType, int | None]]:
        """Returns the type of each result of an instruction, with its value if that is constant,
        else None; empty for instructions that do not compute."""
        if instruction.operation.kind is OpKind.MOVE:
            type = instruction.operation.modifiers.scalar()
            return [(type, self.operand(source, type).constant) for source in sources]
        if not computes(instruction):
            return []
        shapes = self.terms(instruction)
        terms = instruction.operation.terms_for(len(sources))
        return [(term.type, shapes.constant(term)) for term in terms]


class _BlockExecution:
    """Executes the control flow of a program that all threads of a block have in common, with
    constants for what the block's size determines."""

    def __init__(self, program: Program, search: WarpLoopSearch, size: Size | None) -> None:
        """Begins at the entry, with constants for the block's `size` only (None: of unknown
        size)."""
        self.program, self._search = program, search
        operand_shapes = search.operand_shapes
        self._constants = _ConstantOperands(
            program, operand_shapes.warp_layout, operand_shapes.shapes, size
        )

    def parts(self) -> Iterator[tuple[int | None, tuple[int, ...], Mapping[int, bool]]]:
        """Yields, for each barrier (`is_waiting_barrier`) or unguarded exit that is executed: the
        block at whose end the previous barrier is (None: the entry), the blocks since then, and the
        uniform branches among them with whether they are taken. Stops where the path is unknown, or
        at a block that is visited twice between barriers."""
        site, at, path, choices = None, 0, list[int](), dict[int, bool]()
        # A block that is visited twice without a barrier between is in a loop, which no warp loop
        # covers.
        while at != self.program.exit and at not in path:
            block = self.program.blocks[at]
            path.append(at)
            # Before the branch is decided: its guard is mostly computed in its own block.
            self._execute(block)
            last = self.program.terminator(block)
            following = self._next_block(block, choices)
            if is_waiting_barrier(last) or is_unguarded_exit(last):
                yield site, tuple(path), choices
                # New containers: the consumer keeps the dictionary that was yielded.
                site, path, choices = at, [], {}
            if following is None:
                return
            at = following

    def _execute(self, block: ProgramBlock) -> None:
        """Updates the constants of registers for all instructions of a block."""
        for instruction in self.program.instructions[block.start : block.stop]:
            self._constants.execute(instruction)

    def _next_block(self, block: ProgramBlock, choices: dict[int, bool]) -> int | None:
        """Returns the next block that all threads execute. After a block that falls through or ends
        with an unguarded branch, barrier (`is_waiting_barrier`) or exit, that is its successor. At
        a uniform branch it is the side that the constant guard decides; adds that decision to
        `choices`. At an `if` without `else` that depends on the thread, it is the reconvergence
        point; drops the constants of the registers that the body writes. None elsewhere, as at a
        guarded exit, another barrier or a uniform branch without a constant guard."""
        last, index = self.program.terminator(block), block.index
        if is_waiting_barrier(last) or is_unguarded_exit(last):
            return block.successors[-1]
        if len(block.successors) == 1:
            falls_through = last.operation.kind is OpKind.BRANCH or not last.operation.has(
                Effect.ENDS_BASIC_BLOCK
            )
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
        # Some threads run the body and some do not, so what it writes is no constant of the block.
        # The same holds for a guarded instruction (`execute`).
        body = self.program.blocks[self._search.if_bodies[index]]
        for instruction in self.program.instructions[body.start : body.stop]:
            self._constants.invalidate(instruction)
        return self.program.reconvergence[index]
