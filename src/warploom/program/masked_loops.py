"""Finds regions that lanes leave separately, to wait at the exit for the others: loops, and blocks
that a branch skips. Emitted code runs them under a mask of the lanes that are still inside.

    loop: add.s32 %r1, %r1, 1;       header
          setp.ge.s32 %p1, %r1, %r2;
          @%p1 bra done;             lanes leave in different iterations
          ...                        written by lanes that stay, after others have left
          bra loop;
    done: st.global.u32 [%rd1], %r1;     point

The lanes that are still inside have all taken the same path, so that registers retain their shapes
there: the region runs under a mask instead of by the SIMT stack. Of lanes that left, only registers
that are live at the exit need to be merged. Not handled: regions with several entries, or exits to
different blocks, and regions whose instructions wait for other lanes or read them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from warploom.isa.instruction import Instruction, Register
from warploom.isa.kinds import Effect, OpKind
from warploom.isa.spec import Unit
from warploom.program.program import Program
from warploom.program.regions import natural_loops, predecessors
from warploom.program.uses import may_wait_before, writes

LONGEST_PREDICATED_BLOCK = 24
"""Instructions of a single block after a branch that is emitted under a mask
(`analysis.predicated_blocks`), at most."""


@dataclass(frozen=True)
class MaskedRegion:
    """A region with one entry, whose exits all lead to one block; emitted code runs it under a mask
    of the lanes that are still inside.

    `blocks` are entered at `header`; those in `exits` have a successor outside, block `point`.
    `written` are the registers that are written where some lanes may have left already, `merged`
    those of them that are live at `point`."""

    header: int
    blocks: frozenset[int]
    exits: frozenset[int]
    point: int
    written: frozenset[Register]
    merged: frozenset[Register]


def masked_regions(program: Program) -> tuple[MaskedRegion, ...]:
    """Returns the masked regions of a program, those of more blocks first. They are natural loops,
    or blocks that a branch skips, which have one entry, whose exits all lead to one later block
    that is not the program's end, and in which no instruction waits for other lanes or reads them
    (`_masked_region`). A region inside another one with the same exit is left out. There are none
    in programs with calls that are not inlined."""
    if program.depth is not None:
        return ()
    before = predecessors(program)
    candidates = [*natural_loops(program, before).items(), *_skipped_regions(program)]
    candidate_regions = (
        _masked_region(program, before, header, blocks) for header, blocks in candidates
    )
    regions = sorted(
        (region for region in candidate_regions if region),
        key=lambda region: -len(region.blocks),
    )
    # Two masks for one exit would be merged one after the other at the same point, for nothing.
    outermost: list[MaskedRegion] = []
    for region in regions:
        if not any(
            region.blocks <= other_region.blocks and region.point == other_region.point
            for other_region in outermost
        ):
            outermost.append(region)
    return tuple(outermost)


def _skipped_regions(program: Program) -> Iterator[tuple[int, set[int]]]:
    """Yields (branch block, blocks of the region) for each two-way branch that may skip blocks: one
    of its successors is its reconvergence point (not the exit). The region is the branch's block
    and those on paths from it to that point. A single block of at most LONGEST_PREDICATED_BLOCK
    instructions is left out: it is if-converted."""
    for block in program.blocks:
        point = program.reconvergence[block.index]
        if len(block.successors) != 2 or point not in block.successors or point == program.exit:
            continue
        inside = blocks_between(program, block.successors, point)
        lengths = [
            program.blocks[skipped].stop - program.blocks[skipped].start for skipped in inside
        ]
        if inside and (len(inside) > 1 or lengths[0] > LONGEST_PREDICATED_BLOCK):
            # With the branch's own block, at whose end lanes leave: it is the header and an exit.
            yield block.index, {block.index, *inside}


def _masked_region(
    program: Program, predecessor_lists: list[list[int]], header: int, blocks: set[int]
) -> MaskedRegion | None:
    """Returns the masked region with a header and blocks, given the predecessors of each block.
    None if it can be entered elsewhere, if its exits lead to several blocks or none, back in
    program order or to the program's end, or if an instruction of it is not
    `_is_lane_independent`."""
    single_entry = all(blocks.issuperset(predecessor_lists[block]) for block in blocks - {header})
    out = [(b, to) for b in blocks for to in program.blocks[b].successors if to not in blocks]
    points = {to for _, to in out}
    # The program enters block 0 without an edge, so that a region with it has another entry, unless
    # block 0 is the header.
    if (0 in blocks and header) or not single_entry or len(points) != 1:
        return None
    point = points.pop()
    # Exits must go forward in program order: else `point` may be reached before the region.
    forward = all(block < point for block, _ in out)
    if (
        point == program.exit
        or not forward
        or not all(map(_is_lane_independent, _instructions_of(program, blocks)))
    ):
        return None
    exits = frozenset(block for block, _ in out)
    written = written_after_exits(program, blocks, exits)
    merged = written & program.live_in[point]
    return MaskedRegion(header, frozenset(blocks), exits, point, written, merged)


def written_after_exits(
    program: Program, blocks: Collection[int], exits: frozenset[int]
) -> frozenset[Register]:
    """Returns the registers that a region writes in blocks that lanes may execute after others have
    left at one of its exit blocks `exits`."""
    instructions = _instructions_of(program, _after_exits(program, blocks, exits))
    return frozenset(register for instruction in instructions for register in writes(instruction))


def _after_exits(program: Program, blocks: Collection[int], exits: frozenset[int]) -> set[int]:
    """Returns the blocks of a region to which paths inside it lead from its exit blocks `exits`:
    lanes may execute them after others have left. What is written before the first exit, all lanes
    have written: an index that is computed and then compared retains its shape."""
    blocks_after: set[int] = set()
    pending = [to for block in exits for to in program.blocks[block].successors if to in blocks]
    while pending:
        block = pending.pop()
        if block not in blocks_after:
            blocks_after.add(block)
            pending.extend(to for to in program.blocks[block].successors if to in blocks)
    return blocks_after


def _instructions_of(program: Program, blocks: Iterable[int]) -> Iterable[Instruction]:
    """Yields the instructions of some blocks, in program order."""
    for index in sorted(blocks):
        block = program.blocks[index]
        yield from program.instructions[block.start : block.stop]


def _is_lane_independent(instruction: Instruction) -> bool:
    """Returns whether an instruction can be in a masked region: it neither waits for other lanes
    nor reads them, ends no thread, and is no indexed branch."""
    operation = instruction.operation
    if may_wait_before(instruction) or operation.spec.unit in (Unit.WARP, Unit.MATRIX):
        return False
    return operation.kind is OpKind.BRANCH or not operation.has(Effect.ENDS_BASIC_BLOCK)


def blocks_between(program: Program, starts: tuple[int, ...], point: int) -> set[int]:
    """Returns the blocks that are reachable from `starts` (included) without passing through
    `point` or the program's exit, both left out."""
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
