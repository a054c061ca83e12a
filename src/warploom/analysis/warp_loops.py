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
    def next_block(self) -> int:
        """Return the block that follows, or the virtual exit."""
        return self.program.blocks[self.blocks[-1]].successors[-1]

    @property
    def ends(self) -> bool:
        """Returns whether it leads to the end of the program."""
        return self.next_block == self.program.exit

    @property
    def body_blocks(self) -> tuple[int, ...]:
        """Return its body, if it has one."""
        return () if self.body is None else (self.body,)

    @property
    def needs_all_threads(self) -> bool:
        """Returns whether every thread has to go through the body: it gives what is read behind."""
        if self.body is None or not self.partly:
            return self.body is not None
        return not self._written(self.body_blocks).isdisjoint(self.live_after_body)

    @property
    def has_common_work(self) -> bool:
        """Returns whether there is work for all warps beside the body."""
        work = (StepKind.COMPUTED, StepKind.ACCESS)
        return any(self.kinds[i] in work for i in self.steps(self.blocks))

    @property
    def live_after_body(self) -> frozenset[Register]:
        """Return the registers that are read behind the body."""
        return self.program.live_in[self.after[0]] if self.after else frozenset()

    @property
    def live_out(self) -> frozenset[Register]:
        """Return the registers that are written on the way and read behind it."""
        if self.ends:
            return frozenset()
        return (
            self._written((*self.blocks, *self.body_blocks)) & self.program.live_in[self.next_block]
        )

    def _written(self, blocks: Iterable[int]) -> frozenset[Register]:
        instructions = (self.program.instructions[index] for index in self.steps(blocks))
        return frozenset(register for one in instructions for register in writes(one))


def _fields(path: WarpLoopPath) -> dict[str, Any]:
    return {one.name: getattr(path, one.name) for one in fields(WarpLoopPath)}


def warp_loops(
    program: Program,
    candidates: Iterable[int],
    partly: Iterable[int],
    warp_layout: WarpLayout,
    shapes: RegisterShapes,
) -> list[WarpLoop]:
    """Return one way at most from each site, through some blocks, in launches whose warps are
    formed so. `partly` are those blocks that some lanes can run while others wait
    (`analysis.predicated_blocks`)."""
    search = WarpLoopSearch(program, frozenset(candidates), frozenset(partly), warp_layout, shapes)
    return [
        warp_loop
        for site in search.sites()
        if (warp_loop := next(search.warp_loops_from(site), None)) is not None
    ]


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
        candidates: frozenset[int],
        partly: frozenset[int],
        warp_layout: WarpLayout,
        shapes: RegisterShapes,
    ) -> None:
        self.program, self.candidates, self.partly = program, candidates, partly
        self.operand_shapes, self._shapes = block_operand_shapes(program, warp_layout), shapes
        self._warp_layout = warp_layout
        self._alike = block_affine_registers(self.operand_shapes, shapes)
        line = warp_layout is WarpLayout.LINE  # else no comparison is of the first threads
        self.if_bodies = if_bodies(program) if line else {}

    def sites(self) -> Iterator[int | None]:
        """Yield the begin, and the blocks at whose ends all threads wait as often as each other."""
        if 0 in self.candidates and not self.program.live_in[0]:
            yield None
        alike = set(range(len(self.program.blocks))) - divergent_blocks(
            self.program, self.operand_shapes
        )
        for index in sorted(alike):
            if is_full_barrier(terminator(self.program, self.program.blocks[index])):
                yield index

    def warp_loops_from(self, site: int | None) -> Iterator[WarpLoop]:
        """Yield all ways from a site that can be gone so."""
        first = 0 if site is None else self.program.blocks[site].successors[-1]
        for path, choices in self._paths(first, (), {}):
            warp_loop = self.warp_loop(site, path, choices)
            if warp_loop is not None:
                yield warp_loop

    def warp_loop(
        self, site: int | None, path: tuple[int, ...], choices: Mapping[int, bool]
    ) -> WarpLoop | None:
        """Return the way from a site through the blocks of a path, if it can be gone so. `choices`:
        by blocks at whose ends all threads take one way, whether they take the branch."""
        branch = next((i for i in path if i in self.if_bodies and i not in choices), None)
        body = None if branch is None else self.if_bodies[branch]
        cut = len(path) if branch is None else path.index(branch) + 1
        own = () if body is None else (body,)
        kinds = {
            i: self._step_kind(block, i)
            for block in (*path, *own)
            for i in self._inner_instructions(block)
        }
        taken = {self.program.blocks[block].stop - 1: taken for block, taken in choices.items()}
        found = {index: kind for index, kind in kinds.items() if kind is not None}
        partly = body in self.partly and self._reads_fixed_shapes(own)
        warp_loop = WarpLoop(site, path[:cut], body, partly, path[cut:], taken, found, self.program)
        can_be = len(found) == len(kinds) and self._keeps_representation(warp_loop)
        return self._with_hoisted_comparison(warp_loop) if can_be else None

    def _reads_fixed_shapes(self, blocks: Iterable[int]) -> bool:
        """Returns whether what blocks read has its shape everywhere, or nowhere."""
        instructions = (
            self.program.instructions[i]
            for block in blocks
            for i in self._inner_instructions(block)
        )
        somewhere = self._shapes.known.keys() - self._shapes.lasting
        return all(somewhere.isdisjoint(reads(one)) for one in instructions)

    def _keeps_representation(self, warp_loop: WarpLoop) -> bool:
        """Returns whether what is read behind a way, and not written on it, is kept there as
        before."""
        loose = self._shapes.becomes_varying
        changed_form = (
            loose(warp_loop.blocks[0]) ^ loose(warp_loop.next_block)
        ) - warp_loop.live_out
        return warp_loop.ends or changed_form.isdisjoint(self.program.live_in[warp_loop.next_block])

    def _paths(
        self, at: int, path: tuple[int, ...], choices: dict[int, bool]
    ) -> Iterator[tuple[tuple[int, ...], dict[int, bool]]]:
        """Yield the blocks on each way to a barrier or to the end, with the branches that all
        threads decide alike; one branch at most is by the thread."""
        if at not in self.candidates or at in path:
            return
        block, path = self.program.blocks[at], (*path, at)
        last = terminator(self.program, block)
        if is_full_barrier(last) or is_unguarded_exit(last):
            yield path, choices
        elif len(block.successors) == 1 and (
            last.operation.name == "bra" or not self._ends_block(last)
        ):
            yield from self._paths(block.successors[0], path, choices)
        elif (
            can_diverge(last) and self._is_uniform_branch(last) and len(set(block.successors)) == 2
        ):
            for target, taken in zip(block.successors, (True, False), strict=True):
                yield from self._paths(target, path, {**choices, at: taken})
        elif at in self.if_bodies and all(
            b in choices or b not in self.if_bodies for b in path[:-1]
        ):
            yield from self._paths(self.program.reconvergence[at], path, choices)

    def _is_uniform_branch(self, branch: Instruction) -> bool:
        guard = branch.guard
        block_affine = guard is not None and guard.register in self._alike
        return block_affine and is_uniform_branch(self.operand_shapes, branch)

    def _ends_block(self, instruction: Instruction) -> bool:
        return (
            instruction.operation.name in BLOCK_ENDS
            or instruction.operation.spec.unit is Unit.BARRIER
        )

    def _inner_instructions(self, index: int) -> range:
        """Return the instructions of a block, but what ends it."""
        block = self.program.blocks[index]
        return range(block.start, block.stop - self._ends_block(terminator(self.program, block)))

    def _step_kind(self, block: int, index: int) -> StepKind | None:
        """Returns what an instruction of a block takes; None where it cannot be on such a way."""
        instruction = self.program.instructions[index]
        checked = bool(instruction.operation.spec.preconditions)
        if is_effectless(instruction.operation) and instruction.guard is None and not checked:
            return StepKind.NONE
        if (
            checked
            or instruction.guard is not None
            or index in self.program.hidden | self.program.private
        ):
            return None
        if self._is_block_affine(instruction):  # calls of a routine are counted warp by warp
            return StepKind.SHAPED if ordinary_results(instruction.operation) is None else None
        if is_pure(instruction):
            here = OperandShapes(self.program, self._warp_layout, self._shapes.at(block))
            return None if may_wrap(instruction, here) else StepKind.COMPUTED
        return StepKind.ACCESS if self._is_affine_access(instruction) else None

    def _is_block_affine(self, instruction: Instruction) -> bool:
        parameter = instruction.operation.name == "ld" and space_of(instruction) is Space.PARAM
        results = (
            dict(self.operand_shapes.results(instruction))
            if is_pure(instruction) or parameter
            else {}
        )
        return bool(results) and self._alike.issuperset((*results, *reads(instruction)))

    def _is_affine_access(self, instruction: Instruction) -> bool:
        """Returns whether it is a load or a store of which the first warp says where all reach."""
        name, modifiers = instruction.operation.name, instruction.operation.modifiers
        plain = name in ("ld", "st") and "bulk" not in modifiers and completion(instruction) is None
        if not plain or space_of(instruction) not in (Space.GLOBAL, Space.SHARED):
            return False
        address = instruction.operands[0 if name == "st" else 1]
        if not isinstance(address, Address):
            return False
        return isinstance(address.base, Symbol) or address.base in self._alike

    def _with_hoisted_comparison(self, warp_loop: WarpLoop) -> WarpLoop | None:
        """Return the way, if the comparison before the body, if any, only decides who goes there:
        then it takes nothing."""
        if warp_loop.body is None:
            return warp_loop
        block = self.program.blocks[warp_loop.before[-1]]
        comparison = deciding_comparison(self.program, block)
        inside = range(block.start, block.stop)
        place = next((i for i in inside if self.program.instructions[i] is comparison), None)
        if comparison is not None and place is not None and set(reads(comparison)) <= self._alike:
            [target] = writes(comparison)
            read = {
                r
                for i in warp_loop.steps(warp_loop.body_blocks)
                for r in reads(self.program.instructions[i])
            }
            if target not in read | warp_loop.live_after_body | warp_loop.live_out:
                return replace(warp_loop, kinds={**warp_loop.kinds, place: StepKind.NONE})
        return None
