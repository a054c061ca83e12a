"""Finds the loop around a basic block, and what a loop carries from one iteration to the next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import cast

from warploom.isa.instruction import Instruction
from warploom.machinecode.loops import outer_loops
from warploom.program.program import Program
from warploom.program.uses import reads, writes

ADDITIVE = frozenset({"add", "sub", "fma", "mad"})

FAMILIES = (ADDITIVE, *(frozenset({name}) for name in ("min", "max", "and", "or", "xor")))
"""Operations whose results several threads can compute in parts: each part of a sum on its own."""


def loop_around(program: Program, block: int) -> Set[int]:
    """Returns the basic blocks on cycles through a block: the outermost loop that it is in; empty
    if it is in none."""
    if loop_around not in program.cache:
        last = len(program.blocks)
        graph = [tuple(to for to in each.successors if to < last) for each in program.blocks]
        loops = [frozenset(loop) for loop in outer_loops(graph)]
        program.cache[loop_around] = {at: loop for loop in loops for at in loop}
    return cast("dict[int, frozenset[int]]", program.cache[loop_around]).get(block, frozenset())


def instructions_around(program: Program, index: int) -> frozenset[int]:
    """Returns the instructions of the loop around an instruction; none if it is in no loop."""
    block = next(each for each in program.blocks if each.start <= index < each.stop)
    blocks = (program.blocks[at] for at in loop_around(program, block.index))
    return frozenset(at for each in blocks for at in range(each.start, each.stop))


def reachable(graph: Sequence[Sequence[int]], start: int) -> set[int]:
    """Returns the blocks on paths of at least one edge from a block."""
    found: set[int] = set()
    waiting = list(graph[start])
    while waiting:
        block = waiting.pop()
        if block < len(graph) and block not in found:
            found.add(block)
            waiting += graph[block]
    return found


def has_independent_iterations(program: Program, blocks: Iterable[int]) -> bool:
    """Returns whether the instructions of a loop carry only counters, sums and other reductions
    from one iteration to the next, so that several threads could share its iterations."""
    found = [program.blocks[at] for at in sorted(blocks)]
    loop = [program.instructions[i] for each in found for i in range(each.start, each.stop)]
    readers: dict[str, list[int]] = {}
    for at, one in enumerate(loop):
        for register in reads(one):
            readers.setdefault(register.name, []).append(at)
    uses = [[at for made in writes(one) for at in readers.get(made.name, ())] for one in loop]
    sources: list[list[int]] = [[] for _ in loop]
    for at, later in enumerate(uses):
        for other in later:
            sources[other].append(at)
    carried = (at for at, later in enumerate(uses) if any(other <= at for other in later))
    cycles = (reachable(uses, at) & reachable(sources, at) for at in carried)
    return all(_is_reduction([loop[at] for at in cycle]) for cycle in cycles if cycle)


def _is_reduction(cycle: Sequence[Instruction]) -> bool:
    """Returns whether instructions that depend on each other in a circle only add something to a
    value, or combine it with others by one operation."""
    carried = {register.name for one in cycle for register in writes(one)}
    names = {one.operation.name for one in cycle} - {"mov"}
    return any(names <= family for family in FAMILIES) and all(
        _is_step(one, carried) for one in cycle
    )


def _is_step(one: Instruction, carried: Set[str]) -> bool:
    """Returns whether an instruction reads one carried value, which it does not scale or negate."""
    sources = [register.name for register in reads(one) if register.name in carried]
    place = {"sub": 1, "fma": 3, "mad": 3}.get(one.operation.name)
    is_placed = place is None or str(getattr(one.operands[place], "name", "")) in carried
    return len(sources) == 1 and is_placed
