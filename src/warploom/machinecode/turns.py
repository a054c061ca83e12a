"""Ties the loops of machine code to those of the PTX, from which they have as many turns.

A flow that only keeps what comes into each block can go round a loop that it never enters. The
counts determine how often each loop of the PTX was entered, and how many turns were made.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from warploom.machinecode.evidence import ANCHOR, Evidence, Executions
from warploom.machinecode.graph import Node
from warploom.machinecode.loops import Loop, loops_of, ptx_loops
from warploom.machinecode.unrolled import Uses, uses_of
from warploom.program.program import Program, Site


@dataclass(frozen=True)
class LoopMatch:
    """Loops of machine code (`made`, their nodes) that were made for a loop of the PTX, which
    begins at `head`, in all copies of its function; and the evidence of its own instructions.
    `exit` is the branch by which it is left, None where there are several."""

    head: Site
    made: tuple[frozenset[int], ...]
    evidence: tuple[Evidence, ...]
    exit: Site | None


@dataclass(frozen=True)
class Turns:
    """Holds what was counted of a loop: how often it was entered, and the turns, which all loops in
    `made` together have: of each the nodes that do turns, and how many."""

    entered: float
    turns: float
    made: tuple[frozenset[int], ...]
    copies: Mapping[int, int]
    more: bool
    """An entry has more turns, in the mean, than stand outside of these loops."""
    unrolled: Mapping[int, int] = field(default_factory=dict[int, int])
    """Of a loop that ptxas unrolled the nodes by how many turns each does."""
    uses: Uses | None = None
    """The executions of those nodes."""


def match_loops(
    program: Program, nodes: Sequence[Node], evidence: Sequence[Evidence]
) -> tuple[LoopMatch, ...]:
    """Returns the loops of machine code by the loop of the PTX that most of their own evidence is
    from."""
    ptx = {
        site: _head(program, loop)
        for loop in ptx_loops(program)
        for site in _sites(program, loop.nodes)
    }  # inner ones come last, and stay
    loops = loops_of([node.successors for node in nodes])
    innermost = {node: number for number, loop in enumerate(loops) for node in loop.nodes}
    votes: dict[int, Counter[Site]] = defaultdict(Counter)
    anchored: dict[int, set[Site]] = defaultdict(set)
    for row in evidence:
        for node in row.copies:
            if row.site in ptx and node in innermost:
                votes[innermost[node]][ptx[row.site]] += round(row.weight)
                if row.weight >= ANCHOR:
                    anchored[innermost[node]].add(ptx[row.site])
    around = _outer_heads(program)
    made: dict[Site, list[frozenset[int]]] = defaultdict(list)
    for number in sorted(votes):
        head = votes[number].most_common(1)[0][0]
        # An inner loop has no anchors of the loop around it, which may have copies of its own.
        head = next((outer for outer in around[head] if outer in anchored[number]), head)
        if not any(loops[number].nodes < other for other in made[head]):
            made[head].append(loops[number].nodes)
    exits = {_head(program, loop): _exit(program, loop) for loop in ptx_loops(program)}
    return tuple(
        LoopMatch(
            head,
            tuple(found),
            tuple(row for row in evidence if ptx.get(row.site) == head),
            exits[head],
        )
        for head, found in made.items()
    )


def _outer_heads(program: Program) -> dict[Site, list[Site]]:
    """Returns, by the head of a loop of a program, those of the loops around it, the outermost
    first."""
    loops = ptx_loops(program)
    return {
        _head(program, loop): [_head(program, one) for one in loops if loop.nodes < one.nodes]
        for loop in loops
    }


def _exit(program: Program, loop: Loop) -> Site | None:
    """Returns the branch by which a loop of a program is left, None where there are several."""
    ends = {
        program.sites[program.blocks[block].stop - 1]
        for block in loop.nodes
        if not loop.nodes.issuperset(program.blocks[block].successors)
    }
    return ends.pop() if len(ends) == 1 else None


def turns_of(
    match: LoopMatch,
    entered: float | None,
    by_site: Mapping[Site, int],
    divergent: Mapping[Site, int],
) -> Turns | None:
    """Returns what was counted of a loop; None where that is not known."""
    turns = by_site[match.head]
    if not entered or not turns:
        return None
    every = (row for row in match.evidence if row.of is Executions.ALL)
    always = [row for row in every if by_site[row.site] == turns]
    if not always:
        return None
    inside = frozenset[int]().union(*match.made)
    chosen = max(always, key=lambda row: row.weight)
    copies = {node: count for node, count in chosen.copies.items() if node in inside}
    outside = sum(chosen.copies.values()) - sum(copies.values())
    more = turns > outside * entered
    found = Turns(entered, turns, match.made, copies, more)
    unrolled = {size: node for node, size in chosen.copies.items()}
    if match.exit is None or not 1 < len(unrolled) == len(chosen.copies) or 1 not in unrolled:
        return found
    uses = uses_of([*unrolled], entered, turns, divergent[match.exit])
    return replace(found, unrolled=unrolled, uses=uses)


def entries_of(
    program: Program, warps: Sequence[int], divergent: Sequence[int]
) -> dict[Site, float | None]:
    """Returns how often each loop of the PTX was entered, by its first instruction; None where
    counts of blocks do not determine it. `warps` and `divergent` are counts by instruction."""
    blocks = program.blocks
    before: dict[int, list[int]] = defaultdict(list)
    for block in blocks:
        for to in block.successors:
            before[to].append(block.index)

    def through(start: int, to: int) -> float | None:
        block = blocks[start]
        count = warps[block.stop - 1]
        others = [other for other in block.successors if other != to]
        if not others:
            return count
        [other, *more] = others
        if more or before[other] != [start] or other >= len(blocks):
            return None
        return count + divergent[block.stop - 1] - warps[blocks[other].start]

    found: dict[Site, float | None] = {}
    for loop in ptx_loops(program):
        head = _head(program, loop)
        edges = [
            through(one, to) for to in loop.heads for one in before[to] if one not in loop.nodes
        ]
        known = [edge for edge in (*edges, found.get(head, 0.0)) if edge is not None]
        found[head] = sum(known) if len(known) == len(edges) + 1 else None
    return found


def _head(program: Program, loop: Loop) -> Site:
    """Returns the first instruction of a loop of a program."""
    return program.sites[program.blocks[min(loop.heads)].start]


def _sites(program: Program, blocks: frozenset[int]) -> list[Site]:
    spans = (program.blocks[number] for number in blocks)
    return [program.sites[index] for block in spans for index in range(block.start, block.stop)]
