"""Completes the copies of PTX instructions that ptxas folded, by those of the instructions that are
executed as often: in an unrolled loop a counter is incremented once for all turns, and in a turn
before the loop it is a constant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from warploom.machinecode.evidence import Evidence, Executions
from warploom.machinecode.loops import Loop, ptx_loops
from warploom.program.dominance import post_dominators
from warploom.program.program import Program, Site


def with_folded(found: Sequence[Evidence], program: Program) -> list[Evidence]:
    """Returns evidence in which instructions have as many copies as the heaviest of their basic
    block of PTX, and as the heaviest that each turn of their innermost loop executes. Those that
    not every turn executes have as many where they have some: ptxas made them conditional
    instructions of an unrolled loop."""
    block_of: dict[Site, int] = {}
    for block in program.blocks:
        for index in range(block.start, block.stop):
            block_of.setdefault(program.sites[index], block.index)
    loop_of, every_turn = _loops(program)
    every = [one for one in found if one.of is Executions.ALL]
    of_block = _leading((block_of[one.site], one) for one in every)
    of_loop = _leading(
        (loop_of[block_of[one.site]], one) for one in every if block_of[one.site] in every_turn
    )
    folded: list[Evidence] = []
    for one in found:
        block = block_of[one.site]
        one = _folded(one, of_block[block])
        leading = of_loop.get(loop_of.get(block, -1))
        if leading is not None:
            one = _folded(one, leading, everywhere=block in every_turn)
        folded.append(one)
    return folded


def _leading(rows: Iterable[tuple[int, Evidence]]) -> dict[int, Evidence]:
    """Returns the first of the heaviest rows by the number beside them."""
    found: dict[int, Evidence] = {}
    for number, one in rows:
        if number not in found or one.weight > found[number].weight:
            found[number] = one
    return found


def _folded(one: Evidence, leading: Evidence, *, everywhere: bool = True) -> Evidence:
    """Returns evidence with as many copies as `leading` has in each node; unless `everywhere`, in
    those where it has one."""
    like = leading.copies
    if one.weight >= leading.weight or like.items().isdisjoint(one.copies.items()):
        return one
    more = {
        node: n
        for node, n in like.items()
        if n > one.copies.get(node, 0) and (everywhere or node in one.copies)
    }
    return replace(one, copies={**one.copies, **more}) if more else one


def _loops(program: Program) -> tuple[Mapping[int, int], frozenset[int]]:
    """Returns the number of the innermost loop by basic block of PTX, and the blocks that each turn
    of theirs executes."""
    innermost: dict[int, int] = {}
    loops = ptx_loops(program)
    for number, loop in enumerate(loops):  # inner ones come last, and stay
        innermost.update(dict.fromkeys(loop.nodes, number))
    every_turn = {
        block
        for number, loop in enumerate(loops)
        for block in _every_turn(program, loop)
        if innermost[block] == number
    }
    return innermost, frozenset(every_turn)


def _every_turn(program: Program, loop: Loop) -> Iterable[int]:
    """Yields the basic blocks through which all paths lead from the head of a loop back to it."""
    [head] = loop.heads
    numbers = {block: number for number, block in enumerate(sorted(loop.nodes))}
    blocks = list(numbers)
    graph = [
        [
            len(numbers) if to == head else numbers[to]
            for to in program.blocks[block].successors
            if to in numbers
        ]
        for block in blocks
    ]
    after = post_dominators(graph)
    at = numbers[head]
    while at < len(blocks):
        yield blocks[at]
        at = after[at]
