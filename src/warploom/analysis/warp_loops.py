"""Ways from one barrier of the block to the next, or to the end, that can be gone for all its warps
at once.

Between two barriers most kernels compute places, ask one question of the number of the thread, and
move and compute what lies at consecutive places: `if (tid < stride) part[tid] += ...`. In a block
with all its threads along x, what holds of the first warp then says where all others reach, and how
many of them have something to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum, auto
from typing import Any

from warploom.analysis.block_uniformity import (
    deciding_comparison,
    divergent_blocks,
    is_full_barrier,
    is_pure,
    is_unguarded_exit,
    is_uniform_branch,
    terminator,
)
from warploom.analysis.predicated_blocks import if_bodies, may_wrap
from warploom.analysis.shape_transfer import BLOCK_LAYOUT, OperandShapes, RegisterShapes, WarpLayout
from warploom.analysis.uniformity import shapes_of
from warploom.isa.effectless import is_effectless
from warploom.isa.routines import ordinary_results
from warploom.isa.spec import Unit
from warploom.program.accesses import space_of
from warploom.program.cfg import BLOCK_ENDS, can_diverge
from warploom.program.effects.completions import completion
from warploom.program.program import Program
from warploom.program.uses import reads, writes
from warploom.ptx.ir import Address, Instruction, Register, Space, Symbol


class StepKind(Enum):
    """Names what an instruction takes on such a way. SHAPED: one look at the first warp says what
    it gives in all. COMPUTED: each warp computes. ACCESS: a load or store, of which that look says
    where all warps reach. NONE: nothing."""

    SHAPED = auto()
    COMPUTED = auto()
    ACCESS = auto()
    NONE = auto()


@dataclass(frozen=True)
class WarpLoopPath:
    """The way from behind the barrier at the end of block `site`, or from the begin (None),
    through the blocks `before`, to the barrier at the end of the last of `blocks`, or to the end of
    the program there.

    At the end of the last block of `before`, the first threads go through block `body`, which is
    followed by the blocks `after`; without `body` all blocks are `before`. `partly`: some lanes of
    a warp can go through the body while others wait. `choices` are the guarded branches on which
    all threads agree, and whether they are taken. `kinds` says what each instruction takes, but
    those that end a block.
    """

    site: int | None
    before: tuple[int, ...]
    body: int | None
    partly: bool
    after: tuple[int, ...]
    choices: Mapping[int, bool]
    kinds: Mapping[int, StepKind]


@dataclass(frozen=True)
class WarpLoop(WarpLoopPath):
    """Such a way through a program, whose `path` is what says all of it."""

    program: Program

    @classmethod
    def along(cls, path: WarpLoopPath, program: Program) -> WarpLoop:
        """Returns the sweep of a program along a path."""
        return cls(**_fields(path), program=program)

    @property
    def path(self) -> WarpLoopPath:
        """Returns the way without the program."""
        return WarpLoopPath(**_fields(self))

    @property
    def blocks(self) -> tuple[int, ...]:
        """Return the blocks that all warps go through."""
        return (*self.before, *self.after)

    def steps(self, blocks: Iterable[int]) -> list[int]:
        """Return the instructions of some of its blocks, but those that end one."""
        inside = (self.program.blocks[index] for index in blocks)
        return [i for b in inside for i in range(b.start, b.stop) if i in self.kinds]

    def length(self, blocks: Iterable[int]) -> int:
        """Returns how many instructions blocks have."""
        inside = (self.program.blocks[index] for index in blocks)
        return sum(block.stop - block.start for block in inside)

    @property
    def behind(self) -> int:
        """Return the block that follows, or the virtual exit."""
        return self.program.blocks[self.blocks[-1]].successors[-1]

    @property
    def ends(self) -> bool:
        """Returns whether it leads to the end of the program."""
        return self.behind == self.program.exit

    @property
    def own(self) -> tuple[int, ...]:
        """Return its body, if it has one."""
        return () if self.body is None else (self.body,)

    @property
    def asks_all(self) -> bool:
        """Returns whether every thread has to go through the body: it gives what is read behind."""
        if self.body is None or not self.partly:
            return self.body is not None
        return not self._written(self.own).isdisjoint(self.met)

    @property
    def busy(self) -> bool:
        """Returns whether there is work for all warps beside the body."""
        work = (StepKind.COMPUTED, StepKind.ACCESS)
        return any(self.kinds[i] in work for i in self.steps(self.blocks))

    @property
    def met(self) -> frozenset[Register]:
        """Return the registers that are read behind the body."""
        return self.program.live_in[self.after[0]] if self.after else frozenset()

    @property
    def changed(self) -> frozenset[Register]:
        """Return the registers that are written on the way and read behind it."""
        if self.ends:
            return frozenset()
        return self._written((*self.blocks, *self.own)) & self.program.live_in[self.behind]

    def _written(self, blocks: Iterable[int]) -> frozenset[Register]:
        made = (self.program.instructions[index] for index in self.steps(blocks))
        return frozenset(register for one in made for register in writes(one))


def _fields(path: WarpLoopPath) -> dict[str, Any]:
    return {one.name: getattr(path, one.name) for one in fields(WarpLoopPath)}


def warp_loops(
    program: Program,
    among: Iterable[int],
    partly: Iterable[int],
    warp_layout: WarpLayout,
    shapes: RegisterShapes,
) -> list[WarpLoop]:
    """Return one way at most from each site, through some blocks, in launches whose warps are
    formed so. `partly` are those blocks that some lanes can run while others wait
    (`analysis.predicated_blocks`)."""
    search = WarpLoopSearch(program, frozenset(among), frozenset(partly), warp_layout, shapes)
    return [way for site in search.sites() if (way := next(search.ways(site), None)) is not None]


def block_operand_shapes(program: Program, warp_layout: WarpLayout) -> OperandShapes:
    """Returns what is known of operands in whole blocks whose warps are formed so."""
    whole = BLOCK_LAYOUT[warp_layout]
    return OperandShapes(program, whole, shapes_of(program, whole).known)


def block_affine_registers(block: OperandShapes, shapes: RegisterShapes) -> frozenset[Register]:
    """Return the registers whose shapes in a block go with those in its warps, which they have
    everywhere: what one holds in the first warp says what it holds in all."""
    common = block.shapes.keys() & shapes.lasting
    pairs = ((r, block.shapes[r], shapes.known[r]) for r in common)
    return frozenset(r for r, b, w in pairs if b.stride == w.stride and b.width <= w.width)


class WarpLoopSearch:
    """The search for the sweeps of one program: what it has found so far."""

    def __init__(
        self,
        program: Program,
        among: frozenset[int],
        partly: frozenset[int],
        warp_layout: WarpLayout,
        shapes: RegisterShapes,
    ) -> None:
        self.program, self.among, self.partly = program, among, partly
        self.reading, self._shapes = block_operand_shapes(program, warp_layout), shapes
        self._warp_layout = warp_layout
        self._alike = block_affine_registers(self.reading, shapes)
        line = warp_layout is WarpLayout.LINE  # else no comparison is of the first threads
        self.beside = if_bodies(program) if line else {}

    def sites(self) -> Iterator[int | None]:
        """Yield the begin, and the blocks at whose ends all threads wait as often as each other."""
        if 0 in self.among and not self.program.live_in[0]:
            yield None
        alike = set(range(len(self.program.blocks))) - divergent_blocks(self.program, self.reading)
        for index in sorted(alike):
            if is_full_barrier(terminator(self.program, self.program.blocks[index])):
                yield index

    def ways(self, site: int | None) -> Iterator[WarpLoop]:
        """Yield all ways from a site that can be gone so."""
        begin = 0 if site is None else self.program.blocks[site].successors[-1]
        for path, choices in self._paths(begin, (), {}):
            way = self.way(site, path, choices)
            if way is not None:
                yield way

    def way(
        self, site: int | None, path: tuple[int, ...], choices: Mapping[int, bool]
    ) -> WarpLoop | None:
        """Return the way from a site through the blocks of a path, if it can be gone so. `choices`:
        by blocks at whose ends all threads take one way, whether they take the branch."""
        branch = next((i for i in path if i in self.beside and i not in choices), None)
        body = None if branch is None else self.beside[branch]
        cut = len(path) if branch is None else path.index(branch) + 1
        own = () if body is None else (body,)
        kinds = {i: self._kind(block, i) for block in (*path, *own) for i in self._inside(block)}
        taken = {self.program.blocks[block].stop - 1: taken for block, taken in choices.items()}
        found = {index: kind for index, kind in kinds.items() if kind is not None}
        partly = body in self.partly and self._reads_lasting(own)
        way = WarpLoop(site, path[:cut], body, partly, path[cut:], taken, found, self.program)
        can_be = len(found) == len(kinds) and self._stays_kept(way)
        return self._asked(way) if can_be else None

    def _reads_lasting(self, blocks: Iterable[int]) -> bool:
        """Returns whether what blocks read has its shape everywhere, or nowhere."""
        made = (self.program.instructions[i] for block in blocks for i in self._inside(block))
        somewhere = self._shapes.known.keys() - self._shapes.lasting
        return all(somewhere.isdisjoint(reads(one)) for one in made)

    def _stays_kept(self, way: WarpLoop) -> bool:
        """Returns whether what is read behind a way, and not written on it, is kept there as
        before."""
        loose = self._shapes.becomes_varying
        other = (loose(way.blocks[0]) ^ loose(way.behind)) - way.changed
        return way.ends or other.isdisjoint(self.program.live_in[way.behind])

    def _paths(
        self, at: int, path: tuple[int, ...], choices: dict[int, bool]
    ) -> Iterator[tuple[tuple[int, ...], dict[int, bool]]]:
        """Yield the blocks on each way to a barrier or to the end, with the branches that all
        threads decide alike; one branch at most is by the thread."""
        if at not in self.among or at in path:
            return
        block, path = self.program.blocks[at], (*path, at)
        last = terminator(self.program, block)
        if is_full_barrier(last) or is_unguarded_exit(last):
            yield path, choices
        elif len(block.successors) == 1 and (last.operation.name == "bra" or not self._ends(last)):
            yield from self._paths(block.successors[0], path, choices)
        elif can_diverge(last) and self._agrees(last) and len(set(block.successors)) == 2:
            for way, taken in zip(block.successors, (True, False), strict=True):
                yield from self._paths(way, path, {**choices, at: taken})
        elif at in self.beside and all(b in choices or b not in self.beside for b in path[:-1]):
            yield from self._paths(self.program.reconvergence[at], path, choices)

    def _agrees(self, branch: Instruction) -> bool:
        guard = branch.guard
        known = guard is not None and guard.register in self._alike
        return known and is_uniform_branch(self.reading, branch)

    def _ends(self, made: Instruction) -> bool:
        return made.operation.name in BLOCK_ENDS or made.operation.spec.unit is Unit.BARRIER

    def _inside(self, index: int) -> range:
        """Return the instructions of a block, but what ends it."""
        block = self.program.blocks[index]
        return range(block.start, block.stop - self._ends(terminator(self.program, block)))

    def _kind(self, block: int, index: int) -> StepKind | None:
        """Returns what an instruction of a block takes; None where it cannot be on such a way."""
        made = self.program.instructions[index]
        checked = bool(made.operation.spec.preconditions)
        if is_effectless(made.operation) and made.guard is None and not checked:
            return StepKind.NONE
        if checked or made.guard is not None or index in self.program.hidden | self.program.private:
            return None
        if self._is_shaped(made):  # calls of a routine are counted warp by warp
            return StepKind.SHAPED if ordinary_results(made.operation) is None else None
        if is_pure(made):
            here = OperandShapes(self.program, self._warp_layout, self._shapes.at(block))
            return None if may_wrap(made, here) else StepKind.COMPUTED
        return StepKind.ACCESS if self._is_plain(made) else None

    def _is_shaped(self, made: Instruction) -> bool:
        parameter = made.operation.name == "ld" and space_of(made) is Space.PARAM
        found = dict(self.reading.results(made)) if is_pure(made) or parameter else {}
        return bool(found) and self._alike.issuperset((*found, *reads(made)))

    def _is_plain(self, made: Instruction) -> bool:
        """Returns whether it is a load or a store of which the first warp says where all reach."""
        name, modifiers = made.operation.name, made.operation.modifiers
        plain = name in ("ld", "st") and "bulk" not in modifiers and completion(made) is None
        if not plain or space_of(made) not in (Space.GLOBAL, Space.SHARED):
            return False
        address = made.operands[0 if name == "st" else 1]
        if not isinstance(address, Address):
            return False
        return isinstance(address.base, Symbol) or address.base in self._alike

    def _asked(self, way: WarpLoop) -> WarpLoop | None:
        """Return the way, if the comparison before the body, if any, only decides who goes there:
        then it takes nothing."""
        if way.body is None:
            return way
        block = self.program.blocks[way.before[-1]]
        made = deciding_comparison(self.program, block)
        inside = range(block.start, block.stop)
        place = next((i for i in inside if self.program.instructions[i] is made), None)
        if made is not None and place is not None and set(reads(made)) <= self._alike:
            [target] = writes(made)
            read = {r for i in way.steps(way.own) for r in reads(self.program.instructions[i])}
            if target not in read | way.met | way.changed:
                return replace(way, kinds={**way.kinds, place: StepKind.NONE})
        return None
