"""Regions that lanes leave one by one, to wait behind them for the others: loops, and what a branch
jumps over.

The lanes that are still inside have all gone the same way, so what they compute has its shape
there. Of those that have left, only what is read behind the region matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from warploom.analysis.regions import natural_loops, predecessors
from warploom.isa.spec import Unit
from warploom.program.program import Program
from warploom.program.uses import may_wait_before, writes
from warploom.ptx.ir import Instruction, Register

LONGEST_PREDICATED_BLOCK = 24
"""Instructions of a single block behind a branch that is worth a version of its own, under a mask
(`analysis.predicated_blocks`)."""


@dataclass(frozen=True)
class MaskedRegion:
    """Blocks with one way in, from which every way out leads to one place.

    `blocks` are entered at `header`, `exits` are those of them that lead out, to block `point`.
    `written` are the registers that are written where some lanes may have left, `kept` those of
    them that may be read behind.
    """

    header: int
    blocks: frozenset[int]
    exits: frozenset[int]
    point: int
    written: frozenset[Register]
    kept: frozenset[Register]


def masked_regions(program: Program) -> tuple[MaskedRegion, ...]:
    """Return such regions, each before those inside of it, which lead elsewhere. In none of them do
    lanes wait for others, or look at what others hold: those may have left."""
    if program.depth is not None:
        return ()
    before = predecessors(program)
    candidates = [*natural_loops(program, before).items(), *_skipped_regions(program)]
    found = (_region(program, before, header, blocks) for header, blocks in candidates)
    regions = sorted((one for one in found if one), key=lambda region: -len(region.blocks))
    kept: list[MaskedRegion] = []
    for region in regions:
        if not any(region.blocks <= one.blocks and region.point == one.point for one in kept):
            kept.append(region)
    return tuple(kept)


def _skipped_regions(program: Program) -> Iterator[tuple[int, set[int]]]:
    """Yield the blocks at whose ends some lanes may go straight to where all meet, with the blocks
    that the others come through. What is run under a mask is left out."""
    for block in program.blocks:
        point = program.reconvergence[block.index]
        if len(block.successors) != 2 or point not in block.successors or point == program.exit:
            continue
        inside = blocks_between(program, block.successors, point)
        lengths = [program.blocks[one].stop - program.blocks[one].start for one in inside]
        if inside and (len(inside) > 1 or lengths[0] > LONGEST_PREDICATED_BLOCK):
            yield block.index, {block.index, *inside}


def _region(
    program: Program, before: list[list[int]], header: int, blocks: set[int]
) -> MaskedRegion | None:
    """Returns what is known of a region; None if it is not such a one."""
    one_way_in = all(blocks.issuperset(before[block]) for block in blocks - {header})
    out = [(b, to) for b in blocks for to in program.blocks[b].successors if to not in blocks]
    points = {to for _, to in out}
    if (0 in blocks and header) or not one_way_in or len(points) != 1:
        return None
    point = points.pop()
    forward = all(block < point for block, _ in out)
    if (
        point == program.exit
        or not forward
        or not all(map(_is_lane_independent, _instructions_of(program, blocks)))
    ):
        return None
    exits = frozenset(block for block, _ in out)
    after = _after_exits(program, blocks, exits)
    written = frozenset(
        register
        for instruction in _instructions_of(program, after)
        for register in writes(instruction)
    )
    kept = written & program.live_in[point]
    return MaskedRegion(header, frozenset(blocks), exits, point, written, kept)


def _after_exits(program: Program, blocks: set[int], exits: frozenset[int]) -> set[int]:
    """Returns the blocks of a region that lanes may run after others have left. What is written
    before, all lanes have: an index that is computed and then compared keeps its shape."""
    found: set[int] = set()
    pending = [to for block in exits for to in program.blocks[block].successors if to in blocks]
    while pending:
        block = pending.pop()
        if block not in found:
            found.add(block)
            pending.extend(to for to in program.blocks[block].successors if to in blocks)
    return found


def _instructions_of(program: Program, blocks: Iterable[int]) -> Iterable[Instruction]:
    for index in sorted(blocks):
        block = program.blocks[index]
        yield from program.instructions[block.start : block.stop]


def _is_lane_independent(instruction: Instruction) -> bool:
    """Returns whether an instruction neither waits for other lanes nor looks at them, and goes on
    in the program."""
    if may_wait_before(instruction) or instruction.operation.name in ("brx", "ret", "exit", "trap"):
        return False
    return instruction.operation.spec.unit not in (Unit.BARRIER, Unit.WARP, Unit.MATRIX)


def blocks_between(program: Program, starts: tuple[int, ...], point: int) -> set[int]:
    """Return the blocks that ways lead through before they come to a point."""
    seen: set[int] = set()
    pending = [block_index for block_index in starts if block_index not in (point, program.exit)]
    while pending:
        block = pending.pop()
        if block not in seen:
            seen.add(block)
            further = program.blocks[block].successors
            pending.extend(
                block_index for block_index in further if block_index not in (point, program.exit)
            )
    return seen
