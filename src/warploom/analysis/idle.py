"""Ways from one barrier of the block to the next, or to the end, on which warps have nothing to do.

In a tree reduction the threads from some number on only wait: `if (tid < stride) ...`; in the end
one of them writes the sum: `if (tid == 0) ...`. Where a warp goes past such a branch with all its
lanes, so do all warps behind it: the number of the thread only rises from warp to warp, and what it
is compared with is the same for the whole block. What they count on that way is known then, and
what they compute is what the first of them has computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from warploom.analysis.block_wide import (
    agrees,
    apart,
    comparison_of,
    is_quiet,
    last_of,
    waits_for_all,
    written_once,
)
from warploom.analysis.cfg import ENDS, splits
from warploom.analysis.program import Block, Program
from warploom.analysis.shapes import Formation, Reading
from warploom.analysis.shaping import shapes_of
from warploom.analysis.strides import UNIFORM
from warploom.analysis.uses import writes
from warploom.isa.spec import Unit
from warploom.ptx.ir import Immediate, Instruction, Register, Special

RISING = frozenset({"ge", "gt", "hs", "hi"})
"""Comparisons that, where they hold for a first operand, hold for all that are greater."""

_PAIRS = {"le": "ge", "lt": "gt", "ls": "hs", "lo": "hi"}
SWAPPED = _PAIRS | {b: a for a, b in _PAIRS.items()}
"""The comparison of the operands the other way round."""

_OPPOSITES = {"lt": "ge", "le": "gt", "lo": "hs", "ls": "hi", "eq": "ne"}
INVERSE = _OPPOSITES | {b: a for a, b in _OPPOSITES.items()}
"""The comparison that holds where the other does not."""


@dataclass(frozen=True)
class IdleWay:
    """The only way from behind the barrier at the end of block `site` to the branch at the end of
    block `branch`, on from there to block `past`, and straight to the barrier at the end of the
    last of `blocks`, which are all that it leads through; or to the end of the program, if it
    `ends`.

    `taken` are the guarded branches on it that are taken. `changed` are the registers that are
    written on it and read behind it: all threads of the block agree on each.
    """

    site: int
    branch: int
    past: int
    blocks: tuple[int, ...]
    taken: tuple[int, ...]
    changed: frozenset[Register]
    ends: bool


def idle_ways(program: Program, among: Iterable[int]) -> list[IdleWay]:
    """Return all such ways through some blocks, in launches whose blocks have all their threads
    along x."""
    return list(_Search(program, sorted(among)).ways()) if among else []


class _Search:
    """The search for the idle ways of one program: what it has found so far."""

    def __init__(self, program: Program, among: Sequence[int]) -> None:
        self.program, self.among = program, among
        agreed = shapes_of(program, Formation.BLOCK).known
        self.reading = Reading(program, Formation.BLOCK, agreed)
        self._numbers = _thread_numbers(program)

    def ways(self) -> Iterator[IdleWay]:
        blocks = self.program.blocks
        sites = {b.index for b in blocks if waits_for_all(self._last(b))}
        sites -= apart(self.program, self.reading)
        for site in sorted(sites):
            for block in (blocks[index] for index in self.among):
                before = self._only_way(blocks[site].successors[-1], block.index)
                for past in block.successors if before and splits(self._last(block)) else ():
                    after = self._straight_on(past)
                    if after and (after[-1] in sites or self._ends(after[-1])):
                        yield from self._idle(site, before, after)

    def _last(self, block: Block) -> Instruction:
        return last_of(self.program, block)

    # ---- ways -----------------------------------------------------------------------------------

    def _onward(self, index: int) -> list[int]:
        """Return the blocks behind a block, if it does not end with a barrier."""
        block = self.program.blocks[index]
        if self._last(block).operation.spec.unit is Unit.BARRIER:
            return []
        return [way for way in block.successors if way in self.among]

    def _before(self, index: int) -> list[int]:
        return [block for block in self.among if index in self._onward(block)]

    def _only_way(self, begin: int, end: int) -> tuple[int, ...]:
        """Return the blocks from one to another; none if there is no way, or more than one."""
        if begin not in self.among:
            return ()
        inside = _reached(begin, self._onward) & _reached(end, self._before)
        further = {block: [to for to in self._onward(block) if to in inside] for block in inside}
        single = all(len(ways) == int(block != end) for block, ways in further.items())
        if not inside or not single:
            return ()
        found = [begin]
        while found[-1] != end:
            found += further[found[-1]]
        return tuple(found)

    def _straight_on(self, begin: int) -> tuple[int, ...]:
        """Return the blocks from one to the next barrier or to the end, if nothing branches
        there."""
        found: list[int] = []
        while begin not in found and begin != self.program.exit:
            found.append(begin)
            block = self.program.blocks[begin]
            if waits_for_all(self._last(block)) or self._ends(begin):
                return tuple(found)
            if len(block.successors) != 1:
                return ()
            begin = block.successors[0]
        return ()

    def _ends(self, index: int) -> bool:
        """Returns whether a block ends the program, for all that come there."""
        block = self.program.blocks[index]
        waits = self._last(block).operation.spec.unit is Unit.BARRIER
        return not waits and block.successors == (self.program.exit,)

    def _idle(
        self, site: int, before: tuple[int, ...], after: tuple[int, ...]
    ) -> Iterator[IdleWay]:
        """Yield the way through the blocks before and after the branch, if a warp that goes it does
        nothing and all behind it do the same."""
        program, taken = self.program, list[int]()
        branch, past, blocks = before[-1], after[0], (*before, *after)
        for here, to in pairwise(blocks):
            block = program.blocks[here]
            last = self._last(block)
            if splits(last):
                goes = to == block.successors[0]
                known = self._rises(block, goes) if here == branch else agrees(self.reading, last)
                if not known or len(set(block.successors)) == 1:
                    return
                taken += [block.stop - 1] if goes else []
        if not all(self._goes_on(program.blocks[index]) for index in blocks[:-1]):
            return
        inside = [made for index in blocks for made in self._body(program.blocks[index])]
        behind = program.blocks[blocks[-1]].successors[-1]
        live = program.live_in[behind] if behind != program.exit else frozenset[Register]()
        changed = live.intersection(r for made in inside for r in writes(made))
        agreed = all(self.reading.shapes.get(register) == UNIFORM for register in changed)
        if agreed and all(is_quiet(made) for made in inside):
            ends = self._ends(blocks[-1])
            yield IdleWay(site, branch, past, blocks, tuple(taken), changed, ends)

    def _goes_on(self, block: Block) -> bool:
        """Returns whether nobody waits or leaves at the end of a block."""
        name = self._last(block).operation.name
        return name == "bra" or name not in ENDS

    def _body(self, block: Block) -> Iterable[Instruction]:
        """Return the instructions of a block but for what ends it; a trap is one of them."""
        ends = self._last(block).operation.name in ENDS - {"trap"}
        return self.program.instructions[block.start : block.stop - ends]

    # ---- the branch -----------------------------------------------------------------------------

    def _rises(self, block: Block, taken: bool) -> bool:
        """Returns whether all lanes of the warps behind one go this way at the end of a block, if
        all of that one do."""
        guard = self._last(block).guard
        made = comparison_of(self.program, block)
        if guard is None or made is None:
            return False
        comparison, (_, first, second) = str(made.operation.modifiers["cmp"]), made.operands
        if guard.negated == taken:
            comparison = INVERSE.get(comparison, "")
        if second in self._numbers:
            comparison, first, second = SWAPPED.get(comparison, ""), second, first
        if comparison == "ne" and isinstance(second, Immediate) and second.value == 0:
            comparison = "gt"  # no number is below 0
        type = made.operation.modifiers.scalar()
        same = self.reading.shape(second, type) == UNIFORM
        return comparison in RISING and first in self._numbers and same and type.is_integer


def _thread_numbers(program: Program) -> set[Register]:
    """Registers that are `%tid.x` wherever they are read."""
    found: set[Register] = set()
    for made in program.instructions:
        match made.operands:
            case (Register() as register, Special("%tid.x")) if _always_moves(made):
                found.add(register)
            case _:
                pass
    return (found & written_once(program)) - program.live_in[0]


def _always_moves(made: Instruction) -> bool:
    return made.operation.name == "mov" and made.guard is None


def _reached(start: int, further: Callable[[int], Iterable[int]]) -> set[int]:
    """Returns what is reached from a block, itself included."""
    seen: set[int] = set()
    pending = [start]
    while pending:
        at = pending.pop()
        if at not in seen:
            seen.add(at)
            pending.extend(further(at))
    return seen
