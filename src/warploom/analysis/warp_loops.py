"""Finds paths from one barrier of the thread block to the next, or to the end, that emitted code
can run as one loop over all warps of the thread block (a warp loop), with addresses computed once.

Between two barriers most kernels compute addresses, compare the thread's index once, and access
consecutive elements:

    bar.sync 0;                                   site
    shl.b32 %r2, %r1, 2;                          before; SHAPED: affine in the thread block
    setp.lt.u32 %p1, %tid.x, %r3; @!%p1 bra L;    decides which threads run the body
    ld.shared.f32 %f1, [%r2]; ...                 body; ACCESS, COMPUTED
    L: bar.sync 0;                                after

In a thread block with all its threads along x, the registers of the first warp then determine the
addresses of all others, and how many threads run the body. Not handled: two branches that depend on
the thread, atomics, votes, guarded instructions, and paths through loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import cast

from warploom.analysis.block_uniformity import (
    deciding_comparison,
    divergent_blocks,
    is_pure,
    is_unguarded_exit,
    is_uniform_branch,
    is_waiting_barrier,
)
from warploom.analysis.predicated_blocks import if_bodies, may_wrap
from warploom.analysis.uniformity import shapes_of
from warploom.ir.loops import StepKind, WarpLoop
from warploom.isa.instruction import Address, Instruction, Register, Space, Symbol
from warploom.isa.kinds import Effect, OpKind
from warploom.isa.routines import ordinary_results
from warploom.program.accesses import space_of
from warploom.program.cfg import can_diverge
from warploom.program.program import Program
from warploom.program.uses import reads, writes
from warploom.shapes.operand_shapes import OperandShapes, RegisterShapes, block_affine_registers
from warploom.shapes.warp_layout import BLOCK_LAYOUT, WarpLayout


def warp_loops(
    program: Program,
    candidates: Iterable[int],
    predicated_bodies: Iterable[int],
    warp_layout: WarpLayout,
    shapes: RegisterShapes,
) -> list[WarpLoop]:
    """Returns the first warp loop that is found from each site (the entry, and barriers that all
    threads execute equally often), if any, through blocks among `candidates`, in launches with a
    layout of warps. `predicated_bodies` are the blocks that some lanes can run while others wait
    (`analysis.predicated_blocks`)."""
    search = WarpLoopSearch(
        program, frozenset(candidates), frozenset(predicated_bodies), warp_layout, shapes
    )
    return [
        warp_loop
        for site in search.sites()
        if (warp_loop := next(search.warp_loops_from(site), None)) is not None
    ]


def block_operand_shapes(program: Program, warp_layout: WarpLayout) -> OperandShapes:
    """Returns the shapes of operands across whole thread blocks whose warps have a layout that
    occurs in BLOCK_LAYOUT. They are cached in the program, for several passes and both tiers."""
    block_layout = BLOCK_LAYOUT[warp_layout]
    key = block_operand_shapes, block_layout
    if key not in program.cache:
        shapes = shapes_of(program, block_layout).by_register
        program.cache[key] = OperandShapes(program, block_layout, shapes)
    return cast(OperandShapes, program.cache[key])


class WarpLoopSearch:
    """Searches a program for warp loops through the blocks `candidates`. `predicated_bodies` are
    the blocks that some lanes of a warp can run while its others wait; `_block_affine` the
    registers whose values in the first warp of a thread block determine those in all warps."""

    def __init__(
        self,
        program: Program,
        candidates: frozenset[int],
        predicated_bodies: frozenset[int],
        warp_layout: WarpLayout,
        shapes: RegisterShapes,
    ) -> None:
        """Computes the shapes of registers across the thread block (`operand_shapes`).
        `warp_layout` is one of BLOCK_LAYOUT (KeyError for others). `if_bodies` are the bodies of
        `if`s without `else` where all threads lie along x; none in other layouts."""
        self.program, self.candidates, self.predicated_bodies = (
            program,
            candidates,
            predicated_bodies,
        )
        self.operand_shapes, self._shapes = block_operand_shapes(program, warp_layout), shapes
        self._warp_layout = warp_layout
        self._block_affine = block_affine_registers(self.operand_shapes.shapes, shapes)
        # In other layouts a comparison does not select the first threads of the thread block.
        line = BLOCK_LAYOUT[warp_layout] is WarpLayout.ALONG_X
        self.if_bodies = if_bodies(program) if line else {}

    def sites(self) -> Iterator[int | None]:
        """Yields the sites after which warp loops may begin, as block numbers: None for the entry,
        if it is a candidate and no register is read before it is written; and the blocks that end
        with a barrier (`is_waiting_barrier`) and that all threads execute equally often."""
        if 0 in self.candidates and not self.program.live_in[0]:
            yield None
        uniform_blocks = set(range(len(self.program.blocks))) - divergent_blocks(
            self.program, self.operand_shapes
        )
        for index in sorted(uniform_blocks):
            if is_waiting_barrier(self.program.terminator(self.program.blocks[index])):
                yield index

    def warp_loops_from(self, site: int | None) -> Iterator[WarpLoop]:
        """Yields the warp loops that begin at a site, one for each path from there that
        qualifies."""
        entry_block = 0 if site is None else self.program.blocks[site].successors[-1]
        for path, choices in self._paths(entry_block, (), {}):
            warp_loop = self.warp_loop(site, path, choices)
            if warp_loop is not None:
                yield warp_loop

    def warp_loop(
        self, site: int | None, path: tuple[int, ...], choices: Mapping[int, bool]
    ) -> WarpLoop | None:
        """Returns the warp loop from a site (the block before it; None: the entry) through the
        blocks of a path, without its access groups (`passes.warp_loop_accesses`). `choices` maps
        blocks at whose ends all threads follow the same path to whether they branch. The block that
        another `if` on the path guards (`if_bodies`) is the loop's body; a partial warp may run it
        if it is in `predicated_bodies` and `_reads_fixed_shapes`. None if there are two such `if`s,
        if an instruction must not be on such a path (`_step_kind`), if registers would need another
        representation after it or after the body, or if the comparison before the body cannot be
        computed once for all warps."""
        # Branches on which the whole thread block agrees are in `choices`; what is left depends on
        # the thread. Two of them would select two different sets of threads.
        ifs = [
            basic_block
            for basic_block in path
            if basic_block in self.if_bodies and basic_block not in choices
        ]
        if len(ifs) > 1:
            return None
        branch = ifs[0] if ifs else None
        body = None if branch is None else self.if_bodies[branch]
        cut = len(path) if branch is None else path.index(branch) + 1
        own = () if body is None else (body,)
        kinds = {
            i: self._step_kind(basic_block, i)
            for basic_block in (*path, *own)
            for i in self._inner_instructions(basic_block)
        }
        taken = {
            self.program.blocks[basic_block].stop - 1: taken
            for basic_block, taken in choices.items()
        }
        steps = {index: kind for index, kind in kinds.items() if kind is not None}
        allows_partial_warp = body in self.predicated_bodies and self._reads_fixed_shapes(path, own)
        warp_loop = WarpLoop(
            site,
            path[:cut],
            body,
            allows_partial_warp,
            path[cut:],
            taken,
            steps,
            program=self.program,
        )
        qualifies = len(steps) == len(kinds) and self._retains_representation(warp_loop)
        qualifies = qualifies and self._merges_varying(warp_loop)
        return self._with_hoisted_comparison(warp_loop) if qualifies else None

    def _merges_varying(self, warp_loop: WarpLoop) -> bool:
        """Returns whether every register that the body merges has a value for each lane, in the
        body and after it: a short form cannot hold what only some lanes have written."""
        shaped = self._block_affine
        for basic_block in (*warp_loop.body_blocks, *warp_loop.after[:1]):
            shaped = shaped | self._shapes.at(basic_block).keys()
        return warp_loop.merged.isdisjoint(shaped)

    def _reads_fixed_shapes(self, path: Iterable[int], body: Iterable[int]) -> bool:
        """Returns whether every register that the blocks of a body read is affine in all blocks of
        it and of the path around it, or varying in all of them."""
        blocks = tuple(body)
        shaped = [frozenset(self._shapes.at(basic_block)) for basic_block in (*path, *blocks)]
        changing = frozenset[Register]().union(*shaped) - shaped[0].intersection(*shaped)
        instructions = (
            self.program.instructions[i]
            for basic_block in blocks
            for i in self._inner_instructions(basic_block)
        )
        return all(changing.isdisjoint(reads(instruction)) for instruction in instructions)

    def _retains_representation(self, warp_loop: WarpLoop) -> bool:
        """Returns whether the path ends the program, or registers that are live after it and not
        written on it are varying after it exactly if they are before it: else their storage would
        have to be converted."""
        varying_in = self._shapes.becomes_varying
        changed_form = (
            varying_in(warp_loop.blocks[0]) ^ varying_in(warp_loop.next_block)
        ) - warp_loop.live_out
        return warp_loop.ends or changed_form.isdisjoint(self.program.live_in[warp_loop.next_block])

    def _paths(
        self, at: int, path: tuple[int, ...], choices: dict[int, bool]
    ) -> Iterator[tuple[tuple[int, ...], dict[int, bool]]]:
        """Yields the blocks on each path from block `at` to a barrier (`is_waiting_barrier`) or an
        unguarded exit, with the branches (by block) that are uniform in the thread block and
        whether they are taken. Both sides of these are followed; the body of an `if` that depends
        on the thread is skipped, and only one such `if` is allowed. Paths do not leave `candidates`
        or visit a block twice, and end without a result at other branches and instructions that end
        a block."""
        if at not in self.candidates or at in path:
            return
        basic_block, path = self.program.blocks[at], (*path, at)
        last = self.program.terminator(basic_block)
        if is_waiting_barrier(last) or is_unguarded_exit(last):
            yield path, choices
        elif len(basic_block.successors) == 1 and (
            last.operation.kind is OpKind.BRANCH or not self._ends_block(last)
        ):
            yield from self._paths(basic_block.successors[0], path, choices)
        elif (
            can_diverge(last)
            and self._is_uniform_branch(last)
            and len(set(basic_block.successors)) == 2
        ):
            for target, taken in zip(basic_block.successors, (True, False), strict=True):
                yield from self._paths(target, path, {**choices, at: taken})
        elif at in self.if_bodies and all(
            b in choices or b not in self.if_bodies for b in path[:-1]
        ):
            # The body is skipped here: the path continues at the reconvergence point.
            yield from self._paths(self.program.reconvergence[at], path, choices)

    def _is_uniform_branch(self, branch: Instruction) -> bool:
        """Returns whether all threads of the thread block follow the same path at a branch, known
        from the first warp: its guard is uniform in the thread block and in `_block_affine`; False
        without a guard."""
        guard = branch.guard
        block_affine = guard is not None and guard.register in self._block_affine
        return block_affine and is_uniform_branch(self.operand_shapes, branch)

    def _ends_block(self, instruction: Instruction) -> bool:
        """Returns whether an instruction is a jump, exit or barrier, which is not part of a path's
        steps."""
        return instruction.operation.has(Effect.ENDS_BASIC_BLOCK)

    def _inner_instructions(self, index: int) -> range:
        """Returns the instructions of a block, without the one that ends it."""
        basic_block = self.program.blocks[index]
        return range(
            basic_block.start,
            basic_block.stop - self._ends_block(self.program.terminator(basic_block)),
        )

    def _step_kind(self, basic_block: int, index: int) -> StepKind | None:
        """Returns the kind of an instruction of a basic block: NONE without an effect, SHAPED if
        one computation serves all warps (`_is_block_affine`), COMPUTED if it is pure otherwise,
        ACCESS for affine loads and stores. Returns None for all others, whose block is then in no
        warp loop: instructions that are guarded, have a precondition, or maintain or access the
        stack of calls; those that would be SHAPED but may call a routine, which is counted warp by
        warp; and those that would be COMPUTED but may wrap around."""
        instruction = self.program.instructions[index]
        checked = bool(instruction.operation.spec.preconditions)
        effectless = instruction.operation.has(Effect.ISSUE_ONLY)
        if effectless and instruction.guard is None and not checked:
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
            here = OperandShapes(self.program, self._warp_layout, self._shapes.at(basic_block))
            return None if may_wrap(instruction, here) else StepKind.COMPUTED
        return StepKind.ACCESS if self._is_affine_access(instruction) else None

    def _is_block_affine(self, instruction: Instruction) -> bool:
        """Returns whether an instruction is pure, or loads a parameter, has a result, and all
        registers that it reads and writes are in `_block_affine`, so that one computation serves
        all warps."""
        parameter = (
            instruction.operation.kind is OpKind.LOAD and space_of(instruction) is Space.PARAM
        )
        results = (
            dict(self.operand_shapes.results(instruction))
            if is_pure(instruction) or parameter
            else {}
        )
        return bool(results) and self._block_affine.issuperset((*results, *reads(instruction)))

    def _is_affine_access(self, instruction: Instruction) -> bool:
        """Returns whether an instruction is a load or store of global or shared memory, not by
        generic addresses, whose addresses in the first warp determine those in all warps: its base
        is a variable or in `_block_affine`."""
        kind = instruction.operation.kind
        if kind not in (OpKind.LOAD, OpKind.STORE) or space_of(instruction) not in (
            Space.GLOBAL,
            Space.SHARED,
        ):
            return False
        address = instruction.operands[0 if kind is OpKind.STORE else 1]
        if not isinstance(address, Address):
            return False
        return isinstance(address.base, Symbol) or address.base in self._block_affine

    def _with_hoisted_comparison(self, warp_loop: WarpLoop) -> WarpLoop | None:
        """Returns a warp loop in which the comparison that decides which threads run its body
        becomes its `condition` and is not emitted (kind NONE): code before the loop computes once
        for all warps how many do. Returns the loop unchanged if it has no body; None if no
        comparison decides, if its result is read in the body or live after it, or if its operands
        are not affine in the thread block."""
        if warp_loop.body is None:
            return warp_loop
        basic_block = self.program.blocks[warp_loop.before[-1]]
        comparison = deciding_comparison(self.program, basic_block)
        instruction = None if comparison is None else self.program.instructions[comparison]
        if (
            comparison is not None
            and instruction is not None
            and set(reads(instruction)) <= self._block_affine
        ):
            [target] = writes(instruction)
            read = {
                r
                for i in warp_loop.steps(warp_loop.body_blocks)
                for r in reads(self.program.instructions[i])
            }
            # No code computes the predicate in each warp any more, so that nothing may read it but
            # the branch that it decides.
            if target not in read | warp_loop.live_after_body | warp_loop.live_out:
                kinds = {**warp_loop.kinds, comparison: StepKind.NONE}
                return replace(warp_loop, kinds=kinds, condition=comparison)
        return None
