"""Loops that lanes leave one by one, to wait behind them for the others.

The lanes that are still inside have all been round as often, so what they compute has its shape
there. Of those that have left, only what is read behind the loop matters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from warploom.analysis.program import Program
from warploom.analysis.uses import waits_before, writes
from warploom.isa.spec import Unit
from warploom.ptx.ir import Instruction, Register


@dataclass(frozen=True)
class Loop:
    """A loop with one way in, from which every way out leads to one place.

    `blocks` are entered at `header`, `exits` are those of them that lead out, to block `point`.
    `written` are the registers that are written inside, `kept` those of them that may be read
    behind.
    """

    header: int
    blocks: frozenset[int]
    exits: frozenset[int]
    point: int
    written: frozenset[Register]
    kept: frozenset[Register]


def loops_to_leave(program: Program) -> tuple[Loop, ...]:
    """Return such loops, each before those inside of it. In none of them do lanes wait for others,
    or look at what others hold: those may have left."""
    if program.depth is not None:
        return ()
    before: list[list[int]] = [[] for _ in range(program.exit + 1)]
    for block in program.blocks:
        for to in block.successors:
            before[to].append(block.index)
    inside: dict[int, set[int]] = {}
    for block in program.blocks:
        for header in block.successors:
            if header <= block.index:
                inside.setdefault(header, {header}).update(_leading(before, header, block.index))
    found = (_loop(program, before, header, blocks) for header, blocks in inside.items())
    return tuple(sorted((loop for loop in found if loop), key=lambda loop: -len(loop.blocks)))


def _leading(before: list[list[int]], header: int, last: int) -> set[int]:
    """Return the blocks that lead to the last of a loop without passing its header."""
    seen: set[int] = set()
    pending = [last]
    while pending:
        at = pending.pop()
        if at != header and at not in seen:
            seen.add(at)
            pending.extend(before[at])
    return seen


def _loop(program: Program, before: list[list[int]], header: int, blocks: set[int]) -> Loop | None:
    """Returns what is known of a loop; None if it is not such a one."""
    one_way_in = all(blocks.issuperset(before[block]) for block in blocks - {header})
    out = [(b, to) for b in blocks for to in program.blocks[b].successors if to not in blocks]
    points = {to for _, to in out}
    if (0 in blocks and header) or not one_way_in or len(points) != 1:
        return None
    point = points.pop()
    ahead = all(block < point for block, _ in out)
    if point == program.exit or not ahead or not all(map(_is_plain, _made(program, blocks))):
        return None
    written = frozenset(register for made in _made(program, blocks) for register in writes(made))
    kept = written & program.live_in[point]
    return Loop(header, frozenset(blocks), frozenset(b for b, _ in out), point, written, kept)


def _made(program: Program, blocks: Iterable[int]) -> Iterable[Instruction]:
    for index in sorted(blocks):
        block = program.blocks[index]
        yield from program.instructions[block.start : block.stop]


def _is_plain(made: Instruction) -> bool:
    """Returns whether an instruction neither waits for other lanes nor looks at them, and goes on
    in the program."""
    if waits_before(made) or made.operation.name in ("brx", "ret", "exit", "trap"):
        return False
    return made.operation.spec.unit not in (Unit.BARRIER, Unit.WARP, Unit.MATRIX)
