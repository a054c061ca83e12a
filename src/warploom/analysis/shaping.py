"""The shapes of a program's registers where all living lanes run together.

They are a fixed point over the writers of a register, whatever way leads from one to the other.
Where lanes part and meet again, those that took one way may hold other values than those that took
the other, or have been round a loop more often: what a side writes and is read behind the meeting
has no shape from there on, until it is written anew (Coutinho et al., "Divergence Analysis and
Optimizations", 2011, on sync and temporal divergence). Inside of a region that lanes leave
one by one it has: those that are still there have gone the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warploom.analysis.cfg import splits
from warploom.analysis.leavings import Region, between, regions_to_leave
from warploom.analysis.program import Block, Program
from warploom.analysis.shapes import BLOCK_WIDE, Formation, Reading, Shapes
from warploom.analysis.strides import UNIFORM, VECTOR, Shape
from warploom.analysis.uses import reads, writes
from warploom.core.types import U32
from warploom.ptx.ir import Instruction, Register

Loose = list[set[Register]]
"""By block, the registers that have no shape there."""


def shapes_of(
    program: Program, formation: Formation, regions: tuple[Region, ...] | None = None
) -> Shapes:
    """Return the shapes of a program's registers in a launch whose warps are formed so. What is
    known of a whole block is so everywhere: some of its threads may be anywhere else. `regions`:
    those that lanes can leave one by one; None for all (`analysis.leavings`). Registers come in the
    order of their declarations."""
    alike = formation in BLOCK_WIDE
    if alike:
        regions = ()
    elif regions is None:
        regions = regions_to_leave(program)
    loose: Loose = [set() for _ in program.blocks]
    while True:
        shapes = _fixed_point(program, formation, loose)
        left: list[Region] = []
        met = list(_met_apart(program, formation, shapes, loose, regions, left))
        if alike:
            everywhere = {register for _, register in met}
            met = [(block.index, r) for block in program.blocks for r in everywhere]
        if all(register in loose[block] for block, register in met):
            break
        _loosen(program, loose, met)
    known = {r: shapes[r] for r in program.registers if r in shapes and shapes[r].is_known}
    apart = tuple(frozenset(known.keys() & here) for here in loose)
    if alike:
        known = {r: s for r, s in known.items() if not any(r in here for here in loose)}
        apart = ()
    return Shapes(known, apart, tuple(left))


def _fixed_point(program: Program, formation: Formation, loose: Loose) -> dict[Register, Shape]:
    """Returns what all writers of each register give together. Registers begin as zeros."""
    begun = program.live_in[0] if program.live_in else frozenset[Register]()
    shapes: dict[Register, Shape] = dict.fromkeys(begun, UNIFORM)
    reading = Reading(program, formation, shapes)
    pending = True
    while pending:
        pending = False
        for block in program.blocks:
            apart = loose[block.index]
            kept = {register: shapes[register] for register in apart if register in shapes}
            shapes.update(dict.fromkeys(apart, VECTOR))
            for made in program.instructions[block.start : block.stop]:
                if _is_reached(made, shapes):
                    pending |= _join(shapes, reading.results(made), apart)
            for register in apart:
                del shapes[register]
            shapes.update(kept)
    return shapes


def _is_reached(made: Instruction, shapes: dict[Register, Shape]) -> bool:
    """Returns whether something is known by now of all registers that an instruction reads."""
    return all(register in shapes for register in reads(made))


def _join(
    shapes: dict[Register, Shape],
    results: Iterable[tuple[Register, Shape]],
    apart: set[Register],
) -> bool:
    """Add what an instruction gives to what is known; answers whether that changes."""
    changed = False
    for register, shape in results:
        old = shapes.get(register)
        new = shape if old is None else old.join(shape)
        if new != old and register not in apart:
            shapes[register] = new
            changed = True
    return changed


def _loosen(program: Program, loose: Loose, met: Iterable[tuple[int, Register]]) -> None:
    """Registers have no shape from blocks on to wherever they are read without being written."""
    pending = list(met)
    while pending:
        at, register = pending.pop()
        if register not in loose[at]:
            loose[at].add(register)
            ways = program.blocks[at].successors
            further = (way for way in ways if way != program.exit)
            pending.extend((way, register) for way in further if register in program.live_in[way])


def _met_apart(
    program: Program,
    formation: Formation,
    shapes: dict[Register, Shape],
    loose: Loose,
    regions: tuple[Region, ...],
    left: list[Region],
) -> Iterator[tuple[int, Register]]:
    """Yield the registers that lanes write apart and read together, and where they have no shape
    therefore. Those of `regions` that lanes leave one by one are added to `left`."""
    parting = [
        block for block in program.blocks if _parts(program, formation, shapes, loose, block)
    ]
    apart = {block.index for block in parting}
    left.extend(one for one in regions if not apart.isdisjoint(one.exits))
    for block in parting:
        point = program.reconvergence[block.index]
        if point == program.exit:
            continue
        region = next((one for one in left if block.index in one.exits), None)
        if region is not None:
            yield from ((point, register) for register in region.kept)
            continue
        inside = between(program, block.successors, point)
        made = (one for i in inside for one in _made(program, program.blocks[i]))
        written = {register for one in made for register in writes(one)}
        for register in written & program.live_in[point]:
            yield from ((index, register) for index in (*inside, point))


def _made(program: Program, block: Block) -> tuple[Instruction, ...]:
    return program.instructions[block.start : block.stop]


def _parts(
    program: Program,
    formation: Formation,
    shapes: dict[Register, Shape],
    loose: Loose,
    block: Block,
) -> bool:
    """Returns whether lanes may go different ways at the end of a block."""
    last = program.instructions[block.stop - 1]
    if not splits(last):
        return False
    here = {r: shapes[r] for r in reads(last) if r in shapes and r not in loose[block.index]}
    reading = Reading(program, formation, here)
    agrees = reading.guard(last) == UNIFORM
    if last.operation.name == "brx":
        return not agrees or reading.shape(last.operands[0], U32) != UNIFORM
    return not agrees
