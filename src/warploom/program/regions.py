"""Builds the region tree of a program, which the text of the Warp IR shows: its loops, and within
these the parts between barriers of the thread block.

    0: mov.u32 %r1, 0;       KERNEL
    1: bar.sync 0;             PART 0, 1
    2: ...; @%p bra 2;         PART 3
    3: ret;                      LOOP 2"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from warploom.isa.spec import Unit
from warploom.program.dominance import does_dominate, dominators
from warploom.program.program import Program


class RegionKind(Enum):
    """Names the kinds of regions. KERNEL: the whole program. LOOP: a natural loop. PART: blocks
    connected without a barrier; a region that contains a barrier consists of parts."""

    KERNEL = "kernel"
    LOOP = "loop"
    PART = "part"


@dataclass(frozen=True)
class Region:
    """A region: the `blocks` that are in none of its `inner` regions, and those regions."""

    kind: RegionKind
    blocks: tuple[int, ...]
    inner: tuple[Region, ...] = ()

    @property
    def all_blocks(self) -> frozenset[int]:
        """Returns the blocks of the region and of its inner regions."""
        return frozenset(self.blocks).union(*(region.all_blocks for region in self.inner))


def regions(program: Program) -> Region:
    """Returns the region tree of a program: its loops and, in a region with a block barrier, the
    parts between barriers. Of loops that overlap without being nested (irreducible control flow)
    only the one of the most blocks is a region."""
    return _LoopNest(program).region(RegionKind.KERNEL, frozenset(range(program.exit)), None)


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
            # Without a test that the header dominates: an edge backwards into the middle of a loop,
            # of irreducible control flow, is taken for a loop as well. (`masked_regions` tests
            # that a loop has no other entry.)
            if header <= block.index:
                inside.setdefault(header, {header}).update(_loop_body(before, header, block.index))
    return inside


def dominated_loops(program: Program) -> Mapping[int, set[int]]:
    """Returns the blocks of natural loops by their headers, which lie on all paths to them; loops
    with one header are one loop. Unlike for `natural_loops`, the header may be in the middle of a
    loop's text, where code jumps into it. Edges backwards in irreducible control flow are taken for
    loops as well."""
    before, inside = predecessors(program), dict[int, set[int]]()
    graph = [list(block.successors) for block in program.blocks] + [[]]
    immediate = dominators(graph)
    edges = [
        (block.index, to)
        for block in program.blocks
        if block.index in immediate
        for to in block.successors
    ]
    back = {edge for edge in edges if does_dominate(immediate, edge[1], edge[0])}
    left = [edge for edge in edges if edge not in back]
    back |= {(at, to) for at, to in _in_cycles(left) if to <= at}
    for at, header in sorted(back):
        inside.setdefault(header, {header}).update(_loop_body(before, header, at))
    return inside


def _in_cycles(edges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns those of some edges that may be in cycles: none if there is no cycle."""
    while True:
        targets = {to for _, to in edges}
        left = [edge for edge in edges if edge[0] in targets]
        if len(left) == len(edges):
            return left
        edges = left


def _loop_body(before: list[list[int]], header: int, last: int) -> set[int]:
    """Returns the blocks that lead to block `last`, the source of a back edge (itself included),
    without passing the loop's header, which is left out."""
    seen: set[int] = set()
    pending = [last]
    while pending:
        at = pending.pop()
        if at != header and at not in seen:
            seen.add(at)
            pending.extend(before[at])
    return seen


class _LoopNest:
    """The loops of a program by header, any two of them nested or disjoint; builds its region
    tree."""

    def __init__(self, program: Program) -> None:
        """Finds the natural loops of a program, and leaves out loops that overlap a larger one
        without being nested in it."""
        self._program = program
        loops = natural_loops(program, predecessors(program)).items()
        self._loops: dict[int, frozenset[int]] = {}
        # The largest first: of loops that overlap without being nested, it is retained.
        for header, blocks in sorted(loops, key=lambda loop: (-len(loop[1]), loop[0])):
            if all(
                blocks <= larger_loop or blocks.isdisjoint(larger_loop)
                for larger_loop in self._loops.values()
            ):
                self._loops[header] = frozenset(blocks)

    def region(self, kind: RegionKind, blocks: frozenset[int], header: int | None) -> Region:
        """Returns the region of some blocks: its outermost loops as inner regions, and the blocks
        that are in none of them. If one of `blocks` ends with a barrier, it has no blocks of its
        own, and the inner regions are those of `_parts`. `header` is that of the loop that the
        region is, None for others."""
        inner = [
            self.region(RegionKind.LOOP, self._loops[loop_header], loop_header)
            for loop_header in self._outermost(blocks, header)
        ]
        inside = frozenset[int]().union(*(region.all_blocks for region in inner))
        if any(self._ends_with_barrier(index) for index in blocks):
            return Region(kind, (), tuple(self._parts(blocks, header, inner)))
        return Region(kind, tuple(sorted(blocks - inside)), tuple(inner))

    def _outermost(self, blocks: frozenset[int], header: int | None) -> list[int]:
        """Returns the headers of the loops in a region that are in no other loop of it, in order;
        `header` is the region's own loop, which is left out."""
        inside = [h for h, loop in self._loops.items() if loop <= blocks and h != header]
        return sorted(
            h for h in inside if not any(h in self._loops[outer] for outer in inside if outer != h)
        )

    def _parts(
        self, blocks: frozenset[int], header: int | None, loops: Iterable[Region]
    ) -> list[Region]:
        """Returns the inner regions of a region with a barrier, in program order: those of its
        `loops` that contain a barrier, and the parts that the other blocks form, with the other
        loops in them."""
        split = [loop for loop in loops if any(map(self._ends_with_barrier, loop.all_blocks))]
        whole = [loop for loop in loops if loop not in split]
        rest = blocks.difference(*(loop.all_blocks for loop in split))
        parts = list[Region]()
        for part in self._connected(rest, header):
            inner = tuple(loop for loop in whole if loop.all_blocks <= part)
            own = part.difference(*(loop.all_blocks for loop in inner))
            parts.append(Region(RegionKind.PART, tuple(sorted(own)), inner))
        return sorted((*parts, *split), key=lambda region: min(region.all_blocks))

    def _connected(self, blocks: frozenset[int], header: int | None) -> Iterator[frozenset[int]]:
        """Yields the connected components of blocks, the parts between barriers: edges after
        barriers and those back to the header of the loop do not connect."""
        neighbours: dict[int, set[int]] = {index: set() for index in blocks}
        for index in blocks:
            for to in (
                () if self._ends_with_barrier(index) else self._program.blocks[index].successors
            ):
                # The header is where the next iteration begins: over that edge the part before the
                # first barrier and the one after the last would be one.
                if to in blocks and to != header:
                    neighbours[index].add(to)
                    neighbours[to].add(index)
        left = set(blocks)
        while left:
            component, pending = set[int](), [min(left)]
            while pending:
                at = pending.pop()
                if at not in component:
                    component.add(at)
                    pending.extend(neighbours[at])
            left -= component
            yield frozenset(component)

    def _ends_with_barrier(self, index: int) -> bool:
        """Returns whether a basic block ends with a barrier instruction (`Unit.BARRIER`: of the
        thread block, its warp groups or the cluster; arrivals included)."""
        last = self._program.instructions[self._program.blocks[index].stop - 1]
        return last.operation.spec.unit is Unit.BARRIER
