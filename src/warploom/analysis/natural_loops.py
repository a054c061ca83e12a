"""Finds the natural loops of a program, and the predecessors of its blocks.

0: mov.u32 %r1, 0;
1: ...; @%p1 bra 3;
2: ...; bra 1;           a loop with header 1: blocks 1, 2
3: ret;"""

from __future__ import annotations

from collections.abc import Mapping

from warploom.program.program import Program


def predecessors(program: Program) -> list[list[int]]:
    """Returns the predecessors of each block, those of the virtual exit last."""
    before: list[list[int]] = [[] for _ in range(program.exit + 1)]
    for block in program.blocks:
        for to in block.successors:
            before[to].append(block.index)
    return before


def natural_loops(program: Program, before: list[list[int]]) -> Mapping[int, set[int]]:
    """Returns the blocks of natural loops by their headers (Aho, Lam, Sethi, Ullman, "Compilers",
    9.6.6); loops with one header are one loop. An edge to the same or an earlier block, in the
    order of the program, is a back edge. `before` are the predecessors."""
    inside: dict[int, set[int]] = {}
    for block in program.blocks:
        for header in block.successors:
            if header <= block.index:
                inside.setdefault(header, {header}).update(_loop_body(before, header, block.index))
    return inside


def _loop_body(before: list[list[int]], header: int, last: int) -> set[int]:
    """Returns the blocks that lead to block `last`, the source of a back edge, without passing the
    loop's header, which is left out."""
    seen: set[int] = set()
    pending = [last]
    while pending:
        at = pending.pop()
        if at != header and at not in seen:
            seen.add(at)
            pending.extend(before[at])
    return seen
